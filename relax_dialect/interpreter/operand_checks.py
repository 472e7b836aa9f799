"""What an operator demands of its operands and inference could not prove, required of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.inference import DimCheck, DimRelation, Inference, Refuted
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.interpreter.frame import Frame, where
from relax_dialect.interpreter.runtime_values import Shape, Value, is_tensor
from relax_dialect.interpreter.sizes import evaluate
from relax_dialect.operand_errors import operand_error_class
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, symbol
from tir_dialect.dtypes import from_numpy


def make_checks(frame: Frame, op: InfersResultTypes) -> None:
    """Raises `ValueError` if a condition does not hold that inference left open, because of symbols or because nothing
    was known; then `TypeError` if the ranks or dtypes are wrong.
    """
    if frame.interpreter.remember(op, lambda: all(map(_is_known, op.operand_types)), "known"):
        _require(frame, op, frame.interpreter.remember(op, op.runtime_checks), frame.symbols)
        return
    values = [frame.get(value) for value in op.operands]
    types, numbers = _with_symbols(values, op.operand_types, frame.symbols)
    checks = frame.interpreter.remember(op, lambda: _open_checks(op, types), f"checks of {types}")
    _require(frame, op, checks, {**frame.symbols, **numbers})
    _require_sizes(frame, op, values)


def _require(frame: Frame, op: InfersResultTypes, checks: Iterable[DimCheck], symbols: Mapping[str, int]) -> None:
    for check in checks:
        if not _holds(check, evaluate(check.left, symbols), evaluate(check.right, symbols)):
            text, dims = check.facts
            facts = text.format(*(evaluate(dim, symbols) for dim in dims))
            raise ValueError(f"{frame.function}: {check.message}{where(op)}: {facts}")


def _is_known(info: Attribute) -> bool:
    if isinstance(info, TensorType):
        return info.known_dims is not None and info.dtype is not None
    return not isinstance(info, ShapeType) or info.known_dims is not None


def _with_symbols(
    values: Sequence[Value], declared: Sequence[Attribute], taken: Mapping[str, int]
) -> tuple[list[Attribute], dict[str, int]]:
    """The types of values with new symbols for what is not declared, as compiled code has them; and their numbers."""
    numbers: dict[str, int] = {}

    def dims(info: TensorType | ShapeType, sizes: Sequence[int]) -> list[Dim]:
        found: list[Dim] = []
        for size, dim in zip(sizes, info.dims or (None,) * len(sizes), strict=False):
            if dim is None:
                name = fresh_name(f"s{len(numbers)}", taken)
                numbers[name], dim = size, symbol(name)
            found.append(dim)
        return found

    types: list[Attribute] = []
    for value, info in zip(values, declared, strict=True):
        if is_tensor(value) and isinstance(info, TensorType):
            types.append(TensorType(dims(info, value.shape), from_numpy(value.dtype), info.device))
        elif isinstance(value, Shape) and isinstance(info, ShapeType):
            types.append(ShapeType(dims(info, value)))
        else:
            types.append(info)
    return types, numbers


def _open_checks(op: InfersResultTypes, types: Sequence[Attribute]) -> Sequence[DimCheck]:
    """What inference leaves open; nothing where it fails, which that of the sizes explains."""
    inference = Inference(type(op), types, op.properties)
    try:
        op.infer(inference)
    except VerifyException:
        return ()
    return inference.checks


def _require_sizes(frame: Frame, op: InfersResultTypes, values: Sequence[Value]) -> None:
    """Inference with the sizes as numbers, which knows all that may be wrong with them."""
    types = [type_of_value(*pair) for pair in zip(values, op.operand_types, strict=True)]
    inference = Inference(type(op), types, op.properties)
    try:
        op.infer(inference)
    except Refuted as error:
        _require(frame, op, [error.check], frame.symbols)
    except VerifyException as error:
        kind = operand_error_class(type(op), types, op.properties)
        raise kind(f"{frame.function}: {error}{where(op)}") from error
    _require(frame, op, inference.checks, frame.symbols)


def type_of_value(value: Value, declared: Attribute) -> Attribute:
    """The type of a tensor or shape that is there; of others what is declared."""
    if is_tensor(value) and isinstance(declared, TensorType):
        return TensorType(value.shape, from_numpy(value.dtype), declared.device)
    if isinstance(value, Shape) and isinstance(declared, ShapeType):
        return ShapeType(value)
    return declared


def _holds(check: DimCheck, left: int, right: int) -> bool:
    match check.relation:
        case DimRelation.EQUAL:
            return left == right
        case DimRelation.BROADCAST:
            return left == right or 1 in (left, right)
        case DimRelation.AT_MOST:
            return left <= right
