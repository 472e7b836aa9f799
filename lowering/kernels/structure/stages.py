"""A kernel as a list of stages: each a perfect loop nest around one block of scalar code, with affine accesses.

Addresses are linear in a stage's axes wherever possible. The rest of the code is kept as ops, without the arithmetic
that only computes addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue

from lowering.tir_to_llvm.scalar_ops import SCALAR_LOWERINGS
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import has_no_effects
from tir_dialect.dims import Dim, constant, product, symbol, total
from tir_dialect.ops.arithmetic import AssertOp, DimOp
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, IfOp, LoopKind, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Index:
    """An index, or an address in a flat buffer: `base + sum(strides[a] * axis a)`, or a computed value."""

    base: Dim
    strides: tuple[Dim, ...]
    value: SSAValue | None = None
    """The value, if it is not linear in the axes."""
    whole: Dim | None = field(default=None, compare=False)
    """The expression over symbols for the axes, if there is one."""

    def is_axis(self, number: int) -> bool:
        """Whether the index is one axis."""
        return self.follows(number) and not self.base.terms

    def follows(self, number: int) -> bool:
        """Whether the index is one axis plus an offset."""
        wanted = tuple(constant(int(axis == number)) for axis in range(len(self.strides)))
        return self.value is None and self.strides == wanted


IndexTuple: TypeAlias = tuple[Index, ...]
"""The indices of an access, one per dimension."""


@dataclass(frozen=True)
class AffineAccess:
    """The address of an access, in elements from the start of its buffer: a linear part, and computed values
    with strides.
    """

    base: Dim
    strides: tuple[Dim, ...]
    computed: tuple[tuple[SSAValue, Dim], ...] = ()


def linear(space: IndexSpace, names: Sequence[str], value: SSAValue) -> Index:
    """An index as a function of the axes with these names; with variables of loops and blocks around the stage, which
    are no dimensions, it is a computed one.
    """
    dim = space.dim_of(value)
    if dim is not None and any(name in space.variables and name not in names for name in dim.symbols):
        dim = None
    chunks = None if dim is None else linear_parts(dim, names)
    if chunks is None:
        return Index(constant(0), (constant(0),) * len(names), value, dim)
    return Index(chunks[0], chunks[1], None, dim)


def linear_parts(dim: Dim, names: Sequence[str]) -> tuple[Dim, tuple[Dim, ...]] | None:
    """Base and strides of a linear function; `None` if it is not linear."""
    own = dim.symbols
    zeros = {name: constant(0) for name in names if name in own}
    if not zeros:
        return dim, (constant(0),) * len(names)
    base = dim.substitute(zeros)
    strides = tuple(
        dim.substitute({**zeros, name: constant(1)}) - base if name in zeros else constant(0) for name in names
    )
    again = total([base, *(stride * symbol(name) for stride, name in zip(strides, names, strict=True) if stride.terms)])
    return (base, strides) if again is dim else None


def affine_access(indices: IndexTuple, steps: Sequence[Dim], count: int) -> AffineAccess:
    """The address for indices in a nest with `count` axes, in a buffer with these strides."""
    base, strides = constant(0), (constant(0),) * count
    computed: list[tuple[SSAValue, Dim]] = []
    for index, step in zip(indices, steps, strict=True):
        if index.value is not None:
            computed.append((index.value, step))
            continue
        base = base + index.base * step
        # Most indices follow one axis.
        strides = tuple(old + new * step if new.terms else old for old, new in zip(strides, index.strides, strict=True))
    return AffineAccess(base, strides, tuple(computed))


def whole_access(indices: IndexTuple, steps: Sequence[Dim], names: Sequence[str]) -> AffineAccess | None:
    """The access as one linear function although its indices are not, as `8 * (i // 8) + i % 8`; `None` otherwise."""
    dims = [index.whole * step for index, step in zip(indices, steps, strict=True) if index.whole is not None]
    chunks = linear_parts(total(dims), names) if len(dims) == len(indices) else None
    return None if chunks is None else AffineAccess(*chunks)


Access: TypeAlias = LoadOp | StoreOp


@dataclass(frozen=True)
class Axis:
    """An iterator of a stage."""

    value: BlockArgument
    extent: Dim
    kind: IteratorKind


@dataclass(frozen=True, eq=False)
class Stage:
    """One loop nest and its code."""

    nest: Operation
    """The outermost loop, or the block if there is none."""
    block: BlockOp
    axes: tuple[Axis, ...]
    accesses: Mapping[Access, tuple[Index, ...]]
    """The indices of each load and store."""
    wholes: Mapping[Access, AffineAccess]
    """Accesses that are linear although their indices are not."""
    needed: frozenset[Operation]
    """The ops that compute what is stored."""
    pinned: frozenset[int]
    """The axes whose values the code uses outside of linear indices."""

    @property
    def body(self) -> Sequence[Operation]:
        """The code, in order."""
        return [op for op in self.block.body.block.ops if op in self.needed]

    @property
    def init(self) -> Sequence[Operation]:
        """The code for the initial values of a reduction, in order."""
        init = self.block.init
        return [] if init is None else [op for op in init.body.block.ops if op in self.needed]

    @property
    def stores(self) -> Sequence[StoreOp]:
        """The stores of the code, in order."""
        return [op for op in self.body if isinstance(op, StoreOp)]

    @property
    def loads(self) -> Iterator[LoadOp]:
        """All loads, those of branches included."""
        return (op for op in self.accesses if isinstance(op, LoadOp))

    def touches(self, buffer: SSAValue) -> bool:
        """Whether the code loads from a buffer, or stores into it."""
        return any(op.buffer is buffer for op in self.accesses)

    def of_kind(self, *kinds: IteratorKind) -> tuple[int, ...]:
        """The numbers of the axes of some kinds."""
        return tuple(number for number, axis in enumerate(self.axes) if axis.kind in kinds)

    @property
    def extents(self) -> tuple[Dim, ...]:
        """The extents of the axes."""
        return tuple(axis.extent for axis in self.axes)


@dataclass
class Program:
    """A kernel as stages."""

    header: list[Operation] = field(default_factory=list[Operation])
    """Constants and dimensions that the stages use, and assertions before them, which may be in loops."""
    buffers: list[AllocBufferOp] = field(default_factory=list[AllocBufferOp])
    """The buffers that the kernel allocates."""
    nests: list[tuple[Operation, BlockOp]] = field(default_factory=list[tuple[Operation, BlockOp]])


def find_program(func: PrimFuncOp) -> Program | None:
    """The loop nests of a function; `None` if there is anything else."""
    program = Program()
    return program if _collect(func.body.block.ops, program) and program.nests else None


def find_stages(program: Program) -> list[Stage] | None:
    """The stages of a function; `None` if the code of one is not supported."""
    stages = [find_stage(nest, block) for nest, block in program.nests]
    return None if any(stage is None for stage in stages) else [stage for stage in stages if stage is not None]


def only_stage(func: PrimFuncOp) -> Stage | None:
    """The one stage of a function; `None` if there are more, or its code is not supported."""
    program = None if func.may_alias is not None else find_program(func)
    stages = None if program is None or len(program.nests) != 1 else find_stages(program)
    return stages[0] if stages else None


def find_inner_stages(func: PrimFuncOp) -> list[Stage]:
    """The stages inside of other loops and branches of a function: those whose code is supported."""
    found: list[Stage] = []
    pending: list[Operation] = list(func.body.block.ops)
    while pending:
        op = pending.pop()
        block = _block_of_nest(op, Program()) if isinstance(op, ForOp) else None
        stage = None if block is None else find_stage(op, block)
        if stage is not None:
            found.append(stage)
        else:
            pending += [inner for region in op.regions for each in region.blocks for inner in each.ops]
    return found


def rewritten(func: PrimFuncOp) -> tuple[Program, Sequence[Stage]]:
    """The stages of a function after a rewrite that keeps them supported."""
    program = find_program(func)
    stages = None if program is None else find_stages(program)
    assert program is not None
    assert stages is not None
    return program, stages


def _collect(ops: Iterable[Operation], program: Program) -> bool:
    for op in ops:
        if isinstance(op, AllocBufferOp):
            program.buffers.append(op)
        elif isinstance(op, BlockOp) and not op.iterators and op.init is None and op.condition is None:
            inner = op.body.block.ops
            if any(isinstance(each, LoadOp | StoreOp) for each in inner):
                program.nests.append((op, op))
            elif not _collect([each for each in inner if not isinstance(each, ReadsOp | WritesOp)], program):
                return False
        elif not program.nests and _only_asserts(op):
            program.header.append(op)
        elif isinstance(op, ForOp | BlockOp):
            block = _block_of_nest(op, program)
            if block is None:
                return False
            program.nests.append((op, block))
        elif op.regions or not has_no_effects(op) or isinstance(op, LoadOp | BufferViewOp):
            return False
        else:
            program.header.append(op)
    return True


def _only_asserts(op: Operation) -> bool:
    """Whether an op has no effect but a failing assertion, as loops of `check-accesses`."""
    if isinstance(op, AssertOp):
        return True
    if not isinstance(op, ForOp | IfOp):
        return False
    inner = list(op.walk())
    changing = (each for each in inner if not isinstance(each, ForOp | IfOp | AssertOp | LoadOp | YieldOp))
    return any(isinstance(each, AssertOp) for each in inner) and all(map(has_no_effects, changing))


def _block_of_nest(op: Operation, program: Program) -> BlockOp | None:
    """The block of a perfect nest of serial loops from 0, each of which binds one iterator with its extent."""
    loops: dict[SSAValue, ForOp] = {}
    while isinstance(op, ForOp):
        if op.kind.data is not LoopKind.SERIAL or op.lower is not None or op.annotations is not None:
            return None
        loops[op.induction_var] = op
        nested = [inner for inner in op.body.block.ops if not isinstance(inner, arith.ConstantOp | DimOp)]
        program.header += [inner for inner in op.body.block.ops if isinstance(inner, arith.ConstantOp | DimOp)]
        if len(nested) != 1:
            return None
        op = nested[0]
    if not isinstance(op, BlockOp) or op.condition is not None or op.annotations is not None:
        return None
    for iterator in op.iterators:
        loop = loops.pop(iterator.binding, None)
        if loop is None or dim_of(loop.upper) is not dim_of(iterator.extent) or dim_of(loop.upper) is None:
            return None
    return None if loops else op


def find_stage(nest: Operation, block: BlockOp) -> Stage | None:
    """The stage of a nest; `None` if its code is not scalar arithmetic, loads, stores and branches without stores, or
    if it stores nothing.
    """
    body = list(block.body.walk())
    if not all(map(_is_understood, body)) or not any(isinstance(op, StoreOp) for op in body):
        return None
    space = IndexSpace(block)
    names = [space.variable(iterator.value).dim.as_symbol or "" for iterator in block.iterators]
    axes = tuple(
        Axis(iterator.value, extent, iterator.kind)
        for iterator in block.iterators
        if (extent := dim_of(iterator.extent)) is not None
    )
    accesses = {
        op: tuple(linear(space, names, index) for index in op.indices)
        for op in block.body.walk()
        if isinstance(op, LoadOp | StoreOp)
    }
    if len(axes) != len(names) or any(axis.kind is IteratorKind.OPAQUE for axis in axes):
        return None
    wholes = {
        op: whole
        for op, indices in accesses.items()
        if _computed(indices) and (whole := whole_access(indices, op.buffer_type.strides, names)) is not None
    }
    needed, used = _needed({op: () if op in wholes else indices for op, indices in accesses.items()}, block)
    pinned = frozenset(number for number, axis in enumerate(axes) if axis.value in used)
    accesses = {op: indices for op, indices in accesses.items() if op in needed}
    return Stage(nest, block, axes, accesses, wholes, needed, pinned)


def _is_understood(op: Operation) -> bool:
    match op:
        case LoadOp():
            return op.lanes is None
        case StoreOp():
            parent = op.parent_op()
            return op.lanes is None and isinstance(parent, BlockOp | InitOp)
        case IfOp():
            return bool(op.outputs)
        case YieldOp() | DimOp() | InitOp() | ReadsOp() | WritesOp():
            return True
        case _:
            return type(op) in SCALAR_LOWERINGS


def _needed(accesses: Mapping[Access, IndexTuple], block: BlockOp) -> tuple[frozenset[Operation], frozenset[SSAValue]]:
    """The ops that stores need, and the block arguments that these use outside of linear accesses."""
    found: set[Operation] = {op for op in accesses if isinstance(op, StoreOp)}
    used: set[SSAValue] = set()
    pending = [value for op in found if isinstance(op, StoreOp) for value in (op.value, *_computed(accesses[op]))]
    while pending:
        value = pending.pop()
        op = value.owner
        if not isinstance(op, Operation):
            used.add(value)
            continue
        if op in found:
            continue
        found.add(op)
        if isinstance(op, LoadOp) and op in accesses:
            pending += _computed(accesses[op])
        else:
            pending += op.operands
        pending += [
            operand for inner in op.walk() if isinstance(inner, YieldOp) and inner is not op for operand in inner.values
        ]
    inside = set(block.body.walk())
    return frozenset(op for op in found if op in inside), frozenset(used)


def _computed(indices: IndexTuple) -> list[SSAValue]:
    return [index.value for index in indices if index.value is not None]


def are_equivalent(
    stage: Stage, value: SSAValue, other: Stage, twin: SSAValue, changed: AbstractSet[SSAValue] = frozenset()
) -> bool:
    """Whether a value of a stage equals one of another stage at equal axes; buffers that are `changed` may differ."""
    op, second = value.owner, twin.owner
    if value is twin:
        return True
    if isinstance(value, BlockArgument) or not isinstance(op, Operation) or not isinstance(second, Operation):
        return False
    if type(op) is not type(second) or op.properties != second.properties or op.regions:
        return False
    if isinstance(op, LoadOp) and isinstance(second, LoadOp):
        indices = stage.accesses.get(op), other.accesses.get(second)
        return op.buffer is second.buffer and indices[0] == indices[1] is not None and op.buffer not in changed
    pairs = zip(op.operands, second.operands, strict=False)
    same = len(op.operands) == len(second.operands)
    return same and all(are_equivalent(stage, a, other, b, changed) for a, b in pairs)


_HEAVY = (
    frozenset(("math.exp", "math.exp2", "math.log", "math.log2", "math.log10", "math.tanh", "math.erf", "math.powf"))
    | frozenset(("math.sin", "math.cos", "math.log1p", "math.expm1", "math.sqrt", "arith.divf"))
    | frozenset(("tir.scaled_exp", "tir.fmod"))
)


def is_heavy(op: Operation) -> bool:
    """Whether an op takes many times as long as an addition."""
    return op.name in _HEAVY


def work_of(stage: Stage) -> Dim:
    """The work of a stage, in additions."""
    return product(stage.extents) * (4 if any(map(is_heavy, stage.needed)) else 1)


def shared_depth(stages: Sequence[Stage]) -> int:
    """How many leading axes all stages have in common, by which all accesses to shared buffers are indexed."""
    written = {store.buffer for stage in stages for store in stage.stores if _is_shared(store.buffer, stages)}
    depth = min(len(stage.of_kind(IteratorKind.SPATIAL)) for stage in stages)
    while depth > 0:
        if all(_is_by_rows(stage, stages[0], written, depth) for stage in stages):
            return depth
        depth -= 1
    return 0


def _is_shared(buffer: SSAValue, stages: Sequence[Stage]) -> bool:
    return sum(stage.touches(buffer) for stage in stages) > 1


def _is_by_rows(stage: Stage, first: Stage, written: AbstractSet[SSAValue], depth: int) -> bool:
    kinds = [axis.kind for axis in stage.axes[:depth]]
    if stage.extents[:depth] != first.extents[:depth] or any(kind is not IteratorKind.SPATIAL for kind in kinds):
        return False
    for op, indices in stage.accesses.items():
        if op.buffer in written:
            if len(indices) < depth or not all(indices[axis].is_axis(axis) for axis in range(depth)):
                return False
            if any(index.strides[axis].terms for index in indices[depth:] for axis in range(depth)):
                return False
    return True
