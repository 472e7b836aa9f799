"""How operators are run: a NumPy function of the operands, whose results have to be of the inferred types, after
checks of what inference could not prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.inference import DimCheck, DimRelation, Inference, InfersResultTypes, Refuted, operand_error_class
from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.interpreter.runtime_values import Array, Shape, Value, is_tensor
from relax_dialect.ops.operator import ElementwiseOp
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import ShapeType, TensorType, as_struct_infos
from relax_dialect.traits import AliasesOperand
from tir_dialect.dims import Dim, symbol
from tir_dialect.dtypes import MOST_BYTES, from_numpy, integer_limits, is_integer, is_narrow, numpy_dtype
from tir_dialect.types import DimAttr
from tir_dialect.weights import converted


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
    # Inference with the sizes as numbers, which knows all that may be wrong with them.
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


OpT = TypeVar("OpT", bound=InfersResultTypes)
Compute: TypeAlias = "Callable[..., Value]"
ComputeAll: TypeAlias = "Callable[..., Sequence[Value]]"


def computes(*op_types: type[OpT]) -> Callable[[Compute], Compute]:
    """Registers `compute(op, *operands)`, the value of the only result, for some operators."""

    def register(compute: Compute) -> Compute:
        @wraps(compute)
        def compute_all(op: InfersResultTypes, *operands: Value) -> Sequence[Value]:
            return (compute(op, *operands),)

        computes_all(*op_types)(compute_all)
        return compute

    return register


def computes_all(*op_types: type[OpT]) -> Callable[[ComputeAll], ComputeAll]:
    """Registers `compute(op, *operands)`, the values of all results, for some operators."""

    def register(compute: ComputeAll) -> ComputeAll:
        @wraps(compute)
        def rule(frame: Frame, op: InfersResultTypes) -> None:
            make_checks(frame, op)
            _set_results(frame, op, _computed(frame, op, compute, op))

        runs(*op_types)(rule)
        return compute

    return register


def computes_in(*op_types: type[OpT]) -> Callable[[ComputeAll], ComputeAll]:
    """Registers `compute(dims, op, *operands)` for operators whose properties are dimensions; `dims` evaluates them."""

    def register(compute: ComputeAll) -> ComputeAll:
        @wraps(compute)
        def rule(frame: Frame, op: InfersResultTypes) -> None:
            make_checks(frame, op)
            _set_results(frame, op, _computed(frame, op, compute, DimValues(frame), op))

        runs(*op_types)(rule)
        return compute

    return register


class DimValues:
    """The values of dimensions in a frame."""

    def __init__(self, frame: Frame):
        self._symbols = frame.symbols

    def __call__(self, dim: DimAttr) -> int:
        """The value of a dimension."""
        return evaluate(dim.data, self._symbols)


def _computed(frame: Frame, op: InfersResultTypes, compute: ComputeAll, *leading: object) -> Sequence[Value]:
    """The values of the results; `MemoryError` if no machine can hold one, of which NumPy says various things."""
    try:
        with np.errstate(all="ignore"):
            operands = frame.get_all(op.operands)
            if any(is_tensor(value) and has_narrow_integers(value) for value in operands):
                # Results that were computed with 8 bits for the narrow integers that the types say: the lowest
                # bits.
                values = compute(*leading, *map(_widened, operands))
                types = [value.dtype if isinstance(value, TensorType) else None for value in op.result_types]
                return [
                    value.astype(numpy_dtype(kind))
                    if kind is not None and is_narrow(kind) and is_tensor(value)
                    else value
                    for kind, value in zip(types, values, strict=True)
                ]
            return compute(*leading, *operands)
    except ValueError as error:
        for info in as_struct_infos(op.result_types):
            if isinstance(info, TensorType) and info.known_dims is not None and info.dtype is not None:
                size = numpy_dtype(info.dtype).itemsize * prod(evaluate(dim, frame.symbols) for dim in info.known_dims)
                if size > MOST_BYTES:
                    raise MemoryError("cannot allocate a tensor of more than 2^48 bytes") from error
        raise


def _widened(value: Value) -> Value:
    """Integers below 8 bits, for which NumPy has few functions, as integers of 8."""
    return value.astype(value.dtype.name[:-1] + "8") if is_tensor(value) and has_narrow_integers(value) else value


def has_narrow_integers(array: Array) -> bool:
    """Whether elements are integers below 8 bits."""
    # the kind first: a name is made anew each time
    return array.dtype.kind == "V" and array.dtype.name in ("int4", "uint4", "int2", "uint2")


def _set_results(frame: Frame, op: InfersResultTypes, values: Sequence[Value]) -> None:
    views = op.has_trait(AliasesOperand)
    for result, value in zip(op.results, values, strict=True):
        if isinstance(result.type, TensorType) and not views:
            # The value with memory of its own: NumPy gives scalars where the rank is 0, views, and also whole
            # operands.
            operands = frame.get_all(op.operands)
            if is_tensor(value) and value.base is None and value.flags.c_contiguous:
                value = value.copy() if any(value is operand for operand in operands) else value
            else:
                value = np.array(value, order="C")
        frame.set_checked(result, value, f"result of '{op.name}'")


def result_dtype(op: InfersResultTypes, otherwise: Array, index: int = 0) -> np.dtype[np.generic]:
    """The NumPy dtype of a result; that of the array `otherwise` if the type does not say it."""
    info = op.results[index].type
    dtype = info.dtype if isinstance(info, TensorType) else None
    return otherwise.dtype if dtype is None else numpy_dtype(dtype)


def element(value: float, op: InfersResultTypes, x: Array) -> Array:
    """A number in the dtype of the result of an op, `x` among its operands; of integers without its fraction and at
    most the extremes, and 0 for NaN.
    """
    dtype = from_numpy(result_dtype(op, x))
    if is_integer(dtype) and isinstance(value, int):
        low, high = integer_limits(dtype)
        return np.array(min(max(value, low), high), x.dtype)
    return converted(np.array(value, np.float64), dtype).astype(x.dtype)


def wide(x: Array) -> Array:
    """Floats of 16 bits and less as `f32`, in which they are accumulated; others as they are."""
    return x.astype(np.float32) if x.dtype.itemsize <= 2 and x.dtype.kind not in "iub" else x


def integers(values: DenseArrayBase[IntegerType] | None) -> tuple[int, ...] | None:
    """The elements of an integer list, `None` if it is absent."""
    return None if values is None else tuple(values.get_values())


def integer(value: IntegerAttr | None) -> int | None:
    """An integer, `None` if it is absent."""
    return None if value is None else value.value.data


def einsum(subscripts: str, *operands: Array) -> Array:
    """NumPy's `einsum`, also for operands without elements.

    NumPy (2.4) takes a factor that is the same along the sum, as its stride 0 says, out of it: of an operand without
    elements it multiplies an empty sum by whatever lies at its address, which may be no number. Zeros of the same shape
    stand for all operands then: the result is zero, or has no elements.
    """
    if not all(operand.size for operand in operands):
        operands = tuple(np.broadcast_to(np.zeros((), operand.dtype), operand.shape) for operand in operands)
    return np.asarray(np.einsum(subscripts, *operands))


@computes(ElementwiseOp)
def elementwise(op: ElementwiseOp, *operands: Array) -> Array:
    """NumPy's function, rounded once to the dtype that the op declares."""
    result = np.asarray(op.SCALAR.evaluate(*map(wide, operands)))
    return result.astype(bool if op.SCALAR.predicate else operands[0].dtype, copy=False)
