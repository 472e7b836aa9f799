"""Operators that take elements by position: take and slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import DEFAULT_PROVER, ZERO, Inference
from relax_dialect.ops.fields import dims, flag, integer, integers
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import TensorType, known_dims
from tir_dialect.dims import Dim, DimLike, ceildiv, constant, maximum, minimum, product
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr

if TYPE_CHECKING:
    from numpy.typing import NDArray

TAKE_MODES = ("fast", "wrap", "clip")


@op_definition
class TakeOp(Operator):
    """Slices of a tensor along an axis, at positions given by a tensor of indices.

    ```mlir
    %0 = relax.take %x, %indices axis = 0
    ```

    The indices' dimensions stand where the axis was. Without an axis the tensor has to have rank 1. What an index out
    of range means is the mode: `wrap` modulo the extent; `clip` the nearest position; `fast` too, but there a negative
    index counts from the back first. (In TVM, `fast` says nothing about such indices.)

    C1: the indices are integers.
    C2: the axis is within the rank; without an axis the rank is 1.
    C3: the mode is one of the three.
    C4: where there is an index, the axis has a position, if the result has elements.
    """

    name = "relax.take"

    axis = opt_prop_def(IntegerAttr[I64])
    mode = prop_def(StringAttr, default_value=StringAttr("fast"))
    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self, x: SSAValue | Operation, indices: SSAValue | Operation, axis: int | None = None, mode: str = "fast"
    ):
        super().__init__([x, indices], {"axis": None if axis is None else integer(axis), "mode": StringAttr(mode)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, positions, given = inference.tensor(0), inference.tensor(1), inference.optional_integer("axis")
        inference.require_domain(1, Domain.INTEGER)  # C1
        if inference.string("mode") not in TAKE_MODES:
            inference.fail(f"mode expected one of {', '.join(TAKE_MODES)}, got {inference.string('mode')}")  # C3
        if given is None and x.rank not in (1, None):
            inference.fail(f"expected an axis, as the operand has rank {x.rank}")  # C2
        if x.dims is None or positions.dims is None:
            return (x.with_shape(positions.dims if given is None else None),)
        axis = inference.axis(given or 0, len(x.dims))  # C2
        length, count = x.dims[axis], known_dims(positions.dims)
        is_empty = any(dim == ZERO for at, dim in enumerate(x.dims) if at != axis)
        if length is not None and count is not None and not is_empty:
            needed = product(count)
            inference.require_at_most(needed, needed * length, "an axis with elements to take")  # C4
        return (x.with_shape((*x.dims[:axis], *positions.dims, *x.dims[axis + 1 :])),)


def taken_indices(indices: NDArray[Any], extent: int, mode: str) -> NDArray[Any]:
    """The positions within an extent for which indices of `relax.take` stand; an extent of 0 has none, and no index."""
    import numpy as np

    most, wide = max(extent, 1), np.uint64 if indices.dtype.kind == "u" else np.int64
    positions = indices.astype(wide)
    if mode == "wrap":
        return (positions % wide(most)).astype(np.int64)
    positions = np.minimum(positions, wide(np.iinfo(np.int64).max)).astype(np.int64)
    if mode == "fast":
        positions = np.where(positions < 0, positions + most, positions)
    return np.clip(positions, 0, most - 1)


@op_definition
class StridedSliceOp(Operator):
    """The elements at `begin`, `begin + stride`, ... before `end` along each of the axes.

    ```mlir
    %0 = relax.strided_slice %x axes = [0, 1] begin = [1, 0] end = [n, 4]
    %1 = relax.strided_slice %x axes = [0] begin = [-1] end = [-9223372036854775808] strides = [-1]
    ```

    As in Python, a negative `begin` or `end` counts from the back, and both are clipped to the dimension. With
    `assume_inbound` they are within it already. Where the sign of a symbolic position cannot be proved, it is taken as
    not negative, as symbols are.

    C1: the axes are within the rank, each once.
    C2: there are as many begins, ends and strides as axes; strides may be absent and are then 1.
    C3: no stride is 0.
    C4: with `assume_inbound`, begins and ends are positions of the dimension, in the order of the stride.
    """

    name = "relax.strided_slice"

    axes = prop_def(DenseArrayBase.constr(i64))
    begin = prop_def(ArrayAttr[DimAttr])
    end = prop_def(ArrayAttr[DimAttr])
    strides = opt_prop_def(DenseArrayBase.constr(i64))
    assume_inbound = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        axes: Sequence[int],
        begin: Sequence[DimLike],
        end: Sequence[DimLike],
        strides: Sequence[int] | None = None,
        *,
        assume_inbound: bool = False,
    ):
        properties = {
            "axes": integers(axes),
            "begin": dims(begin),
            "end": dims(end),
            "strides": None if strides is None else integers(strides),
            "assume_inbound": flag(assume_inbound),
        }
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        given, begin, end = inference.integers("axes"), inference.dims("begin"), inference.dims("end")
        strides = inference.optional_integers("strides") or (1,) * len(given)
        if not len(given) == len(begin) == len(end) == len(strides):
            inference.fail(
                f"expected {len(given)} begins, ends and strides, got {len(begin)}, {len(end)} and {len(strides)}"
            )  # C2
        if 0 in strides:
            inference.fail("expected strides that are not 0")  # C3
        if x.dims is None:
            return (x,)
        shape = list(x.dims)
        inbound = inference.flag("assume_inbound")
        for at, axis in enumerate(inference.axes(given, len(shape))):  # C1
            if inbound:
                _require_inbound(inference, shape[axis], begin[at], end[at], strides[at])  # C4
            shape[axis] = slice_length(shape[axis], begin[at], end[at], strides[at], inbound)
        return (x.with_shape(shape),)


def _require_inbound(inference: Inference, length: Dim | None, begin: Dim, end: Dim, stride: int) -> None:
    """Leaves checks that a slice stays within a dimension and does not run backwards."""
    low, high = (constant(0), length) if stride > 0 else (constant(-1), None if length is None else length - 1)
    first, last = (begin, end) if stride > 0 else (end, begin)
    for left, right in ((low, first), (first, last), (last, high)):
        inference.require_at_most(left, right, "places within the dimension, in the order of the stride")


FAR = 1 << 31
"""A position as far out as this means the end of the dimension, as in other frameworks."""


def slice_length(length: Dim | None, begin: Dim, end: Dim, stride: int, inbound: bool = False) -> Dim | None:
    """How many elements a slice of a dimension has; `None` if the dimension has to be known for that and is not."""
    if inbound:
        span = end - begin if stride > 0 else begin - end
        return ceildiv(span, abs(stride))
    if length is None:
        return None
    first = slice_index(length, begin, stride)
    last = slice_index(length, end, stride)
    span = last - first if stride > 0 else first - last
    return DEFAULT_PROVER.simplify(ceildiv(maximum(span, 0), abs(stride)))


def slice_index(length: Dim, position: Dim, stride: int) -> Dim:
    """A `begin` or `end` counted from the front, clipped to `[0, length]`, or to `[-1, length - 1]` for a negative
    stride.
    """
    low, high = (constant(0), length) if stride > 0 else (constant(-1), length - 1)
    value = position.constant_value
    if value is not None and abs(value) >= FAR:
        return low if value < 0 else high
    if DEFAULT_PROVER.less(position, 0):
        position = position + length
    return DEFAULT_PROVER.simplify(maximum(low, minimum(position, high)))


@op_definition
class DynamicStridedSliceOp(Operator):
    """A slice whose positions are data: tensors of `i64` with one element per dimension.

    ```mlir
    %0 = relax.dynamic_strided_slice %x, %begin, %end, %strides
    ```

    C1: begin, end and strides have rank 1 and dtype `i64`.
    C2: they have one element per dimension.
    """

    name = "relax.dynamic_strided_slice"

    x = operand_def(TensorType)
    begin = operand_def(TensorType)
    end = operand_def(TensorType)
    strides = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        begin: SSAValue | Operation,
        end: SSAValue | Operation,
        strides: SSAValue | Operation,
    ):
        super().__init__([x, begin, end, strides])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        rank = None if x.rank is None else constant(x.rank)
        for index in (1, 2, 3):
            positions = inference.tensor(index)
            if positions.rank not in (1, None) or positions.dtype not in (i64, None):
                inference.fail(f"operand #{index} expected rank 1 and dtype i64, got {positions}")  # C1
            if positions.dims is not None:
                inference.require_equal(positions.dims[0], rank, "one element per dimension")  # C2
        return (x.with_shape(None if x.rank is None else (None,) * x.rank),)
