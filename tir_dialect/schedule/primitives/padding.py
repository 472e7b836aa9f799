"""Padding the loops of a contraction, so that they divide by tile sizes, and separating the padding of a buffer
from what lies inside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, i1
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.regions import read_buffers
from tir_dialect.analysis.structure import is_defined_inside, loop_of, root_buffer
from tir_dialect.dims import Dim, ceildiv, from_term, maximum, minimum
from tir_dialect.ops.blocks import BlockOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, IfOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.buffers import redirect
from tir_dialect.schedule.edits import (
    Materializer,
    header_value,
    is_index_op,
    nest_of,
    only_statement,
    rebuild_block,
    set_condition,
    unique_block_name,
)
from tir_dialect.schedule.handles import Block, Loop, ScheduleError, is_inside
from tir_dialect.schedule.legality.independence import bare_statements
from tir_dialect.schedule.legality.monoid import combination
from tir_dialect.schedule.legality.motion import (
    check_plain_uses,
    describe,
    element_block,
    iterators_of_indices,
    touches,
)
from tir_dialect.schedule.nests import (
    check_no_branch,
    check_sequential,
    copy_block,
    emit_conditions,
    hoist_allocation,
    insert_nest,
    whole,
)
from tir_dialect.schedule.primitives.loops import check_serial
from tir_dialect.schedule.primitives.reductions import loops_from, nest_init
from tir_dialect.schedule.state import ScheduleState, primitive, query
from tir_dialect.schedule.structure import Less, conditions_of, conjuncts, iterator_extent, shape_of, sized_extent
from tir_dialect.types import BufferType, IteratorKind, LoopKind

_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_SUMS = (arith.AddfOp, arith.AddiOp)
_EXTENSIONS = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)


@dataclass(frozen=True)
class _Plan:
    block: BlockOp
    extents: tuple[Dim, ...]
    """The padded extents of the iterators."""

    loads: dict[SSAValue, list[int | None]]
    """Which iterator each index of an input is."""

    result: SSAValue
    positions: list[int | None]

    def padded_shape(self, buffer: SSAValue, positions: Sequence[int | None]) -> tuple[Dim, ...]:
        """The shape of a buffer when the iterators in its indices are padded."""
        pairs = zip(positions, shape_of(buffer), strict=True)
        return tuple(extent if number is None else self.extents[number] for number, extent in pairs)


@primitive
def pad_einsum(self: ScheduleState, block: Block, padding: Sequence[int]) -> None:
    """Pads the iterators of a sum of products to multiples, with zero-padded copies of the inputs.

    rewrite:
        for i in n: for r in k: C[i] += A[i, r] * B[r]
        -> for i in 4 * ceildiv(n, 4), r: A_pad[i, r] = A[i, r] if i < n else 0
           for i in 4 * ceildiv(n, 4): for r in k: C_pad[i] += A_pad[i, r] * B[r]
           for i in n: C[i] = C_pad[i]

    `padding` has a factor for each iterator, 1 to leave it as it is.

    Refuses:
    1. other than a factor of at least 1 for each iterator;
    2. a block without init, or whose init loads something;
    3. a block with a predicate, or whose iterators are not the variables of serial loops over their extents, each once;
    4. loops that hold other blocks or statements;
    5. a block that does not add up products of elements to one result, or does anything else;
    6. inputs and results at other indices than iterators, and uses of them other than loads and stores;
    7. inputs that a padded reduce iterator does not occur in: zeros could not hide their infinities.
    """
    plan = _plan(self, block.op, padding)
    nest = nest_of(block.op)
    before, after = InsertPoint.before(nest), InsertPoint.after(nest)
    for buffer, positions in plan.loads.items():
        if plan.padded_shape(buffer, positions) != shape_of(buffer):
            _pad_input(self, plan, buffer, positions, before)
    if plan.padded_shape(plan.result, plan.positions) != shape_of(plan.result):
        cache = _allocate(plan, plan.result, plan.positions, before)
        redirect(self, block.op, plan.result, cache)
        name = unique_block_name(self.func, f"{plan.result.name_hint or 'buffer'}_crop")
        copy_block(self, name, cache, plan.result, whole(plan.result), after)
    iterators: list[tuple[IteratorKind, SSAValue, SSAValue]] = []
    for iterator, extent in zip(plan.block.iterators, plan.extents, strict=True):
        limit = header_value(self.func, extent)
        loop = loop_of(iterator.binding)
        if loop is not None:
            loop.operands[len(loop.operands) - 1] = limit
        iterators.append((iterator.kind, iterator.binding, limit))
    rebuild_block(plan.block, iterators, plan.block.condition)


def _plan(self: ScheduleState, block: BlockOp, padding: Sequence[int]) -> _Plan:
    name = block.block_name.data
    if len(padding) != len(block.iterators) or any(factor < 1 for factor in padding):
        raise self.error(f"expected {len(block.iterators)} factors of at least 1, got {list(padding)}")
    if block.init is None:
        raise self.error(f'block "{name}" has no init')
    if any(isinstance(op, LoadOp) for op in block.init.walk()):
        raise self.error(f'block "{name}" begins with elements of a buffer, which end where the padding begins')
    extents = [sized_extent(self, block, number) for number in range(len(padding))]
    padded = tuple(ceildiv(extent, factor) * factor for extent, factor in zip(extents, padding, strict=True))
    changed = [number for number, (one, other) in enumerate(zip(extents, padded, strict=True)) if one is not other]
    _check_loops(self, block)
    parts = combination(self, block)
    if len(parts.stores) != 1 or len(parts.combine) != 1 or not isinstance(parts.combine[0], _SUMS):
        raise self.error(f'block "{name}" does not add up one result')
    loads: dict[SSAValue, list[int | None]] = {}
    factors = _factors(self, block, parts.sources[0])
    for load in factors:
        positions = iterators_of_indices(block, load.indices, complete=False)
        if positions is None or loads.setdefault(load.buffer, positions) != positions:
            raise self.error(f'block "{name}" reads buffer "{load.buffer.name_hint}" at other indices than iterators')
        reduced = [n for n in changed if block.iterators[n].kind is IteratorKind.REDUCE and n not in positions]
        if reduced:
            hint = block.iterators[reduced[0]].value.name_hint
            raise self.error(
                f'reduce iterator "{hint}" does not occur in the indices of buffer "{load.buffer.name_hint}"'
            )
    store = parts.stores[0]
    _check_alone(self, block, store.buffer, factors)
    positions = iterators_of_indices(block, store.indices)
    if positions is None:
        raise self.error(f'block "{name}" writes buffer "{store.buffer.name_hint}" at other indices than iterators')
    for buffer in (store.buffer, *loads):
        check_plain_uses(self, block, buffer)
    return _Plan(block, padded, loads, store.buffer, positions)


def _check_loops(self: ScheduleState, block: BlockOp) -> None:
    """Refuses a block whose loops do not run over its iterators, one each, or hold something else."""
    name = block.block_name.data
    if block.condition is not None:
        raise self.error(f'block "{name}" has a condition, pad it before its loops are split')
    loops = [loop_of(binding) for binding in block.bindings]
    for number, loop in enumerate(loops):
        extent = iterator_extent(self, block, number)
        if loop is None or self.lower(loop).terms or self.extent(loop) is not extent or loops.count(loop) > 1:
            hint = block.iterators[number].value.name_hint
            raise self.error(
                f'iterator "{hint}" of block "{name}" is not the variable of a loop over its extent {extent}'
            )
        check_serial(self, self.loop(loop))
    nest = nest_of(block)
    if [op for op in nest.walk() if isinstance(op, BlockOp)] != [block]:
        raise self.error(f'the loops of block "{name}" hold other blocks')
    bare = bare_statements(nest) if isinstance(nest, ForOp) else []
    if bare:
        raise self.error(f"the loops of block \"{name}\" hold '{bare[0].name}'")


def _factors(self: ScheduleState, block: BlockOp, value: SSAValue) -> list[LoadOp]:
    """The loads whose product a value is."""
    found: list[LoadOp] = []
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, LoadOp):
            found.append(owner)
        elif isinstance(owner, (*_PRODUCTS, *_EXTENSIONS)):
            pending += owner.operands
        else:
            what = f"'{owner.name}'" if isinstance(owner, Operation) else "an iterator"
            raise self.error(f'block "{block.block_name.data}" multiplies by {what}, expected elements only')
    return found


def _check_alone(self: ScheduleState, block: BlockOp, result: SSAValue, factors: Sequence[LoadOp]) -> None:
    """Refuses a block that does anything else: it would do so after the ends of buffers, too."""
    for op in block.body.block.ops:
        is_own = isinstance(op, LoadOp | StoreOp) and (op in factors or op.buffer is result)
        if not is_own and not isinstance(op, InitOp | ReadsOp | WritesOp) and not is_index_op(op):
            raise self.error(f"block \"{block.block_name.data}\" holds '{op.name}', expected a sum of products alone")


def _allocate(plan: _Plan, buffer: SSAValue, positions: Sequence[int | None], point: InsertPoint) -> SSAValue:
    kind = buffer.type
    dtype = kind.dtype if isinstance(kind, BufferType) else i1
    op = AllocBufferOp(BufferType(plan.padded_shape(buffer, positions), dtype))
    op.buffer.name_hint = f"{buffer.name_hint or 'buffer'}_pad"
    Rewriter.insert_op(op, point)
    return op.buffer


def _pad_input(
    self: ScheduleState, plan: _Plan, buffer: SSAValue, positions: Sequence[int | None], point: InsertPoint
) -> None:
    """A padded copy of an input, some index of which is a padded iterator; the block then reads the copy."""
    target = _allocate(plan, buffer, positions, point)
    shape, padded = shape_of(buffer), shape_of(target)
    extents = [header_value(self.func, extent) for extent in padded]
    hints = [f"ax{axis}" for axis in range(len(padded))]
    iterators = [(IteratorKind.SPATIAL, extent, extent) for extent in extents]
    name = unique_block_name(self.func, f"{buffer.name_hint or 'buffer'}_pad")
    block = BlockOp(name, iterators, name_hints=[f"v{hint}" for hint in hints])
    body, args = block.body.block, block.body.block.args
    inside: list[SSAValue] = []
    for arg, extent, wide in zip(args, shape, padded, strict=True):
        if extent is not wide:
            less = arith.CmpiOp(arg, header_value(self.func, extent), "slt")
            body.add_op(less)
            inside.append(less.result)
    condition = reduce(partial(_both, body), inside)
    kind = buffer.type.element_type if isinstance(buffer.type, BufferType) else i1
    load = LoadOp(buffer, args)
    zero = arith.ConstantOp(FloatAttr(0.0, kind) if isinstance(kind, AnyFloat) else IntegerAttr(0, kind))
    branch = IfOp(
        condition,
        Region(IRBlock([load, YieldOp(load.result)])),
        Region(IRBlock([zero, YieldOp(zero.result)])),
        [load.result.type],
    )
    body.add_ops([branch, StoreOp(branch.outputs[0], target, args)])
    insert_nest(self, block, whole(target), hints, point, plan.block.location)
    redirect(self, plan.block, buffer, target)


def _both(body: IRBlock, one: SSAValue, other: SSAValue) -> SSAValue:
    op = arith.AndIOp(one, other)
    body.add_op(op)
    return op.result


@primitive
def decompose_padding(self: ScheduleState, block: Block, loop: Loop) -> Block:
    """Fills a padded buffer with the padding value before a loop of the block, which then only copies.

    rewrite:
        for i in n + 2: P[i] = A[i - 1] if 1 <= i < n + 1 else 0
        -> for i in n + 2: P[i] = 0
           for i in 1 to n + 1: P[i] = A[i - 1]

    The block keeps the elements inside: loops that hold nothing else run over these only, and it has a condition where
    that their bounds cannot express. A buffer that is allocated in the loop is allocated before it. Returns the block
    that stores the padding.

    Refuses:
    1. a block that does more than store one element, at other indices than the iterators, each once, or in a branch;
    2. a loop that is not around the block;
    3. a value that is not chosen by comparisons of indices, and predicates that are no such comparisons;
    4. padding that comes from memory, or none;
    5. others in the loop that write the buffer, or may read what was there before; and a block that reads it;
    6. a buffer that is allocated in a parallel, vectorized or bound loop.
    """
    op = block.op
    store = element_block(self, op, conditional=True).store
    branch = _branch(self, op, store)
    if iterators_of_indices(op, store.indices) is None:
        raise self.error(f'block "{block.name}" stores at other indices than its iterators, each once')
    loops = loops_from(self, op, loop.op)
    check_no_branch(self, op)
    _check_others(self, op, loop.op, store.buffer)
    inside = _comparisons(self, op, conjuncts(self.space, branch.condition))
    if all(self.space.less_equal(each.lhs + 1, each.rhs) is True for each in inside):
        raise self.error(f'block "{block.name}" stores no padding, its condition always holds')
    own = _comparisons(self, op, conditions_of(self.space, op))
    if is_defined_inside(store.buffer, loop.op):
        hoist_allocation(store.buffer, loop.op)
    init = InitOp()
    _clone_padding(op, branch, store, init)
    Rewriter.insert_op(init, InsertPoint.at_start(op.body.block))
    made = nest_init(self, self.space, op, loops, InsertPoint.before(loop.op), own, "pad_const")
    _keep_inside(branch)
    _restrict(self, op, loops, [*own, *inside])
    return self.block(made)


@query
def can_decompose_padding(self: ScheduleState, block: Block, loop: Loop) -> bool:
    """Whether `decompose_padding` can separate the padding of this block before this loop."""
    twin = self.copy()
    try:
        twin.call("decompose_padding", block, loop)
    except ScheduleError:
        return False
    return True


def _branch(self: ScheduleState, block: BlockOp, store: StoreOp) -> IfOp:
    """The branch that gives the value that is stored; its second region needs no memory."""
    branch = store.value.owner
    if not isinstance(branch, IfOp) or branch.parent is not block.body.block or len(branch.outputs) != 1:
        raise self.error(f'block "{block.block_name.data}" does not choose what it stores by a condition')
    for op in branch.else_body.block.ops:
        if not is_index_op(op) and not isinstance(op, YieldOp):
            raise self.error(f"the padding of block \"{block.block_name.data}\" comes from '{op.name}'")
    return branch


def _comparisons(self: ScheduleState, block: BlockOp, conditions: Sequence[Less | SSAValue]) -> list[Less]:
    found = [condition for condition in conditions if isinstance(condition, Less)]
    if len(found) < len(conditions):
        raise self.error(f'block "{block.block_name.data}" has a condition that is no comparison of indices')
    return found


def _check_others(self: ScheduleState, block: BlockOp, loop: ForOp, buffer: SSAValue) -> None:
    """Refuses if somebody could see that the padding comes earlier, or overwrite it."""
    name, memory = buffer.name_hint, root_buffer(buffer)
    if is_defined_inside(buffer, loop):
        check_sequential(self, loop, buffer)
    if memory in read_buffers(block):
        raise self.error(f'block "{block.block_name.data}" reads buffer "{name}", which it writes')
    others = [op for op in self.func.walk() if touches(op, {memory}, writes_only=False) and not is_inside(op, block)]
    writers = [op for op in others if touches(op, {memory}, writes_only=True)]
    inside = [op for op in others if is_inside(op, loop)]
    for op in inside:
        if op in writers:
            raise self.error(f'{describe(op)} writes buffer "{name}", too')
    if inside and (writers or not isinstance(buffer.owner, AllocBufferOp)):
        raise self.error(f'{describe(inside[0])} may read elements of buffer "{name}" that were there before')


def _clone_padding(block: BlockOp, branch: IfOp, store: StoreOp, init: InitOp) -> None:
    """Appends copies of what computes and stores the padding."""
    target, mapping = init.body.block, dict[SSAValue, SSAValue]()

    def clone(value: SSAValue) -> SSAValue:
        owner = value.owner
        if value not in mapping and isinstance(owner, Operation) and is_defined_inside(value, block):
            for operand in owner.operands:
                clone(operand)
            copy = owner.clone(mapping)
            target.add_op(copy)
        return mapping.get(value, value)

    result = branch.else_body.block.last_op
    padding = clone(result.operands[0] if result is not None else store.value)
    target.add_op(StoreOp(padding, store.buffer, [clone(index) for index in store.indices]))


def _keep_inside(branch: IfOp) -> None:
    """Puts the first region of a branch instead of it."""
    body = branch.then_body.block
    for op in list(body.ops):
        op.detach()
        if isinstance(op, YieldOp):
            branch.outputs[0].replace_all_uses_with(op.values[0])
        else:
            Rewriter.insert_op(op, InsertPoint.before(branch))
    Rewriter.erase_op(branch)


def _restrict(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp], conditions: Sequence[Less]) -> None:
    """Lets a block run only where the conditions hold: serial loops that hold nothing else get other bounds."""
    left = list(conditions)
    for loop in reversed(loops):
        if loop.kind.data is not LoopKind.SERIAL or only_statement(loop.body.block) not in (block, *loops):
            break
        left = _cut(self, loop, left)
    emitter = Materializer(self.func, self.space, InsertPoint.before(block))
    set_condition(block, emit_conditions(emitter, list(left)))


def _cut(self: ScheduleState, loop: ForOp, conditions: Sequence[Less]) -> list[Less]:
    """Gives a loop the bounds that conditions say; the conditions that are left."""
    variable = self.space.variable(loop.induction_var)
    left: list[Less] = []
    lowers, uppers = list[Dim](), list[Dim]()
    for condition in conditions:
        rest, factor = _linear(condition.rhs - condition.lhs, variable.dim)
        if abs(factor) != 1 or not rest.symbols <= set(self.func.symbol_names):
            left.append(condition)
        elif factor > 0:
            lowers.append(1 - rest)
        else:
            uppers.append(rest)
    if variable.lower is None or variable.upper is None or not variable.upper.symbols <= set(self.func.symbol_names):
        return list(conditions)
    simplify, emitter = self.space.prover.simplify, Materializer(self.func, self.space, InsertPoint.before(loop))
    lower, upper = simplify(maximum(variable.lower, *lowers)), simplify(minimum(variable.upper, *uppers))
    loop.operands = [*([emitter.emit(lower)] if lower.terms else []), emitter.emit(upper)]
    return left


def _linear(dim: Dim, variable: Dim) -> tuple[Dim, int]:
    """A dimension as `rest + factor * variable`; the factor is 0 if it is no such sum."""
    factor = next((number for number, monomial in dim.terms if from_term(1, monomial) is variable), 0)
    rest = dim - variable * factor
    return (dim, 0) if variable.symbols & rest.symbols else (rest, factor)
