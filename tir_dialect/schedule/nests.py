"""New nests of loops around blocks, moved blocks, allocations out of loops; and bindings and predicates simplified, so
that they do not grow with each primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange, read_buffers, written_buffers
from tir_dialect.analysis.structure import ancestors, enclosing_block, is_defined_inside
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import (
    Materializer,
    ancestor_in,
    blocks_in,
    erase_idle,
    is_index_op,
    rebuild_block,
    set_condition,
    statements,
    users_of,
)
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.motion import describe, own_allocation
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, conditions_of, shape_of
from tir_dialect.types import BufferType, IteratorKind, LoopKind, as_name_hint


def simplify_bindings(self: ScheduleState, root: Operation) -> None:
    """Computes the bindings and conditions of all blocks inside `root` anew where they have a simpler form."""
    for block in blocks_in(root):
        space = _space_of(self, block)
        emitter = Materializer(self.func, space, InsertPoint.before(block))
        iterators = [(iterator.kind, iterator.binding, iterator.extent) for iterator in block.iterators]
        for position, (kind, binding, extent) in enumerate(iterators):
            dim = space.dim_of(binding)
            if dim is None:
                continue
            if (simpler := space.prover.simplify(dim)) is dim:
                emitter.remember(dim, binding)
                continue
            value = emitter.emit(simpler)
            value.name_hint = value.name_hint or binding.name_hint
            iterators[position] = (kind, value, extent)
        conditions = conditions_of(space, block)
        simplified = simplify_conditions(space, conditions)
        condition = block.condition if simplified == conditions else emit_conditions(emitter, simplified)
        rebuild_block(block, iterators, condition)


def _space_of(self: ScheduleState, block: BlockOp) -> IndexSpace:
    """What the bindings of a block may refer to: of a block around it only the iterators, not the loops outside."""
    around = enclosing_block(block)
    return self.space if around is None else IndexSpace(around)


def prove_conditions(self: ScheduleState, root: Operation) -> None:
    """Drops the conditions of blocks inside `root` that can be shown to always hold there."""
    for block in blocks_in(root):
        space = _space_of(self, block)
        conditions = conditions_of(space, block)
        # the loops outside of the block around say more than its iterators
        known = conditions_of(self.space, block)
        left = [c for c, each in zip(conditions, known, strict=True) if not _holds(self, each)]
        if len(left) < len(conditions):
            emitter = Materializer(self.func, space, InsertPoint.before(block))
            set_condition(block, emit_conditions(emitter, left))


def _holds(self: ScheduleState, condition: Less | SSAValue) -> bool:
    return isinstance(condition, Less) and self.space.prover.less(condition.lhs, condition.rhs) is True


def simplify_conditions(space: IndexSpace, conditions: list[Less | SSAValue]) -> list[Less | SSAValue]:
    """The conditions in simplest form, without those that always hold and repetitions."""
    found: list[Less | SSAValue] = []
    for condition in conditions:
        if isinstance(condition, Less):
            simpler = Less(space.prover.simplify(condition.lhs), condition.rhs)
            # what was not known to hold is not known now, unless it has another form
            if simpler != condition and space.prover.less(simpler.lhs, simpler.rhs) is True:
                continue
            condition = simpler
        if condition not in found:
            found.append(condition)
    return found


def emit_conditions(emitter: Materializer, conditions: list[Less | SSAValue]) -> SSAValue | None:
    """A value that tells whether all conditions hold; `None` if there are none."""
    result: SSAValue | None = None
    for condition in conditions:
        value = emit_less(emitter, condition) if isinstance(condition, Less) else condition
        result = value if result is None else emitter.insert(arith.AndIOp(result, value))
    return result


def emit_less(emitter: Materializer, condition: Less) -> SSAValue:
    """The value of a comparison."""
    return emitter.insert(arith.CmpiOp(emitter.emit(condition.lhs), emitter.emit(condition.rhs), "slt"))


def check_cloneable(self: ScheduleState, block: BlockOp, value: SSAValue) -> None:
    """Refuses a value of a block that is not computed from iterators and values from outside by pure ops."""
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or not is_defined_inside(owner.results[0], block):
            continue
        if not is_index_op(owner):
            name, found = block.block_name.data, f"'{owner.name}'"
            raise self.error(f'an index in block "{name}" comes from {found}, expected iterators and sizes only')
        pending += owner.operands


class Cloner:
    """Appends copies of the ops that compute values to a block; `mapping` has what is there already."""

    def __init__(self, target: IRBlock, mapping: dict[SSAValue, SSAValue]):
        self._target = target
        self.mapping = mapping

    def values(self, wanted: Sequence[SSAValue]) -> list[SSAValue]:
        """The copies of values of a block that is being copied; others are used as they are."""
        return [self._value(value) for value in wanted]

    def _value(self, value: SSAValue) -> SSAValue:
        owner = value.owner
        if (
            value in self.mapping
            or not isinstance(owner, Operation)
            or not isinstance(owner.parent_op(), BlockOp | InitOp)
        ):
            return self.mapping.get(value, value)
        for operand in owner.operands:
            self._value(operand)
        clone = owner.clone(self.mapping)
        self._target.add_op(clone)
        return self.mapping[value]


@dataclass(frozen=True)
class Redirect:
    """Copies ops with their accesses of some buffers sent to others, which have one dimension more."""

    targets: Mapping[SSAValue, SSAValue]
    axis: int
    """Where the new dimension is."""

    index: SSAValue
    """The index in it."""

    def clone_into(
        self, source: IRBlock, target: IRBlock, mapping: Mapping[SSAValue, SSAValue], skip_init: bool = False
    ) -> None:
        """Appends the copies to a block; `mapping` has what stands for values from outside."""
        values = dict(mapping)
        for op in source.ops:
            if skip_init and isinstance(op, InitOp):
                continue
            if isinstance(op, LoadOp) and op.buffer in self.targets:
                load = LoadOp(self.targets[op.buffer], self._indices(op, values))
                load.result.name_hint = op.result.name_hint
                values[op.result] = load.result
                target.add_op(load)
            elif isinstance(op, StoreOp) and op.buffer in self.targets:
                value = values.get(op.value, op.value)
                target.add_op(StoreOp(value, self.targets[op.buffer], self._indices(op, values)))
            else:
                target.add_op(op.clone(values))

    def _indices(self, op: LoadOp | StoreOp, values: Mapping[SSAValue, SSAValue]) -> list[SSAValue]:
        found = [values.get(index, index) for index in op.indices]
        found.insert(self.axis, self.index)
        return found


def check_plain_conditions(self: ScheduleState, block: BlockOp) -> None:
    """Refuses a block with a condition other than that its iterators stay below their extents."""
    bounds = [
        Less(binding, extent)
        for it in block.iterators
        if (binding := self.space.dim_of(it.binding)) is not None
        and (extent := self.space.dim_of(it.extent)) is not None
    ]
    if any(condition not in bounds for condition in conditions_of(self.space, block)):
        raise self.error(f'block "{block.block_name.data}" has a condition that is not about the ends of its iterators')


def check_no_branch(self: ScheduleState, block: BlockOp) -> None:
    """Refuses a block in a branch: it would lose the condition."""
    parent = block.parent_op()
    while isinstance(parent, ForOp | IfOp):
        if isinstance(parent, IfOp):
            raise self.error(f"block \"{block.block_name.data}\" stands in a 'tir.if'")
        parent = parent.parent_op()


def move_with_new_loops(
    self: ScheduleState,
    block: BlockOp,
    ranges: Sequence[AxisRange],
    point: InsertPoint,
    *,
    preserve_unit_loops: bool = False,
) -> list[ForOp]:
    """Moves a block to `point` with a loop for each range of an iterator, and removes its old loops.

    Ranges of one value get no loop, unless those are to be preserved. Iterators that the ranges let leave their domains
    get a condition.
    """
    emitter = Materializer(self.func, self.space, point)
    loops = [
        None
        if axis.extent.constant_value == 1 and not preserve_unit_loops
        else ForOp(emitter.emit(axis.extent), name_hint=_hint(value))
        for axis, value in zip(ranges, block.body.block.args, strict=True)
    ]
    built = [loop for loop in loops if loop is not None]
    anchor: Operation = block
    parent = block.parent_op()
    # the old bindings go with the old loops
    rebuild_block(block, [(it.kind, it.extent, it.extent) for it in block.iterators], None)
    block.detach()
    for loop in reversed(built):
        loop.location = block.location
        loop.body.block.add_op(anchor)
        anchor = loop
    Rewriter.insert_op(anchor, point)
    erase_idle(parent)
    lowers = self.carry([axis.lower for axis in ranges])
    emitter = Materializer(self.func, self.space, InsertPoint.before(block))
    iterators: list[tuple[IteratorKind, SSAValue, SSAValue]] = []
    conditions: list[Less | SSAValue] = []
    for iterator, lower, loop in zip(block.iterators, lowers, loops, strict=True):
        binding = lower if loop is None else lower + self.symbol(loop)
        extent = self.space.dim_of(iterator.extent)
        limit = iterator.extent if extent is None else emitter.emit(extent)
        iterators.append((iterator.kind, emitter.emit(binding), limit))
        if self.space.less_equal(0, binding) is not True:
            conditions.append(Less(constant(-1), binding))
        if extent is not None and self.space.prover.less(binding, extent) is not True:
            conditions.append(Less(binding, extent))
    rebuild_block(block, iterators, emit_conditions(emitter, conditions))
    return built


def _hint(value: SSAValue) -> str:
    """A name for the loop of an iterator: `i` for `vi`."""
    name = value.name_hint or "i"
    return name[1:] if name.startswith("v") and name[1:].isidentifier() else name


def sink_allocations(buffers: Iterable[SSAValue], loop: ForOp, may: Callable[[SSAValue, ForOp], bool]) -> None:
    """Moves allocations among buffers into `loop`, or loops around it, as far as all uses are there and it `may`."""
    around = [loop, *ancestors(loop)]
    for buffer in buffers:
        allocation, users = buffer.owner, users_of(buffer)
        if not isinstance(allocation, AllocBufferOp) or (home := allocation.parent_op()) not in around:
            continue
        position = None
        for op in reversed(around[: around.index(home or loop)]):
            held = isinstance(op, ForOp) and all(is_inside(user, op) for user in users)
            if not isinstance(op, ForOp) or not held or not may(buffer, op):
                break
            position = op
        if position is not None:
            allocation.detach()
            Rewriter.insert_op(allocation, InsertPoint.at_start(position.body.block))


def insert_nest(
    self: ScheduleState,
    block: BlockOp,
    ranges: Sequence[AxisRange],
    hints: Sequence[str],
    point: InsertPoint,
    location: LocationAttr = UNKNOWN_LOC,
) -> None:
    """Puts a new block at `point` with a loop per iterator, which runs over the range and binds the iterator."""
    emitter = Materializer(self.func, self.space, point)
    outer: Operation = block
    for axis, hint, number in reversed(list(zip(ranges, hints, range(len(ranges)), strict=True))):
        upper = emitter.emit(axis.lower + axis.extent)
        lower = emitter.emit(axis.lower) if axis.lower.terms else None
        loop = ForOp(upper, lower=lower, name_hint=hint)
        block.operands[number] = loop.induction_var
        loop.body.block.add_op(outer)
        outer = loop
    for op in (block, *(op for op in outer.walk() if isinstance(op, ForOp))):
        op.location = location
    Rewriter.insert_op(outer, point)


def copy_block(
    self: ScheduleState, name: str, source: SSAValue, target: SSAValue, box: Sequence[AxisRange], point: InsertPoint
) -> BlockOp:
    """A block, with its loops at `point`, that copies a box of one buffer to the same position of another."""
    emitter = Materializer(self.func, self.space, point)
    extents = [emitter.emit(extent) for extent in shape_of(target)]
    hints = [f"ax{axis}" for axis in range(len(box))]
    iterators = [(IteratorKind.SPATIAL, extent, extent) for extent in extents]
    block = BlockOp(name, iterators, name_hints=[f"v{hint}" for hint in hints])
    indices = block.body.block.args
    load = LoadOp(source, indices)
    block.body.block.add_ops([load, StoreOp(load.result, target, indices)])
    insert_nest(self, block, box, hints, point)
    return block


def whole(buffer: SSAValue) -> list[AxisRange]:
    """The box of all elements."""
    return [AxisRange(constant(0), extent) for extent in shape_of(buffer)]


def allocate_like(self: ScheduleState, buffer: SSAValue, name: str, scope: str, point: InsertPoint) -> SSAValue:
    """A new buffer with the shape and dtype of another, in row-major order."""
    kind = SSAValue.get(buffer, type=BufferType).type
    op = AllocBufferOp(BufferType(kind.shape, kind.dtype, scope=scope))
    op.buffer.name_hint = as_name_hint(name)
    Rewriter.insert_op(op, point)
    return op.buffer


def check_sequential(self: ScheduleState, loop: ForOp, buffer: SSAValue) -> None:
    """Refuses a buffer allocated in a loop of which iterations, or those of loops between, may run at the same time."""
    for op in ancestors(own_allocation(self, buffer)):
        if isinstance(op, ForOp) and op.kind.data not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            raise self.error(
                f'buffer "{buffer.name_hint}" is allocated in {op.kind.data.value} loop "{op.induction_var.name_hint}"'
            )
        if op is loop:
            break


def earlier_user(self: ScheduleState, buffer: SSAValue, users: Sequence[Operation]) -> Operation | None:
    """The op before which a buffer has to be allocated for its new users, `None` if nothing has to change.

    Refuses users that stand in other loops than the allocation.
    """
    allocation = buffer.owner
    if not isinstance(allocation, AllocBufferOp) or (body := allocation.parent) is None:
        return None
    first: Operation = allocation
    for user in users:
        top = ancestor_in(body, user)
        if top is None:
            raise self.error(f'{describe(user)} cannot use buffer "{buffer.name_hint}", which is allocated in a loop')
        first = min(first, top, key=body.get_operation_index)
    return None if first is allocation else first


def hoist_allocation(buffer: SSAValue, position: Operation) -> None:
    """Moves the allocation of a buffer before an op."""
    if isinstance(buffer.owner, Operation):
        buffer.owner.detach()
        Rewriter.insert_op(buffer.owner, InsertPoint.before(position))


def check_movable(self: ScheduleState, block: BlockOp, loop: ForOp) -> None:
    """ScheduleError for blocks that cannot be moved, and loops that no block can be moved into."""
    name, target = block.block_name.data, loop.induction_var.name_hint
    if is_inside(block, loop):
        raise self.error(f'block "{name}" is already inside of loop "{target}"')
    for iterator in block.iterators:
        if iterator.kind not in (IteratorKind.SPATIAL, IteratorKind.REDUCE):
            raise self.error(
                f'block "{name}" has an iterator of kind {iterator.kind.value}, expected spatial and reduce ones only'
            )
    if block.init is None and not read_buffers(block).isdisjoint(written_buffers(block)):
        raise self.error(f'block "{name}" updates what it reads, so it may not run more often')
    for op in ancestors(loop):
        if is_inside(block, op):
            break
        if isinstance(op, IfOp | BlockOp):
            raise self.error(f'loop "{target}" stands in a \'{op.name}\' without block "{name}"')
    check_no_branch(self, block)
    check_plain_conditions(self, block)


def insert_point_in(
    self: ScheduleState, loop: ForOp, index: int, *, after: Sequence[Operation] = (), before: Sequence[Operation] = ()
) -> InsertPoint:
    """The position for a block in a loop: the last one that there is for -1, the first one for -2, or after `index`
    ops.

    It is after the ops that hold `after`, and before those that hold `before`; refuses another `index`.
    """
    ops = [op for op in statements(loop.body.block) if not isinstance(op, AllocBufferOp)]
    first = max((number + 1 for number, op in enumerate(ops) if _holds_any(op, after)), default=0)
    last = min((number for number, op in enumerate(ops) if _holds_any(op, before)), default=len(ops))
    number = {-1: last, -2: first}.get(index, index)
    if not first <= number <= last:
        name = loop.induction_var.name_hint
        raise self.error(f'expected an index of {first} to {last}, or -1 or -2, in loop "{name}", got {index}')
    return InsertPoint.at_end(loop.body.block) if number == len(ops) else InsertPoint.before(ops[number])


def _holds_any(op: Operation, others: Sequence[Operation]) -> bool:
    return any(is_inside(other, op) for other in others)
