"""Collapsing of axes: where the memory layout allows, several loops become a single longer one.

Vector widths that suit some code, and whether the target masks vectors efficiently.

Loops whose iterations become the lanes of a vector, all of them or the first few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, IndexType, ReducedPrecisionFloatType
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.accesses import AffineAccess
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size, is_dtype
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import LoopKind


@dataclass(frozen=True)
class Group:
    """Adjacent axes collapsed into one; each access advances with the last of them."""

    axes: tuple[int, ...]
    extent: Dim

    @property
    def last(self) -> int:
        """The axis that stands for all."""
        return self.axes[-1]


def group_axes(kernel: Kernel, stages: Sequence[Stage], axes: Sequence[int]) -> list[Group]:
    """The fewest groups of the axes, which all stages have: no access may jump between neighbours of a group.

    An axis with one value is part of the next group, so that threads share that one.
    """
    accesses = [access for stage in stages for access in accesses_of(kernel, stage)]
    pinned = {axis for stage in stages for axis in stage.pinned}
    extents = stages[0].extents
    groups: list[Group] = []
    for axis in axes:
        if groups and axis not in pinned and groups[-1].last not in pinned:
            last = groups[-1].last
            is_one = groups[-1].extent.constant_value == 1  # at 0, wherever that leads
            if is_one or all(access.strides[last] is access.strides[axis] * extents[axis] for access in accesses):
                groups[-1] = Group((*groups[-1].axes, axis), groups[-1].extent * extents[axis])
                continue
        groups.append(Group((axis,), extents[axis]))
    return groups


def accesses_of(kernel: Kernel, stage: Stage) -> Iterable[AffineAccess]:
    """All accesses that are made in memory."""
    return (kernel.access(stage, op) for op in stage.accesses)


def lane_group(kernel: Kernel, stages: Sequence[Stage], groups: Sequence[Group]) -> Group:
    """The group along which lanes lie best: where most accesses are contiguous, and as few as possible scattered."""

    def score(group: Group) -> tuple[int, int]:
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


LATENT = frozenset(
    f"math.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1"),
        *("log", "log10", "log1p", "log2", "powf", "sin", "sinh", "tan", "tanh"),
    )
)
"""Functions whose instructions wait for each other."""

LONG_ROW = 256
"""Elements of a row, beside which those that fill no iteration of four registers do not count."""


def lane_count(
    kernel: Kernel, stages: Sequence[Stage], group: Group, left_out: AbstractSet[Operation] = frozenset()
) -> int:
    """Lanes such that the widest values along a group, without those of some ops, fill one register.

    What is the same for all lanes, as the number of a row that is gathered, does not count.
    """
    widest = max((bits for stage in stages for bits in _widths(stage, group, left_out)), default=32)
    return kernel.target.lanes(widest)


def _widths(stage: Stage, group: Group, left_out: AbstractSet[Operation]) -> Iterator[int]:
    for op in _varying(stage, group) & (stage.needed - left_out):
        if isinstance(op, LoadOp | StoreOp):
            yield 8 * byte_size(op.buffer_type.dtype)
        for result in op.results:
            yield _bits(result.type, group.last in stage.pinned)


def _varying(stage: Stage, group: Group) -> frozenset[Operation]:
    """The ops that an axis of a group, or what follows from it, is an operand of."""
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
    """Whether the machine loads and stores under masks: AVX-512 any elements, AVX2 those of four bytes and more."""
    if not kernel.target.arch.startswith("x86"):
        return False
    if masks_are_registers(kernel):
        return True
    sizes = (byte_size(op.buffer_type.dtype) for stage in stages for op in stage.accesses)
    return kernel.target.vector_bits >= 256 and min(sizes, default=4) >= 4


def registers_per_iteration(
    kernel: Kernel, stages: Sequence[Stage], group: Group, lanes: int, has_rows: bool = False
) -> int:
    """Four where functions make a register wait for itself, two if there are rows that may be short, else one; where
    there are no masks, as many as are stored together.

    The processor looks some sixty instructions ahead, which is not as far as the next iteration. Registers of 512 bits
    have functions by tables, which are shorter.
    """
    functions = [op for stage in stages for op in stage.needed if _is_latent(op)]
    length = group.extent.constant_value
    may_be_short = has_rows and (length is None or length < LONG_ROW)
    several = 2 if may_be_short or any(map(_fills_registers, functions)) else 4
    wanted = kernel.target.schedule.map_vectors or (several if functions and kernel.target.vector_bits < 512 else 1)
    if lanes == 1:
        return 1
    if not masks_are_cheap(kernel, stages):
        wanted = 1 if has_rows else _parts_of_a_result(kernel, stages, lanes)
    while wanted > 1 and length is not None and length < wanted * lanes:
        wanted //= 2
    return wanted


def _is_latent(op: Operation) -> bool:
    """Whether instructions of an op wait for each other; powers that are known are products and roots."""
    return op.name in LATENT and not (op.name == "math.powf" and isinstance(op.operands[1].owner, arith.ConstantOp))


def _parts_of_a_result(kernel: Kernel, stages: Sequence[Stage], lanes: int) -> int:
    """How many registers that are computed have room in one that is stored, at most four: they are packed together.

    AVX-512 stores parts of a register as well, and AVX2 converts f64 into halves of one, whose packing takes longer.
    """
    if not kernel.target.arch.startswith("x86") or masks_are_registers(kernel):
        return 1
    if any(isinstance(load.result.type, Float64Type) for stage in stages for load in stage.loads):
        return 1
    sizes = (byte_size(store.buffer_type.dtype) for stage in stages for store in stage.stores)
    return max(1, min(4, kernel.target.lanes(8 * max(sizes)) // lanes))


def _fills_registers(op: Operation) -> bool:
    """Whether four of a function would not fit the registers of AVX2: those with a root have two ways."""
    return op.name in ("math.asin", "math.acos")


def masks_are_registers(kernel: Kernel) -> bool:
    """Whether a mask costs nothing at all: AVX-512. With AVX2 on Zen a masked store takes as long as a dozen others."""
    return kernel.target.arch.startswith("x86") and kernel.target.vector_bits >= 512


Step = Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""From the index of an element and the values of its accumulators to the new values."""


Range: TypeAlias = SSAValue | tuple[SSAValue, SSAValue] | None
"""Some lanes: the first so many, or those from one on before another, which may be beyond all; `None` for all."""


def vector_iteration(
    kernel: Kernel,
    start: SSAValue,
    lanes: int,
    left: Range,
    accumulators: Sequence[SSAValue],
    step: Step,
    before: Callable[[SSAValue], None] | None = None,
) -> None:
    """A step for the elements from `start` on: for `lanes` of them, or, of these, for those `left`.

    Each accumulator is a buffer, of which every lane has its own element. What is done `before` with the number of a
    lane is done in all of them.
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
