"""Separating the init of a reduction from its updates, and fusing an epilogue into the init."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Axis, Dependence, determine, is_loop_variable
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange, written_buffers
from tir_dialect.analysis.structure import ancestors, enclosing_loops, is_defined_inside, loop_of, root_buffer
from tir_dialect.dims import Dim, constant, product
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import Materializer, erase_nest, header_value, rebuild_block, unique_block_name
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.accesses import accesses_in, box_in, loop_names
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.legality.monoid import Combination, check_monoid, check_neutral, combination
from tir_dialect.schedule.legality.motion import (
    ElementBlock,
    check_moved_up,
    describe,
    element_block,
    iterators_of_indices,
    own_allocation,
    touches,
)
from tir_dialect.schedule.nests import check_no_branch, earlier_user, emit_conditions, hoist_allocation
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import Less, conditions_of, iterator_extent, shape_of
from tir_dialect.types import IteratorKind


@primitive
def decompose_reduction(self: ScheduleState, block: Block, loop: Loop) -> Block:
    """Moves the init of a reduction into a block and loops of its own, before a loop around the reduction.

    rewrite:
        for i: for r: block(init: C[i] = 0; C[i] += A[i, r])
        -> for i: C[i] = 0
           for i: for r: C[i] += A[i, r]

    Returns the block of the init, `C_init` of a block `C`, which is called `C_update` then. The init runs also where
    there is nothing to reduce.

    Refuses:
    1. a block without init, or in a branch;
    2. a loop that is not around the block, or inside of a loop that is reduced over;
    3. loops that drive iterators of different kinds;
    4. results that are allocated in the loop, that others write there, or read before the block has run for them; an
       init that uses what is computed in the loop, or reads what others write there;
    5. spatial loops of which several iterations reduce to one element;
    6. loops that may leave out the init, or run it several times or late;
    7. predicates that are no comparisons of indices.
    """
    if block.op.init is None:
        raise self.error(f'block "{block.name}" has no init')
    loops = loops_from(self, block.op, loop.op)
    drives = check_pure_loops(self, block.op)
    _check_loops(self, loop.op, drives)
    for buffer in _results(block.op):
        if is_defined_inside(buffer, loop.op):
            raise self.error(f'buffer "{buffer.name_hint}" is allocated in loop "{loop.op.induction_var.name_hint}"')
        for op in loop.op.walk():
            if touches(op, {buffer}, writes_only=True) and not is_inside(op, block.op):
                raise self.error(f'{describe(op)} writes buffer "{buffer.name_hint}", too')
    check_start(self, block.op, loop.op)
    _check_readers(self, block.op, loop.op)
    check_elements(self, block.op, driven_apart(loops, drives))
    check_no_branch(self, block.op)
    reduced = [op for op in loops if any(kind.is_reduced for kind in drives.get(op.induction_var, ()))]
    check_single_start(self, block.op, reduced)
    check_once(self, block.op, loops)
    # The conditions that are about spatial iterators; those about reduce iterators do not concern the init.
    reduced = {
        self.space.variable(op.induction_var).dim.as_symbol or ""
        for op in enclosing_loops(block.op)
        if any(kind.is_reduced for kind in drives.get(op.induction_var, set()))
    }
    conditions: list[Less] = []
    for condition in conditions_of(self.space, block.op):
        if not isinstance(condition, Less):
            raise self.error(f'block "{block.op.block_name.data}" has a condition that is no comparison of indices')
        if reduced.isdisjoint(condition.lhs.symbols | condition.rhs.symbols):
            conditions.append(condition)
    made = hoist_init(self, block.op, loop.op, conditions)
    block.op.block_name = StringAttr(unique_block_name(self.func, f"{block.name}_update"))
    return self.block(made)


def hoist_init(self: ScheduleState, block: BlockOp, loop: ForOp, conditions: Sequence[Less]) -> BlockOp:
    """Moves the init of a block before a loop around it, under the conditions; the new block.

    Each loop must drive iterators of one kind.
    """
    drives = check_pure_loops(self, block)
    loops = loops_from(self, block, loop)
    copied = driven_apart(loops, drives)
    # what a condition says of a loop that no iterator uses does not concern the init
    left = {self.symbol(op).as_symbol for op in loops if op not in copied}
    local = [each for each in conditions if left.isdisjoint(each.lhs.symbols | each.rhs.symbols)]
    return nest_init(self, self.space, block, copied, InsertPoint.before(loop), local)


def loops_from(self: ScheduleState, block: BlockOp, loop: ForOp) -> list[ForOp]:
    """A loop and those inside of it around a block, outermost first; refuses a loop that is not around the block."""
    loops = enclosing_loops(block)
    if loop not in loops:
        name = loop.induction_var.name_hint
        raise self.error(f'loop "{name}" is not around block "{block.block_name.data}"')
    return list(loops[loops.index(loop) :])


def check_pure_loops(self: ScheduleState, block: BlockOp) -> dict[SSAValue, set[IteratorKind]]:
    """Which kind of iterators each loop variable drives; refuses a loop that drives several kinds."""
    dependence = Dependence(is_loop_variable)
    found: dict[SSAValue, set[IteratorKind]] = {}
    for iterator in block.iterators:
        for variable in dependence.of(iterator.binding):
            found.setdefault(variable, set()).add(iterator.kind)
    for variable, kinds in found.items():
        if len(kinds) > 1:
            found_kinds = " and ".join(sorted((kind.value for kind in kinds), reverse=True))
            raise self.error(
                f'loop "{variable.name_hint}" drives {found_kinds} iterators of block "{block.block_name.data}", '
                "expected one kind"
            )
    return found


def check_single_start(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp]) -> None:
    """Refuses reduce loops of which other iterations than the first run the init, or that one does not.

    The init runs where all reduce iterators are 0.
    """
    bindings = [self.space.dim_of(it.binding) for it in block.iterators if it.kind.is_reduced]
    known = [binding for binding in bindings if binding is not None]
    first = {self.symbol(op).as_symbol or "": self.lower(op) for op in loops}
    prover, name = self.space.prover, block.block_name.data
    if len(known) < len(bindings) or any(prover.equal(each.substitute(first), 0) is not True for each in known):
        raise self.error(f'the first iteration of the loops over which block "{name}" reduces may not run its init')
    for loop in loops:
        variable = self.symbol(loop)
        others = [self.extent(op) for op in loops if op is not loop]
        steps = [product(some) for count in range(len(others) + 1) for some in combinations(others, count)]
        # no instance runs where another loop has no iteration, so that a step is at least 1
        count = variable - self.lower(loop)
        if any(prover.less_equal(count * step, each) is True for each in known for step in steps):
            continue
        if not determine(self.space, [(Axis(each),) for each in known], variable, loop_names(self.space, loop)):
            hint = loop.induction_var.name_hint
            raise self.error(f'several iterations of loop "{hint}" may run the init of block "{name}"')


def check_once(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp]) -> None:
    """Refuses loops that repeat instances of a reduction, and those that may leave out all though there is a domain."""
    instances, name = Instances(self, block), block.block_name.data
    for loop in instances.idle(range(len(block.iterators))):
        if loop in loops and not instances.run_once(loop):
            raise self.error(f'loop "{loop.induction_var.name_hint}" may repeat the init of block "{name}"')
    if not instances.start():
        raise self.error(f'the loops may leave out the init of block "{name}"')


def driven_apart(loops: Sequence[ForOp], drives: Mapping[SSAValue, set[IteratorKind]]) -> list[ForOp]:
    """The loops that drive iterators which are not reduced over: their iterations begin results of their own."""
    return [op for op in loops if any(not kind.is_reduced for kind in drives.get(op.induction_var, ()))]


def _check_loops(self: ScheduleState, loop: ForOp, drives: Mapping[SSAValue, set[IteratorKind]]) -> None:
    for variable, kinds in drives.items():
        outer = loop_of(variable)
        if outer is not None and any(kind.is_reduced for kind in kinds) and not is_inside(outer, loop):
            raise self.error(
                f'loop "{loop.induction_var.name_hint}" is inside of loop "{variable.name_hint}", which is reduced over'
            )


def check_start(self: ScheduleState, block: BlockOp, loop: ForOp) -> None:
    """Refuses an init that uses what is made in a loop, before which it would run."""
    name, hint = block.block_name.data, loop.induction_var.name_hint
    ops = [] if block.init is None else list(block.init.walk())
    for value in dict.fromkeys(operand for op in ops for operand in op.operands):
        if is_defined_inside(value, loop) and not is_defined_inside(value, block):
            raise self.error(
                f'the init of block "{name}" uses "{value.name_hint}" of loop "{hint}", expected values from before it'
            )
    read = {root_buffer(op.buffer) for op in ops if isinstance(op, LoadOp)}
    writer = next((op for op in loop.walk() if touches(op, read, writes_only=True) and not is_inside(op, block)), None)
    if writer is not None:
        raise self.error(f'{describe(writer)} writes in loop "{hint}" what the init of block "{name}" reads')


def _check_readers(self: ScheduleState, block: BlockOp, loop: ForOp) -> None:
    """Refuses loops in which others read elements of the result before the block has run for them.

    In memory that nobody else writes there is nothing to read then.
    """
    order = {op: position for position, op in enumerate(loop.walk())}
    accesses = [each for each in accesses_in(self.space, loop) if each.buffer in _results(block)]
    own = [each for each in accesses if each.is_store and is_inside(each.op, block)]
    for access in accesses:
        if access.is_store or is_inside(access.op, block) or _writes_alone(self, block, access.buffer):
            continue
        around = next(op for op in ancestors(access.op) if isinstance(op, ForOp) and is_inside(block, op))
        stores = [each for each in own if each.buffer is access.buffer]
        read, made = (box_in(self, some, around, shape_of(access.buffer)) for some in ([access], stores))
        if order[access.op] < order[block] or not all(map(partial(_is_part, self), read, made)):
            name, hint = access.buffer.name_hint, loop.induction_var.name_hint
            raise self.error(f'{describe(access.op)} reads in loop "{hint}" what buffer "{name}" was before')


def _is_part(self: ScheduleState, part: AxisRange, whole: AxisRange) -> bool:
    ends = part.lower + part.extent, whole.lower + whole.extent
    return self.space.less_equal(whole.lower, part.lower) is True and self.space.less_equal(*ends) is True


def _writes_alone(self: ScheduleState, block: BlockOp, buffer: SSAValue) -> bool:
    """Whether a buffer is allocated, and nobody but the block writes it."""
    writers = (op for op in self.func.walk() if touches(op, {buffer}, writes_only=True))
    return isinstance(buffer.owner, AllocBufferOp) and all(is_inside(op, block) for op in writers)


def _results(block: BlockOp) -> list[SSAValue]:
    """What a block writes, but for its own memory."""
    return [buffer for buffer in written_buffers(block) if not is_defined_inside(buffer, block)]


def check_elements(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp]) -> None:
    """Refuses loops of which several iterations update an element: it would be started once only."""
    stores = [access for access in accesses_in(self.space, block) if access.is_store]
    for loop in loops:
        names = loop_names(self.space, loop)
        for buffer in _results(block):
            rows = list(zip(*{access.axes for access in stores if access.buffer is buffer}, strict=True))
            if not determine(self.space, rows, self.symbol(loop), names):
                raise self.error(
                    f'several iterations of loop "{loop.induction_var.name_hint}" reduce to an element of buffer '
                    f'"{buffer.name_hint}"'
                )


def _init_block(self: ScheduleState, block: BlockOp, init: InitOp, suffix: str) -> BlockOp:
    """A block with the spatial iterators and the init of a reduction, which loses it; not yet in the function."""
    spatial = [it for it in block.iterators if not it.kind.is_reduced]
    name = unique_block_name(self.func, f"{block.block_name.data}_{suffix}")
    hints = [it.value.name_hint for it in spatial]
    made = BlockOp(name, [(it.kind, it.extent, it.extent) for it in spatial], name_hints=hints)
    made.location = block.location
    made.annotations = block.annotations
    mapping: dict[SSAValue, SSAValue] = {
        it.value: value for it, value in zip(spatial, made.body.block.args, strict=True)
    }
    # it only runs at the start of what is reduced over, or scanned
    start = [it.value for it in block.iterators if it.kind.is_reduced]
    if any(operand in start for op in init.walk() for operand in op.operands):
        mapping |= dict.fromkeys(start, header_value(self.func, constant(0)))
    for op in init.body.block.ops:
        made.body.block.add_op(op.clone(mapping))
    Rewriter.erase_op(init)
    return made


def nest_init(
    self: ScheduleState,
    space: IndexSpace,
    block: BlockOp,
    copied: Sequence[ForOp],
    point: InsertPoint,
    conditions: Sequence[Less],
    suffix: str = "init",
) -> BlockOp:
    """Moves the init of a block into a block at `point`, in copies of the loops that drive its spatial iterators."""
    made = _init_block(self, block, block.init or InitOp(), suffix)
    spatial = [(it.kind, it.binding, it.extent) for it in block.iterators if not it.kind.is_reduced]
    nest_copies(self, space, made, spatial, copied, point, conditions)
    return made


def nest_copies(
    self: ScheduleState,
    space: IndexSpace,
    block: BlockOp,
    iterators: Sequence[tuple[IteratorKind, SSAValue, SSAValue]],
    copied: Sequence[ForOp],
    point: InsertPoint,
    conditions: Sequence[Less],
) -> None:
    """Puts a block at `point`, in copies of loops; iterators and conditions are in terms of the loops copied."""
    symbols: dict[str, Dim] = {}
    insert_point = point
    for old in copied:
        # The loop without its body, its bounds in terms of loops that are copied already.
        emitter = Materializer(self.func, space, insert_point)
        upper, lower = space.dim_of(old.upper), None if old.lower is None else space.dim_of(old.lower)
        loop = ForOp(
            old.upper if upper is None else emitter.emit(upper.substitute(symbols)),
            lower=None if lower is None else emitter.emit(lower.substitute(symbols)),
            kind=old.kind.data,
            thread_tag=None if old.thread_tag is None else old.thread_tag.data,
            name_hint=old.induction_var.name_hint,
        )
        loop.location = old.location
        Rewriter.insert_op(loop, insert_point)
        symbols[space.variable(old.induction_var).dim.as_symbol or ""] = space.variable(loop.induction_var).dim
        insert_point = InsertPoint.at_end(loop.body.block)
    Rewriter.insert_op(block, insert_point)
    emitter = Materializer(self.func, space, InsertPoint.before(block))
    bindings = [space.dim_of(binding) for _, binding, _ in iterators]
    local = [
        (kind, binding if dim is None else emitter.emit(dim.substitute(symbols)), extent)
        for (kind, binding, extent), dim in zip(iterators, bindings, strict=True)
    ]
    holds = [Less(c.lhs.substitute(symbols), c.rhs.substitute(symbols)) for c in conditions]
    rebuild_block(block, local, emit_conditions(emitter, list(holds)))


@dataclass(frozen=True)
class _Plan:
    block: BlockOp
    init: InitOp
    parts: Combination
    epilogue: ElementBlock
    loads: tuple[LoadOp, ...]
    """Where the epilogue loads the result of the reduction."""
    addend: SSAValue
    """What the epilogue combines the result with."""
    allocation: AllocBufferOp
    positions: tuple[int | None, ...]
    """Which iterator of the epilogue each index of the result is."""
    target: tuple[int | None, ...]
    """Which iterator each index of the epilogue's store is."""


@primitive
def fuse_reduction_epilogue(self: ScheduleState, reduction_block: Block | str, epilogue_block: Block | str) -> None:
    """Fuses an epilogue into a reduction: the other operand of the epilogue becomes the initial value.

    rewrite:
        for i: for r: block(init: B[i] = 0; B[i] += A[i, r])
        for i: C[i] = B[i] + bias[i]
        -> for i: for r: block(init: C[i] = bias[i]; C[i] += A[i, r])

    Sums of floating-point numbers are made in another order.

    Refuses:
    1. a reduction without init, or whose init is not neutral for its combination;
    2. a reduction of several results, by several operations, or that is not associative and commutative;
    3. a result that is a parameter or view, or that others use;
    4. an epilogue that does more than store one element, or stores another dtype;
    5. an epilogue that combines the result by another operation (use `reverse_compute_at`), or with what uses it;
    6. an epilogue that does not run once for each element, at its iterators;
    7. inputs and outputs of the epilogue that others use in between.
    """
    blocks = [self.block_named(each) if isinstance(each, str) else each for each in (reduction_block, epilogue_block)]
    plan = _plan(self, *(each.op for each in blocks))
    position = earlier_user(self, plan.epilogue.store.buffer, [plan.block])
    # Lets the init store what the epilogue combines with, to where that stores.
    start = next(op for op in plan.init.body.block.ops if isinstance(op, StoreOp))
    mapping: dict[SSAValue, SSAValue] = {}
    for number, argument in enumerate(plan.epilogue.op.body.block.args):
        mapping[argument] = _index(self, plan, start, number)
    body = plan.epilogue.op.body.block
    for op in body.ops:
        if op not in (*plan.loads, plan.epilogue.store, plan.epilogue.store.value.owner):
            Rewriter.insert_op(op.clone(mapping), InsertPoint.before(start))
    start.operands[0] = mapping.get(plan.addend, plan.addend)
    _retarget(self, plan, start)
    for op in (*plan.parts.accumulators, *plan.parts.repeated, *plan.parts.stores):
        access = op.owner if isinstance(op, SSAValue) else op
        if isinstance(access, LoadOp | StoreOp) and access.buffer is plan.allocation.buffer:
            _retarget(self, plan, access)
    if position is not None:
        hoist_allocation(plan.epilogue.store.buffer, position)
    erase_nest(plan.epilogue.op)
    Rewriter.erase_op(plan.allocation)


def _plan(self: ScheduleState, block: BlockOp, consumer: BlockOp) -> _Plan:
    name = block.block_name.data
    if block.init is None:
        raise self.error(f'block "{name}" has no init')
    parts = combination(self, block)
    if len(parts.stores) != 1 or len(parts.combine) != 1:
        raise self.error(f'block "{name}" does not combine the values of one result by one operation')
    epilogue = element_block(self, consumer)
    allocation = own_allocation(self, parts.stores[0].buffer)
    loads = _loads(self, block, epilogue, allocation.buffer)
    addend = _addend(self, parts.combine[0], epilogue, loads)
    positions = _positions(self, epilogue, loads[0], "loads")
    target = _positions(self, epilogue, epilogue.store, "stores")
    kinds = [epilogue.store.buffer_type.dtype, allocation.buffer_type.dtype]
    if kinds[0] != kinds[1]:
        raise self.error(f'expected block "{consumer.block_name.data}" to store {kinds[1]}, got {kinds[0]}')
    _check_domain(self, consumer, allocation.buffer, positions)
    check_moved_up(self, epilogue, block, allocation.buffer)
    check_neutral(self, name, block.init, parts)
    check_monoid(self, name, parts, commutes=True)
    return _Plan(block, block.init, parts, epilogue, loads, addend, allocation, positions, target)


def _loads(self: ScheduleState, block: BlockOp, epilogue: ElementBlock, buffer: SSAValue) -> tuple[LoadOp, ...]:
    """Where the epilogue loads the result; refuses a result that others use, too."""
    own = tuple(load for load in epilogue.loads if load.buffer is buffer)
    for use in buffer.uses:
        if use.operation not in own and not is_inside(use.operation, block):
            raise self.error(f'{describe(use.operation)} uses buffer "{buffer.name_hint}", too')
    if len(own) != 1 or own[0].parent is not epilogue.op.body.block:
        name = epilogue.op.block_name.data
        raise self.error(f'expected block "{name}" to load buffer "{buffer.name_hint}" once, got {len(own)} loads')
    return own


def _addend(self: ScheduleState, combine: Operation, epilogue: ElementBlock, loads: Sequence[LoadOp]) -> SSAValue:
    op, name = epilogue.store.value.owner, epilogue.op.block_name.data
    value = loads[0].result
    if type(op) is not type(combine) or not isinstance(op, Operation) or list(op.operands).count(value) != 1:
        got = f"'{op.name}'" if isinstance(op, Operation) else "an iterator"
        raise self.error(
            f"expected block \"{name}\" to combine the result by '{combine.name}' with another value, got {got}; "
            "what has to come last can be moved by reverse_compute_at"
        )
    addend = next(operand for operand in op.operands if operand is not value)
    if any(use.operation is not op for use in value.uses):
        raise self.error(f'block "{name}" uses the result in what it combines it with')
    return addend


def _positions(
    self: ScheduleState, epilogue: ElementBlock, access: LoadOp | StoreOp, verb: str
) -> tuple[int | None, ...]:
    found = None if access.lanes is not None else iterators_of_indices(epilogue.op, access.indices)
    if found is None:
        name = epilogue.op.block_name.data
        raise self.error(f'block "{name}" {verb} at other indices than its iterators, each once')
    return tuple(found)


def _check_domain(self: ScheduleState, consumer: BlockOp, buffer: SSAValue, positions: Sequence[int | None]) -> None:
    """Refuses an epilogue that does not run for all elements of the result."""
    name = consumer.block_name.data
    for number, extent in zip(positions, shape_of(buffer), strict=True):
        covered = constant(1) if number is None else iterator_extent(self, consumer, number)
        if self.space.prover.equal(covered, extent) is not True:
            raise self.error(f'block "{name}" covers {covered} of {extent} elements of buffer "{buffer.name_hint}"')
    instances, everything = Instances(self, consumer), range(len(consumer.iterators))
    if not (instances.reach_all(everything) and instances.have_others(everything)):
        raise self.error(f'the loops do not reach all values of the iterators of block "{name}"')


def _index(self: ScheduleState, plan: _Plan, access: LoadOp | StoreOp, number: int | None) -> SSAValue:
    """The value of an iterator of the epilogue for the element that an access of the reduction is about."""
    if number is None or number not in plan.positions:
        return header_value(self.func, constant(0))
    return access.indices[plan.positions.index(number)]


def _retarget(self: ScheduleState, plan: _Plan, access: LoadOp | StoreOp) -> None:
    """Lets an access of the result be one of the epilogue's output."""
    indices = [_index(self, plan, access, number) for number in plan.target]
    buffer = plan.epilogue.store.buffer
    new = LoadOp(buffer, indices) if isinstance(access, LoadOp) else StoreOp(access.value, buffer, indices)
    new.location = access.location
    Rewriter.replace_op(access, new)
