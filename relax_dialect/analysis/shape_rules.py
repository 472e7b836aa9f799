"""What ops do to the elements of shapes: scalar arithmetic on dimensions, of Relax and of ONNX, and rules for the
values that ops say, make, choose, join and combine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from relax_dialect.ops import binary as b
from relax_dialect.ops import unary as u
from relax_dialect.ops.binding import GuardOp, MatchCastOp
from relax_dialect.ops.creation import ArangeOp, FilledLikeOp, FilledOp, FullLikeOp, FullOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.gather import GatherElementsOp, GatherNDOp
from relax_dialect.ops.indexing import DynamicStridedSliceOp, StridedSliceOp, TakeOp, taken_indices
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.manipulation import (
    BroadcastToOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
    ReshapeOp,
    SqueezeOp,
)
from relax_dialect.ops.reduction import MaxOp, MinOp, ProdOp, ReductionOp, SumOp
from relax_dialect.ops.shapes import (
    ShapeGetOp,
    ShapeOfOp,
    ShapeOp,
    ShapeToTensorOp,
    SizeOp,
    TensorToShapeOp,
    TupleGetOp,
    TupleOp,
)
from relax_dialect.ops.sorting import WhereOp
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, Prover, constant, maximum, minimum
from tir_dialect.dtypes import is_bool
from tir_dialect.types import DimAttr

MOST_POWER = 16
"""Exponents up to this are multiplied out."""


@dataclass(frozen=True)
class Arithmetic:
    """What is known where an op stands."""

    prover: Prover
    is_float: bool
    """Whether the operands are floats, whose quotient is not rounded."""

    @staticmethod
    def at(op: Operation) -> Arithmetic:
        """For the operands of `op`."""
        dtypes = [info.dtype for info in op.operand_types if isinstance(info, TensorType)]
        return Arithmetic(prover_at(op), any(isinstance(dtype, AnyFloat) for dtype in dtypes))

    def floor_divide(self, x: Dim, y: Dim) -> Dim | None:
        """`x / y` rounded down, if `y` is positive."""
        return self.prover.simplify(x // y) if self.prover.less_equal(1, y) else None

    def divide(self, x: Dim, y: Dim) -> Dim | None:
        """`x / y`, of integers rounded toward zero; a quotient of floats has to be an integer."""
        if self.is_float:
            exact = self.prover.less_equal(1, y) and self.prover.equal(x % y, 0)
            return self.prover.simplify(x // y) if exact else None
        if x.constant_value is not None and y.constant_value:
            quotient = abs(x.constant_value) // abs(y.constant_value)
            return constant(quotient if (x.constant_value < 0) == (y.constant_value < 0) else -quotient)
        return self.floor_divide(x, y) if self.prover.less_equal(0, x) else None

    def modulo(self, x: Dim, y: Dim) -> Dim | None:
        """What is left after division, if both are not negative and `y` is not 0."""
        positive = self.prover.less_equal(0, x) and self.prover.less_equal(1, y)
        return self.prover.simplify(x % y) if positive else None

    def power(self, x: Dim, y: Dim) -> Dim | None:
        """`x` to a small known exponent."""
        exponent = y.constant_value
        if exponent is None or not 0 <= exponent <= MOST_POWER:
            return None
        result = constant(1)
        for _ in range(exponent):
            result = result * x
        return result

    def magnitude(self, x: Dim) -> Dim | None:
        """`|x|`, if the sign is known."""
        if self.prover.less_equal(0, x):
            return x
        return -x if self.prover.less_equal(x, 0) else None

    def maximum(self, x: Dim, y: Dim) -> Dim:
        """The greater one."""
        return self.prover.simplify(maximum(x, y))

    def minimum(self, x: Dim, y: Dim) -> Dim:
        """The smaller one."""
        return self.prover.simplify(minimum(x, y))

    def add(self, x: Dim, y: Dim) -> Dim:
        """`x + y`."""
        return x + y

    def subtract(self, x: Dim, y: Dim) -> Dim:
        """`x - y`."""
        return x - y

    def multiply(self, x: Dim, y: Dim) -> Dim:
        """`x * y`."""
        return x * y

    def negative(self, x: Dim) -> Dim:
        """`-x`."""
        return -x

    def same(self, x: Dim) -> Dim:
        """`x`: what is known is an integer, which rounding leaves."""
        return x

    def equal(self, x: Dim, y: Dim) -> Dim | None:
        """Whether both are one number."""
        return _truth(self.prover.equal(x, y))

    def not_equal(self, x: Dim, y: Dim) -> Dim | None:
        """Whether both are different numbers."""
        answer = self.prover.equal(x, y)
        return _truth(None if answer is None else not answer)

    def less(self, x: Dim, y: Dim) -> Dim | None:
        """`x < y`."""
        return _truth(self.prover.less_equal(x + 1, y))

    def less_equal(self, x: Dim, y: Dim) -> Dim | None:
        """`x <= y`."""
        return _truth(self.prover.less_equal(x, y))

    def greater(self, x: Dim, y: Dim) -> Dim | None:
        """`x > y`."""
        return self.less(y, x)

    def greater_equal(self, x: Dim, y: Dim) -> Dim | None:
        """`x >= y`."""
        return self.less_equal(y, x)

    def logical_and(self, x: Dim, y: Dim) -> Dim | None:
        """Whether both are true."""
        left, right = is_true(x), is_true(y)
        return None if left is None or right is None else left * right

    def logical_or(self, x: Dim, y: Dim) -> Dim | None:
        """Whether one is true."""
        left, right = is_true(x), is_true(y)
        return None if left is None or right is None else maximum(left, right)

    def logical_not(self, x: Dim) -> Dim | None:
        """Whether it is false."""
        truth = is_true(x)
        return None if truth is None else 1 - truth

    def where(self, condition: Dim, x: Dim, y: Dim) -> Dim | None:
        """One of two values."""
        truth = is_true(condition)
        return x if x is y else None if truth is None else x if truth.constant_value else y


def is_true(x: Dim) -> Dim | None:
    """Whether a number is not 0, if that is known without knowing symbols."""
    return None if x.constant_value is None else constant(int(x.constant_value != 0))


def _truth(answer: bool | None) -> Dim | None:
    return None if answer is None else constant(int(answer))


Elements: TypeAlias = NDArray[Any]
"""An array of `Dim | None`, `None` where a value is not known; truth values are 0 and 1."""

MOST_ELEMENTS = 64
"""Larger tensors are data, not shapes."""

OpT = TypeVar("OpT", bound=Operation)
Evaluation: TypeAlias = Callable[..., Elements | Sequence[Elements] | None]

RULES: dict[type[Operation], Evaluation] = {}
"""What ops do to values: called with the op and the elements of its operands, `None` for those that are no shapes."""


def evaluates(*op_types: type[OpT]) -> Callable[[Evaluation], Evaluation]:
    """Registers `rule(op, *operands)`, the elements of the only result, or those of each result."""

    def register(rule: Evaluation) -> Evaluation:
        RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return register


def array_of(values: Sequence[Dim | None]) -> Elements:
    """The values as an array of rank 1."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def static_shape(info: TensorType) -> list[int] | None:
    """The dimensions of a type, if all are constants."""
    sizes = [dim.constant_value for dim in info.known_dims or ()]
    known = [size for size in sizes if size is not None]
    return known if info.known_dims is not None and len(known) == len(sizes) else None


__all__ = ["RULES"]


@evaluates(ShapeOp, ShapeOfOp, SizeOp)
def by_type(op: Operation, *_: Elements | None) -> None:
    """The type of the result says all."""


@evaluates(PrimOp)
def prim(op: PrimOp) -> Elements | None:
    """A truth value; of numbers the type says the value."""
    if isinstance(op.value, DimAttr) or not is_bool(op.value.type):
        return None
    return array_of([constant(int(bool(op.value.value.data)))]).reshape(())


@evaluates(ConstantOp)
def constant_tensor(op: ConstantOp) -> Elements | None:
    """The numbers; a float that is no integer is not known."""
    array = op.array
    return None if array is None else _as_elements(array)


def _as_elements(array: np.ndarray[Any, Any]) -> Elements:
    flat = [constant(int(number)) if float(number).is_integer() else None for number in array.reshape(-1).tolist()]
    return array_of(flat).reshape(array.shape)


@evaluates(ShapeGetOp)
def shape_get(op: ShapeGetOp, shape: Elements | None) -> Elements | None:
    """One of the values."""
    return None if shape is None else shape[op.index.value.data : op.index.value.data + 1].reshape(())


@evaluates(ShapeToTensorOp, TensorToShapeOp, MatchCastOp, GuardOp)
def same(op: Operation, x: Elements | None) -> Elements | None:
    """The same values."""
    return x


@evaluates(TupleGetOp)
def tuple_get(op: TupleGetOp, fields: Elements | None) -> None:
    """A tuple has no elements of its own; `canonicalize` takes known tuples apart."""


@evaluates(TupleOp)
def make_tuple(op: TupleOp, *fields: Elements | None) -> None:
    """No elements of its own."""


Function: TypeAlias = Callable[..., Dim | None]

FUNCTIONS: dict[type[Operation], Function] = {
    b.AddOp: Arithmetic.add,
    b.SubtractOp: Arithmetic.subtract,
    b.MultiplyOp: Arithmetic.multiply,
    b.DivideOp: Arithmetic.divide,
    b.FloorDivideOp: Arithmetic.floor_divide,
    b.FloorModOp: Arithmetic.modulo,
    b.ModOp: Arithmetic.modulo,
    b.PowerOp: Arithmetic.power,
    b.MaximumOp: Arithmetic.maximum,
    b.MinimumOp: Arithmetic.minimum,
    b.EqualOp: Arithmetic.equal,
    b.NotEqualOp: Arithmetic.not_equal,
    b.LessOp: Arithmetic.less,
    b.LessEqualOp: Arithmetic.less_equal,
    b.GreaterOp: Arithmetic.greater,
    b.GreaterEqualOp: Arithmetic.greater_equal,
    b.LogicalAndOp: Arithmetic.logical_and,
    b.LogicalOrOp: Arithmetic.logical_or,
    u.LogicalNotOp: Arithmetic.logical_not,
    u.NegativeOp: Arithmetic.negative,
    u.AbsOp: Arithmetic.magnitude,
    u.CeilOp: Arithmetic.same,
    u.FloorOp: Arithmetic.same,
    u.RoundOp: Arithmetic.same,
    u.TruncOp: Arithmetic.same,
    WhereOp: Arithmetic.where,
}
"""What operators are on known values; the first argument says what is known where they stand."""

COMBINE: dict[type[Operation], tuple[int | None, Function]] = {
    SumOp: (0, Arithmetic.add),
    ProdOp: (1, Arithmetic.multiply),
    MaxOp: (None, Arithmetic.maximum),
    MinOp: (None, Arithmetic.minimum),
}
"""What reductions are: the value of nothing, and the function of two values."""


@evaluates(FullOp, FullLikeOp)
def full(op: FullOp | FullLikeOp, _: Elements | None, value: Elements | None) -> Elements | None:
    """The value everywhere."""
    return None if value is None else _filled(op.result.type, value.reshape(-1)[0])


def _register_filled() -> None:
    def filled(op: FilledOp | FilledLikeOp, _: Elements | None) -> Elements | None:
        return _filled(op.result.type, constant(op.VALUE))

    evaluates(*FilledOp.__subclasses__(), *FilledLikeOp.__subclasses__())(filled)


_register_filled()


def _filled(info: TensorType, value: Dim | None) -> Elements | None:
    shape = static_shape(info)
    if shape is None or np.prod(shape, dtype=int) > MOST_ELEMENTS:
        return None
    return array_of([value] * int(np.prod(shape, dtype=int))).reshape(shape)


@evaluates(ArangeOp)
def arange(op: ArangeOp, start: Elements | None, stop: Elements | None, step: Elements | None) -> Elements | None:
    """As many numbers as the type says."""
    shape = static_shape(op.result.type)
    first = None if start is None else start.reshape(-1)[0]
    stride = None if step is None else step.reshape(-1)[0]
    if shape is None or first is None or stride is None or shape[0] > MOST_ELEMENTS:
        return None
    return array_of([first + index * stride for index in range(shape[0])])


@evaluates(AstypeOp)
def astype(op: AstypeOp, x: Elements | None) -> Elements | None:
    """The same number; a truth value says whether it is 0."""
    if x is None or not is_bool(op.dtype):
        return x
    return _each(is_true, x)


def _each(function: Callable[..., Dim | None], *operands: Elements) -> Elements:
    """A function of known values, element by element; where one is not known, nor is the result."""

    def apply(*values: Dim | None) -> Dim | None:
        return None if None in values else function(*values)

    found = np.frompyfunc(apply, len(operands), 1)(*operands)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return found if isinstance(found, np.ndarray) else array_of([found]).reshape(shape)


def _register_arithmetic() -> None:
    def rule(op: Operation, *operands: Elements | None) -> Elements | None:
        known = [operand for operand in operands if operand is not None]
        if len(known) != len(operands):
            return None
        arithmetic = Arithmetic.at(op)
        function = FUNCTIONS[type(op)]
        return _each(lambda *values: function(arithmetic, *values), *known)

    evaluates(*FUNCTIONS)(rule)


_register_arithmetic()


@evaluates(SumOp, ProdOp, MaxOp, MinOp)
def reduction(op: ReductionOp, x: Elements | None) -> Elements | None:
    """All elements along the axes combined."""
    if x is None or op.result.type.known_dims is None:
        return None
    identity, combine = COMBINE[type(op)]
    axes = range(x.ndim) if op.axes is None else [axis % x.ndim for axis in op.axes.get_values()]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    count, length = (math.prod(x.shape[axis] for axis in group) for group in (kept, axes))
    rows = x.transpose([*kept, *axes]).reshape(count, length)
    if identity is None and not rows.shape[1]:
        return None
    arithmetic = Arithmetic.at(op)

    def combined(row: list[Dim | None]) -> Dim | None:
        known = [dim for dim in row if dim is not None]
        start = known if identity is None else [constant(identity), *known]
        return reduce(lambda a, b: combine(arithmetic, a, b), start) if len(known) == len(row) else None

    shape = static_shape(op.result.type)
    return None if shape is None else array_of([combined(row) for row in rows.tolist()]).reshape(shape)


@evaluates(TakeOp)
def take(op: TakeOp, x: Elements | None, indices: Elements | None) -> Elements | None:
    """The elements at known positions."""
    positions = _numbers(indices)
    if x is None or positions is None:
        return None
    axis = 0 if op.axis is None else op.axis.value.data % x.ndim
    length, mode, flat = x.shape[axis], op.mode.data, positions.reshape(-1)
    if length == 0:
        return None
    shape = (*x.shape[:axis], *positions.shape, *x.shape[axis + 1 :])
    return np.take(x, taken_indices(flat, length, mode), axis).reshape(shape)


@evaluates(GatherElementsOp)
def gather_elements(op: GatherElementsOp, x: Elements | None, indices: Elements | None) -> Elements | None:
    """The elements at known positions."""
    positions = _numbers(indices)
    if x is None or positions is None or x.shape != positions.shape:
        return None
    axis = op.axis.value.data
    return np.take_along_axis(x, positions % max(x.shape[axis], 1), axis)


@evaluates(GatherNDOp)
def gather_nd(op: GatherNDOp, x: Elements | None, indices: Elements | None) -> Elements | None:
    """The elements at known coordinates."""
    positions = _numbers(indices)
    if x is None or positions is None or op.batch_dims.value.data:
        return None
    limits = x.shape[: positions.shape[-1]]
    rows = positions.reshape(math.prod(positions.shape[:-1]), len(limits))
    if not all(-n <= i < n for row in rows for i, n in zip(row, limits, strict=True)):
        return None
    if not limits:  # the whole, for each of no coordinates
        return np.broadcast_to(x, (*positions.shape[:-1], *x.shape))
    return np.asarray(x[tuple(np.moveaxis(positions, -1, 0))], dtype=object)


@evaluates(StridedSliceOp)
def strided_slice(op: StridedSliceOp, x: Elements | None) -> Elements | None:
    """A slice at known positions."""
    axes = op.axes.get_values()
    steps = (1,) * len(axes) if op.strides is None else op.strides.get_values()
    begin, end = ([position.data.constant_value for position in positions] for positions in (op.begin, op.end))
    return _slice(x, axes, begin, end, steps)


@evaluates(DynamicStridedSliceOp)
def dynamic_slice(
    op: DynamicStridedSliceOp,
    x: Elements | None,
    begin: Elements | None,
    end: Elements | None,
    strides: Elements | None,
) -> Elements | None:
    """A slice at positions that are values themselves."""
    first, last, steps = _numbers(begin), _numbers(end), _numbers(strides)
    if x is None or first is None or last is None or steps is None or 0 in steps:
        return None
    return _slice(x, range(x.ndim), first.tolist(), last.tolist(), steps.tolist())


def _slice(
    x: Elements | None,
    axes: Iterable[int],
    begin: Sequence[int | None],
    end: Sequence[int | None],
    steps: Sequence[int],
) -> Elements | None:
    if x is None or None in begin or None in end:
        return None
    positions = [slice(None)] * x.ndim
    for axis, first, last, step in zip(axes, begin, end, steps, strict=True):
        positions[axis] = slice(first, last, step)
    return x[tuple(positions)]


def _numbers(elements: Elements | None) -> np.ndarray[Any, Any] | None:
    """The elements as integers, if all are constants."""
    if elements is None:
        return None
    values = [None if dim is None else dim.constant_value for dim in elements.reshape(-1).tolist()]
    known = [value for value in values if value is not None]
    return np.array(known, np.int64).reshape(elements.shape) if len(known) == len(values) else None


@evaluates(ConcatOp)
def concat(op: ConcatOp, *inputs: Elements | None) -> Elements | None:
    """One after the other."""
    known = [each for each in inputs if each is not None]
    return np.concatenate(known, op.axis.value.data) if len(known) == len(inputs) else None


@evaluates(StackOp)
def stack(op: StackOp, *inputs: Elements | None) -> Elements | None:
    """Side by side."""
    known = [each for each in inputs if each is not None]
    return np.stack(known, op.axis.value.data) if len(known) == len(inputs) else None


@evaluates(SplitOp)
def split(op: SplitOp, x: Elements | None) -> Sequence[Elements] | None:
    """Cut at known positions: the sizes of the parts are in their types."""
    axis = op.axis.value.data
    sizes = [_length(result.type, axis) for result in op.res]
    known = [size for size in sizes if size is not None]
    return None if x is None or len(known) != len(sizes) else np.split(x, np.cumsum(known)[:-1], axis)


def _length(info: object, axis: int) -> int | None:
    dims = info.known_dims if isinstance(info, TensorType) else None
    return None if dims is None else dims[axis].constant_value


@evaluates(ReshapeOp, FlattenOp, ExpandDimsOp, SqueezeOp)
def view(op: ReshapeOp | FlattenOp | ExpandDimsOp | SqueezeOp, x: Elements | None, *_: Elements | None) -> Any:
    """The same elements in the shape of the result."""
    shape = static_shape(op.result.type)
    return None if x is None or shape is None or np.prod(shape, dtype=int) != x.size else x.reshape(shape)


@evaluates(BroadcastToOp)
def broadcast_to(op: BroadcastToOp, x: Elements | None, _: Elements | None) -> Elements | None:
    """Repeated."""
    shape = static_shape(op.result.type)
    return None if x is None or shape is None else np.broadcast_to(x, shape)


@evaluates(PermuteDimsOp)
def permute_dims(op: PermuteDimsOp, x: Elements | None) -> Elements | None:
    """The dimensions in another order."""
    return None if x is None else np.transpose(x, None if op.axes is None else op.axes.get_values())


@evaluates(FlipOp)
def flip(op: FlipOp, x: Elements | None) -> Elements | None:
    """In reverse order."""
    return None if x is None else np.flip(x, op.axis.value.data)


@evaluates(TileOp)
def tile(op: TileOp, x: Elements | None) -> Elements | None:
    """Laid side by side."""
    return None if x is None else np.tile(x, op.repeats.get_values())


@evaluates(RepeatOp)
def repeat(op: RepeatOp, x: Elements | None) -> Elements | None:
    """Each element repeated."""
    return None if x is None else np.repeat(x, op.repeats.value.data, None if op.axis is None else op.axis.value.data)
