"""What small integer tensors hold, as dimensions: exporters compute shapes by them.

`shape_of -> take -> concat -> reshape` has values that are known as expressions of symbols, though no tensor is
constant. Nothing here changes a program; `fold-shape-computations` and importers ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

from xdsl.dialects.builtin import Float32Type, Float64Type, i64
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from relax_dialect.analysis.effects import may_be_written
from relax_dialect.analysis.shape_rules import MOST_ELEMENTS, RULES, Elements, array_of
from relax_dialect.inference import DEFAULT_PROVER, InfersResultTypes
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import PrimType, ShapeType, StructInfo, TensorType, as_struct_infos
from tir_dialect.dims import Dim
from tir_dialect.dtypes import integer_limits, is_bool, is_float, is_integer


class ShapeValues:
    """The values of small integer tensors, shapes and prims; each op is looked at once.

    Values are kept by SSA value: make a new one after ops have been replaced, or call `forget`.
    """

    def __init__(self) -> None:
        self._known: dict[SSAValue, Elements | None] = {}

    def elements(self, value: SSAValue) -> Elements | None:
        """The elements of a tensor in its shape, the values of a shape, or the only one of a prim (rank 0).

        `None` if the value is none of these, has an unknown or too large size, or a dtype that holds no sizes.
        """
        pending = [value]
        while pending:
            last = pending[-1]
            missing = [] if last in self._known else [each for each in self._needed(last) if each not in self._known]
            if missing:
                pending += missing
                continue
            pending.pop()
            if last not in self._known:
                self._evaluate(last)
        return self._known[value]

    def dims(self, value: SSAValue) -> tuple[Dim | None, ...] | None:
        """The values of a shape or of a tensor of rank 1, `None` where one is not known; `None` for anything else."""
        found = self.elements(value)
        return None if found is None or found.ndim != 1 else tuple(found.tolist())

    def known_dims(self, value: SSAValue) -> tuple[Dim, ...] | None:
        """The values of a shape or of a tensor of rank 1, if all are known."""
        found = self.dims(value)
        known = tuple(dim for dim in found or () if dim is not None)
        return known if found is not None and len(known) == len(found) else None

    def dim(self, value: SSAValue) -> Dim | None:
        """The value of a prim or of a tensor with one element, if it is known."""
        found = self.elements(value)
        return None if found is None or found.size != 1 else cast("Dim | None", found.reshape(-1)[0])

    def forget(self, value: SSAValue) -> None:
        """Lets a value be evaluated again, after its type has changed."""
        self._known.pop(value, None)

    def _needed(self, value: SSAValue) -> Iterator[SSAValue]:
        if isinstance(value, OpResult) and type(value.op) in RULES and _may_be_known(value):
            yield from value.op.operands

    def _evaluate(self, value: SSAValue) -> None:
        declared = _unknown(value)
        rule = RULES.get(type(value.op)) if isinstance(value, OpResult) else None
        if rule is None or not isinstance(value, OpResult) or not _may_be_known(value):
            self._known[value] = declared
            return
        operands = [self._known[operand] for operand in value.op.operands]
        found = _result(rule(value.op, *operands), value.index) if _can_succeed(value.op, operands) else None
        if found is not None and isinstance(value.type, TensorType) and may_be_written(value):
            found = None
        found = found if declared is None else _agreeing(found, declared)
        self._known[value] = None if found is None else _held(found, value.type)


def _can_succeed(op: Operation, operands: Sequence[Elements | None]) -> bool:
    """Whether the op accepts shapes that are known although a type does not say them: else it fails when it is run."""
    types = as_struct_infos(op.operand_types)
    sharper = [_with_shape_of(elements, info) for elements, info in zip(operands, types, strict=True)]
    if sharper == list(types) or not isinstance(op, InfersResultTypes):
        return True
    try:
        op.infer_result_types(sharper, op.properties, prover_at(op))
    except VerifyException:
        return False
    return True


def _with_shape_of(elements: Elements | None, info: StructInfo) -> StructInfo:
    """The type with the shape of the elements, if it leaves a dimension open."""
    if elements is None or not isinstance(info, TensorType) or info.known_dims is not None:
        return info
    return info.with_shape(elements.shape)


def _may_be_known(value: SSAValue) -> bool:
    """Whether to look at the op that makes a value: it is small, or a vector of unknown length."""
    info = value.type
    vector = isinstance(info, TensorType) and info.dims == (None,) and _holds_sizes(info)
    return vector or _unknown(value) is not None


def _result(found: Elements | Sequence[Elements] | None, index: int) -> Elements | None:
    """What a rule found for one result; a rule that gives no list speaks of the first."""
    if isinstance(found, Sequence):
        return found[index]
    return found if index == 0 else None


def _held(found: Elements, info: Attribute) -> Elements:
    """The elements that are numbers of the dtype; what others become, by wrapping or rounding, is not known here."""
    dtype = info.dtype if isinstance(info, TensorType) else i64
    if dtype is None or is_bool(dtype):
        return found
    holds = _is_exact if is_float(dtype) else partial(_is_within, *integer_limits(dtype))
    values = found.reshape(-1).tolist()
    return array_of([dim if dim is None or holds(dim, dtype) else None for dim in values]).reshape(found.shape)


def _is_within(low: int, high: int, dim: Dim, dtype: Attribute) -> bool:
    """Whether an integer dtype has a number; of symbols, those below 0 are what no unsigned one has."""
    if (number := dim.constant_value) is not None:
        return low <= number <= high
    return low < 0 or DEFAULT_PROVER.less_equal(0, dim) is True


def _is_exact(dim: Dim, dtype: Attribute) -> bool:
    """Whether a float is a number, exactly. The sign of 0 is not known here."""
    number = dim.constant_value
    return number is None or (number != 0 and abs(number) <= 1 << (24 if isinstance(dtype, Float32Type) else 53))


def _agreeing(found: Elements | None, declared: Elements) -> Elements:
    """The elements found, and where they are unknown those that the type says."""
    if found is None or found.shape != declared.shape:
        return declared
    pairs = zip(found.reshape(-1).tolist(), declared.reshape(-1).tolist(), strict=True)
    return array_of([said if value is None else value for value, said in pairs]).reshape(found.shape)


def _unknown(value: SSAValue) -> Elements | None:
    """What the type alone says of the elements, if the value may be looked at."""
    info = value.type
    if isinstance(info, ShapeType):
        return None if info.dims is None else array_of(info.dims)
    if isinstance(info, PrimType):
        return array_of([info.value]).reshape(())
    if not isinstance(info, TensorType) or info.known_dims is None or not _holds_sizes(info):
        return None
    shape = [dim.constant_value for dim in info.known_dims]
    sizes = [size for size in shape if size is not None]
    if len(sizes) != len(shape):
        return None
    count = 1
    for size in sizes:
        count *= size
    return array_of([None] * count).reshape(sizes) if count <= MOST_ELEMENTS else None


def _holds_sizes(info: TensorType) -> bool:
    dtype = info.dtype
    if dtype is None:
        return False
    if isinstance(dtype, Float32Type | Float64Type) or is_bool(dtype):
        return True
    return is_integer(dtype) and getattr(dtype, "bitwidth", 0) >= 32
