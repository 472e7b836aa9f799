"""Separating the padding of a buffer from what lies inside of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.structure import is_inside as is_defined_inside
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.dims import Dim, from_term, maximum, minimum
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.accesses import read_buffers
from tir_dialect.schedule.legality.elementwise import element_block, iterators_of_indices
from tir_dialect.schedule.legality.motion import describe, touches
from tir_dialect.schedule.primitives.reductions import loops_from, nest_init
from tir_dialect.schedule.rewriting.edits import set_condition
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.rewriting.nests import check_sequential, hoist_allocation
from tir_dialect.schedule.rewriting.normalize import emit_conditions
from tir_dialect.schedule.rewriting.renest import check_no_branch
from tir_dialect.schedule.state import ScheduleState, primitive, query
from tir_dialect.schedule.statements import is_index_op, only_statement
from tir_dialect.schedule.structure import Less, conditions_of, conjuncts
from tir_dialect.types import LoopKind


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
