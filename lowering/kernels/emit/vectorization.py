"""How loops become vectors.

A nest has axes that collapse into one, an axis along which the lanes lie, and a width. What lanes exchange are shuffles
in registers: transposition, horizontal reductions, interleaving and its inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float64Type,
    IndexType,
    ReducedPrecisionFloatType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.kernels.cost_model import LONG_ROW_ELEMENTS
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.structure.stages import AffineAccess, Stage
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size, is_dtype
from tir_dialect.fast_ops import new_op
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp, lanes_of, vector_of
from tir_dialect.types import LoopKind, is_byte_table


def transposed(code: Code, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """The transpose of as many vectors as they have lanes, a power of two: halves, quarters, ... of pairs are
    swapped.
    """
    lanes, rows = len(rows), list(rows)
    step = lanes // 2
    while step:
        low = [lane if lane % (2 * step) < step else lane + lanes - step for lane in range(lanes)]
        high = [lane + step if lane % (2 * step) < step else lane + lanes for lane in range(lanes)]
        for i in range(lanes):
            if not i & step:
                pair = rows[i], rows[i + step]
                rows[i], rows[i + step] = shuffle(code, pair, low), shuffle(code, pair, high)
        step //= 2
    return rows


def row_sums(code: Code, rows: Sequence[SSAValue]) -> SSAValue:
    """The horizontal sums of as many vectors as they have lanes, a power of two."""
    return folded_rows(code, rows, lambda a, b: code.value(arith.AddfOp(a, b)))


def folded_rows(code: Code, rows: Sequence[SSAValue], combine: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """Horizontal reductions of some vectors, a power of two and at most as many as they have lanes, in one vector.

    Halves of pairs are combined, then quarters; when there is one vector left, its own halves.
    """
    rows, count = list(rows), len(rows)
    lanes = lanes_of(rows[0].type) or 1
    step = lanes // 2
    while step:
        half = len(rows) // 2
        if half:
            low = [lane if lane % (2 * step) < step else lane + lanes - step for lane in range(lanes)]
            high = [lane + step if lane % (2 * step) < step else lane + lanes for lane in range(lanes)]
            pairs = [(rows[i], rows[i + half]) for i in range(half)]
            rows = [combine(shuffle(code, pair, low), shuffle(code, pair, high)) for pair in pairs]
        else:
            (value,) = rows
            rows = [combine(value, shuffle(code, (value, value), [lane ^ step for lane in range(lanes)]))]
        step //= 2
    return rows[0] if count == lanes else shuffle(code, (rows[0], rows[0]), range(0, lanes, lanes // count))


def shuffle(code: Code, pair: tuple[SSAValue, SSAValue], order: Sequence[int]) -> SSAValue:
    """The elements of two concatenated vectors at the indices `order`."""
    element = element_of(pair[0])
    mask = {"mask": DenseArrayBase.from_list(i64, list(order))}
    return code.value(new_op(vector.ShuffleOp, pair, (vector_of(element, len(order)),), mask))


def concatenated(code: Code, first: SSAValue, second: SSAValue) -> SSAValue:
    """The elements of two vectors as one."""
    return shuffle(code, (first, second), range(2 * (lanes_of(first.type) or 1)))


def bits_as(code: Code, value: SSAValue, element: Attribute, lanes: int) -> SSAValue:
    """The bits of a vector as so many elements of another type, the lowest bits first."""
    return code.value(new_op(vector.BitcastOp, (value,), (vector_of(element, lanes),)))


def element_of(value: SSAValue) -> Attribute:
    """The type of the elements of a vector."""
    if not isinstance(value.type, VectorType):
        raise TypeError(f"expected a vector, got {value.type}")
    return cast("VectorType[Attribute]", value.type).element_type


def is_power_of_two(number: int) -> bool:
    """Whether a number of lanes can be halved down to one."""
    return number > 1 and not number & (number - 1)


Sources = Sequence[tuple[int, int]]
"""For each lane the number of a vector, and the lane there."""


def deinterleave(code: Code, vectors: Sequence[SSAValue], count: int) -> list[list[SSAValue]]:
    """The components that are interleaved in consecutive vectors.

    Even elements are separated from odd ones while the number of components is even: `2**k` components take `k`
    shuffles each.
    """
    if count == 1:
        return [list(vectors)]
    lanes = _lanes(vectors)
    if count % 2:
        length = len(vectors) // count * lanes
        orders = [[divmod(position * count + first, lanes) for position in range(length)] for first in range(count)]
        return [_taken(code, vectors, sources) for sources in orders]
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    halves = ([shuffle(code, pair, range(first, 2 * lanes, 2)) for pair in pairs] for first in (0, 1))
    evens, odds = (deinterleave(code, half, count // 2) for half in halves)
    return [component for pair in zip(evens, odds, strict=True) for component in pair]


def interleave(code: Code, components: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    """The inverse of `deinterleave`: consecutive vectors in which components are interleaved."""
    count = len(components)
    if count == 1:
        return list(components[0])
    lanes, each = _lanes(components[0]), len(components[0])
    if count % 2:
        elements = (divmod(number, count) for number in range(count * each * lanes))
        sources = [(component * each + position // lanes, position % lanes) for position, component in elements]
        return _taken(code, [vector for component in components for vector in component], sources)
    evens, odds = interleave(code, components[::2]), interleave(code, components[1::2])
    order = [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)]
    halves = (order[:lanes], order[lanes:])
    return [shuffle(code, pair, half) for pair in zip(evens, odds, strict=True) for half in halves]


def _taken(code: Code, vectors: Sequence[SSAValue], sources: Sources) -> list[SSAValue]:
    """Vectors of the elements of some lanes, in their order."""
    lanes = _lanes(vectors)
    return [_gathered(code, vectors, sources[first : first + lanes]) for first in range(0, len(sources), lanes)]


def _gathered(code: Code, vectors: Sequence[SSAValue], sources: Sources) -> SSAValue:
    """A vector of the elements of some lanes: shuffles the first two vectors, then the result and the next one."""
    lanes = len(sources)
    first, *others = sorted({vector for vector, _ in sources})
    value, lane_of = vectors[first], [lane for _, lane in sources]
    for number in others:
        order = [
            lanes + lane if vector == number else old for (vector, lane), old in zip(sources, lane_of, strict=True)
        ]
        value, lane_of = shuffle(code, (value, vectors[number]), order), list(range(lanes))
    return value


def _lanes(vectors: Sequence[SSAValue]) -> int:
    return SSAValue.get(vectors[0], type=VectorType).type.get_shape()[0]


@dataclass(frozen=True)
class AxisGroup:
    """Adjacent axes collapsed into one; each access advances with the last of them."""

    axes: tuple[int, ...]
    extent: Dim

    @property
    def last(self) -> int:
        """The axis that stands for all."""
        return self.axes[-1]


def collapse_axes(kernel: Kernel, stages: Sequence[Stage], axes: Sequence[int]) -> list[AxisGroup]:
    """The fewest groups of the axes: all accesses of all stages are linear along a group.

    An axis of extent 1 is part of the next group, so that threads can partition that one.
    """
    accesses = [access for stage in stages for access in accesses_of(kernel, stage)]
    pinned = {axis for stage in stages for axis in stage.pinned}
    extents = stages[0].extents
    groups: list[AxisGroup] = []
    for axis in axes:
        if groups and axis not in pinned and groups[-1].last not in pinned:
            last = groups[-1].last
            is_one = groups[-1].extent.constant_value == 1  # the index is 0, whatever the stride
            if is_one or all(access.strides[last] is access.strides[axis] * extents[axis] for access in accesses):
                groups[-1] = AxisGroup((*groups[-1].axes, axis), groups[-1].extent * extents[axis])
                continue
        groups.append(AxisGroup((axis,), extents[axis]))
    return groups


def accesses_of(kernel: Kernel, stage: Stage) -> Iterable[AffineAccess]:
    """The accesses of a stage, as they are in memory."""
    return (kernel.access(stage, op) for op in stage.accesses)


def choose_lane_axes(kernel: Kernel, stages: Sequence[Stage], groups: Sequence[AxisGroup]) -> AxisGroup:
    """The group for the lanes: most accesses are contiguous along it, and few are strided."""

    def score(group: AxisGroup) -> tuple[int, int]:
        points = 0
        for stage in stages:
            written = {store.buffer for store in stage.stores} if stage.init else set[SSAValue]()
            for op in stage.accesses:
                if op.buffer not in written:
                    stride = kernel.access(stage, op).strides[group.last]
                    weight = 3 if isinstance(op, StoreOp) else 2
                    points += weight if stride.constant_value == 1 else 0 if not stride.terms else -weight
        short = group.extent.constant_value
        return points if short is None or short >= 4 else points - 4, groups.index(group)

    return max(groups, key=score)


HIGH_LATENCY = frozenset(
    f"math.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1"),
        *("log", "log10", "log1p", "log2", "powf", "sin", "sinh", "tan", "tanh"),
    )
)
"""Functions that are long dependence chains."""


def lane_count(
    kernel: Kernel, stages: Sequence[Stage], group: AxisGroup, left_out: AbstractSet[Operation] = frozenset()
) -> int:
    """Lanes such that the widest values along a group fill one register, leaving out some ops.

    Values that are the same in all lanes, such as the index of a gathered row, do not count.
    """
    if kernel.target.arch.startswith("x86") and kernel.target.vector_bits >= 256:
        left_out = left_out | {op for stage in stages for op in _byte_indices(stage)}
    widest = max((bits for stage in stages for bits in _widths(stage, group, left_out)), default=32)
    return kernel.target.lanes(widest)


def _byte_indices(stage: Stage) -> Iterator[Operation]:
    """Conversions of bytes to indices of tables of 256, which are looked up as bytes (`intrinsic_ops.look_up`)."""
    for load in stage.loads:
        if is_byte_table(load.buffer_type):
            op = load.indices[0].owner
            while isinstance(op, arith.IndexCastOp | arith.ExtUIOp) and op.result.has_one_use():
                yield op
                op = op.operands[0].owner


def _widths(stage: Stage, group: AxisGroup, left_out: AbstractSet[Operation]) -> Iterator[int]:
    for op in _varying(stage, group) & (stage.needed - left_out):
        if isinstance(op, LoadOp | StoreOp):
            yield 8 * byte_size(op.buffer_type.dtype)
        for result in op.results:
            yield _bits(result.type, group.last in stage.pinned)


def _varying(stage: Stage, group: AxisGroup) -> frozenset[Operation]:
    """The ops that depend on an axis of a group."""
    values: set[SSAValue] = {stage.axes[axis].value for axis in group.axes}
    found: set[Operation] = set()
    for op in stage.block.body.walk():
        if not values.isdisjoint(op.operands):
            found.add(op)
            values.update(op.results)
            parent = op.parent_op()
            if isinstance(op, YieldOp) and parent is not None:
                found.add(parent)
                values.update(parent.results)
    return frozenset(found)


def _bits(kind: Attribute, pinned: bool) -> int:
    if isinstance(kind, IndexType):
        return 32 if pinned else 8
    if isinstance(kind, BFloat16Type | Float16Type | ReducedPrecisionFloatType):
        return 32
    return 8 * byte_size(kind) if is_dtype(kind) else 8


def masks_are_cheap(kernel: Kernel, stages: Sequence[Stage]) -> bool:
    """Whether masked loads and stores are cheap: with AVX-512 for all elements, with AVX2 for those of four
    bytes and more.
    """
    if not kernel.target.arch.startswith("x86"):
        return False
    if masks_are_registers(kernel):
        return True
    sizes = (byte_size(op.buffer_type.dtype) for stage in stages for op in stage.accesses)
    return kernel.target.vector_bits >= 256 and min(sizes, default=4) >= 4


def registers_per_iteration(
    kernel: Kernel, stages: Sequence[Stage], group: AxisGroup, lanes: int, has_rows: bool = False
) -> int:
    """Registers of an iteration: four for dependence chains, two if rows may be short, else one. Without masks, as many
    as fill one stored register.

    The out-of-order window of some sixty instructions does not reach the next iteration. With registers of 512 bits
    functions are computed by tables, which are shorter.
    """
    functions = [op for stage in stages for op in stage.needed if _has_high_latency(op)]
    length = group.extent.constant_value
    may_be_short = has_rows and (length is None or length < LONG_ROW_ELEMENTS)
    several = 2 if may_be_short or any(map(_has_two_paths, functions)) else 4
    wanted = kernel.target.schedule.map_vectors or (several if functions and kernel.target.vector_bits < 512 else 1)
    if lanes == 1:
        return 1
    if not masks_are_cheap(kernel, stages):
        wanted = 1 if has_rows else _registers_per_store(kernel, stages, lanes)
    while wanted > 1 and length is not None and length < wanted * lanes:
        wanted //= 2
    return wanted


def _has_high_latency(op: Operation) -> bool:
    """Whether an op is a long dependence chain; a known power is a few multiplications and roots."""
    return op.name in HIGH_LATENCY and not (
        op.name == "math.powf" and isinstance(op.operands[1].owner, arith.ConstantOp)
    )


def _registers_per_store(kernel: Kernel, stages: Sequence[Stage], lanes: int) -> int:
    """Computed registers that are packed into one stored register, four at most.

    AVX-512 stores narrow results directly. With AVX2 the packing of f64 takes longer than narrow stores.
    """
    if not kernel.target.arch.startswith("x86") or masks_are_registers(kernel):
        return 1
    if any(isinstance(load.result.type, Float64Type) for stage in stages for load in stage.loads):
        return 1
    sizes = (byte_size(store.buffer_type.dtype) for stage in stages for store in stage.stores)
    return max(1, min(4, kernel.target.lanes(8 * max(sizes)) // lanes))


def _has_two_paths(op: Operation) -> bool:
    """Whether four of a function exceed the registers of AVX2: those with a root have two paths."""
    return op.name in ("math.asin", "math.acos")


def masks_are_registers(kernel: Kernel) -> bool:
    """Whether masks are free, as with AVX-512. With AVX2 on Zen a masked store takes as long as a dozen others."""
    return kernel.target.arch.startswith("x86") and kernel.target.vector_bits >= 512


Step = Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""Maps the index of an element and its accumulators to the new values of these."""


Range: TypeAlias = SSAValue | tuple[SSAValue, SSAValue] | None
"""Some lanes: the first so many, or a range, whose end may be beyond all lanes; `None` for all."""


def vector_iteration(
    kernel: Kernel,
    start: SSAValue,
    lanes: int,
    left: Range,
    accumulators: Sequence[SSAValue],
    step: Step,
    before: Callable[[SSAValue], None] | None = None,
) -> None:
    """A vectorised iteration from `start` on, for `lanes` elements, or for those of them that are `left`.

    Each accumulator is a buffer with an element for each lane. What is done `before` is done in all lanes.
    """
    code = kernel.code
    with code.loop(code.index(lanes), "lane", kind=LoopKind.VECTORIZED if lanes > 1 else LoopKind.SERIAL) as lane:
        if before is not None:
            before(lane)
        old = [code.load(buffer, [lane]) for buffer in accumulators]
        index = code.add(start, lane)
        if left is None:
            new = step(index, old)
        else:
            branch = IfOp(_is_left(kernel, lane, left), result_types=[value.type for value in old])
            code.emit(branch)
            with code.inside(branch.then_body.block):
                values = step(index, old)
                if old:
                    code.emit(YieldOp(*values))
            if old:
                with code.inside(branch.else_body.block):
                    code.emit(YieldOp(*old))
            new = list(branch.outputs)
        for buffer, value in zip(accumulators, new, strict=True):
            code.store(value, buffer, [lane])


def _is_left(kernel: Kernel, lane: SSAValue, left: SSAValue | tuple[SSAValue, SSAValue]) -> SSAValue:
    code = kernel.code
    if isinstance(left, SSAValue):
        return code.compare("slt", lane, left)
    low, high = left
    return code.value(arith.AndIOp(code.compare("sge", lane, low), code.compare("slt", lane, high)))
