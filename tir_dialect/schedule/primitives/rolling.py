"""Rolling buffers: keeping only a window of a buffer that moves along with a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from tir_dialect.analysis.dependence import Axis
from tir_dialect.analysis.regions import AxisRange, read_buffers
from tir_dialect.analysis.structure import enclosing_block, enclosing_loops, root_buffer
from tir_dialect.dims import Dim, constant, minimum, mod, symbol
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.schedule.buffers import Which, retype, written_buffer
from tir_dialect.schedule.edits import add_condition
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.index_map import IndexMap
from tir_dialect.schedule.legality.accesses import Access, accesses_in, loops_between, range_of
from tir_dialect.schedule.legality.elementwise import iterators_of_indices, own_allocation
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.legality.motion import describe, touches
from tir_dialect.schedule.materialize import Materializer
from tir_dialect.schedule.nests import check_no_branch, check_plain_conditions, emit_conditions, hoist_allocation
from tir_dialect.schedule.primitives.layout import buffer_accesses, move_accesses
from tir_dialect.schedule.primitives.loops import check_serial
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import Less, comes_before
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class _Window:
    """What one iteration of a loop needs of an axis of a buffer: not what the one before needs, but it overlaps."""

    loop: ForOp
    axis: int
    iterator: int
    range: AxisRange
    before: Dim
    """The end of what the iteration before needs."""


@primitive
def rolling_buffer(self: ScheduleState, block: Block, write_buffer_index: Which) -> None:
    """Shrinks a buffer to the window that one iteration of a loop reads; each iteration computes only what is new.

    rewrite:
        for i: for x in 6: B[4 * i + x] = f(4 * i + x)
               for x in 4: C[4 * i + x] = B[4 * i + x] + B[4 * i + x + 2]
        -> for i: for x in 6 where i < 1 or 2 <= x: B[(4 * i + x) % 6] = f(4 * i + x)
                  for x in 4: C[4 * i + x] = B[(4 * i + x) % 6] + B[(4 * i + x + 2) % 6]

    Use it after `compute_at` of a block whose consumers need some elements in several iterations. The loop is the
    outermost one in which the windows overlap; the buffer is allocated before it.

    Refuses:
    1. a parameter or view, one that others write, and uses other than loads and stores of single elements at known
       indices;
    2. a block in a branch, that updates what it reads, or with a predicate other than the bounds of its iterators;
    3. stores at other indices than the iterators, each once;
    4. no loop in which windows overlap without gaps, and loops from it on that are not serial;
    5. reads outside of that loop, before the block, or outside of the window;
    6. inputs of which an element may have another value in a later iteration.
    """
    op = block.op
    buffer = written_buffer(self, op, write_buffer_index)
    kind = own_allocation(self, buffer).buffer_type
    check_no_branch(self, op)
    check_plain_conditions(self, op)
    if op.init is None and buffer in read_buffers(op):
        raise self.error(f'block "{block.name}" updates what it reads')
    window = _window(self, op, buffer)
    for loop in enclosing_loops(op):
        if is_inside(loop, window.loop):
            check_serial(self, self.loop(loop))
    _check_uses(self, op, buffer, window)
    _check_inputs(self, op, window.loop, {buffer})
    accesses = buffer_accesses(self, buffer)
    _compute_what_is_new(self, op, window)
    if is_inside(own_allocation(self, buffer), window.loop):
        hoist_allocation(buffer, window.loop)
    names = [f"i{axis}" for axis in range(kind.rank)]
    indices = [symbol(name) for name in names]
    shape = list(kind.shape)
    shape[window.axis] = window.range.extent
    indices[window.axis] = mod(indices[window.axis], window.range.extent)
    retype(buffer, BufferType(shape, kind.dtype, scope=kind.scope, align=kind.align))
    move_accesses(self, accesses, IndexMap(tuple(names), tuple(indices)))


def _window(self: ScheduleState, block: BlockOp, buffer: SSAValue) -> _Window:
    """The outermost loop in which windows of an axis overlap; refuses if there is none."""
    positions = _positions(self, block, buffer)
    for loop in enclosing_loops(block):
        for axis, number in enumerate(positions):
            found = None if number is None else _window_in(self, block, loop, axis, number)
            if found is not None:
                return found
    raise self.error(
        f'no loop around block "{block.block_name.data}" needs elements of buffer "{buffer.name_hint}" again that '
        "the iteration before it needed"
    )


def _positions(self: ScheduleState, block: BlockOp, buffer: SSAValue) -> Sequence[int | None]:
    stores = [op for op in block.body.walk() if isinstance(op, StoreOp) and op.buffer is buffer]
    found = [iterators_of_indices(block, store.indices) for store in stores if store.lanes is None]
    if not stores or len(found) < len(stores) or found[0] is None or any(each != found[0] for each in found):
        name = block.block_name.data
        raise self.error(
            f'block "{name}" stores to buffer "{buffer.name_hint}" at other indices than its iterators, each once'
        )
    return found[0]


def _window_in(self: ScheduleState, block: BlockOp, loop: ForOp, axis: int, number: int) -> _Window | None:
    """The window of an axis in a loop; `None` if windows do not overlap or have gaps, or other axes move, too."""
    bindings = [self.space.dim_of(it.binding) for it in block.iterators]
    binding, variable = bindings[number], self.symbol(loop)
    others = [dim for index, dim in enumerate(bindings) if index != number]
    if binding is None or any(dim is None or variable.symbols & dim.symbols for dim in others):
        return None
    inner = [
        self.space.variable(op.induction_var)
        for op in enclosing_loops(block)
        if (op is not loop and is_inside(op, loop))
    ]
    if any(variable.symbols & end.symbols for each in inner for end in (each.lower, each.upper) if end is not None):
        return None
    found = range_of(self.space.prover, Axis(binding), inner)
    if found is None or not found.extent.symbols <= set(self.func.symbol_names):
        return None
    if not Instances(self, block, loop).take_all([number]):
        return None
    # from one iteration to the next; of a quotient it may be 0 here and 1 there
    step = found.lower.substitute({variable.as_symbol or "": variable + 1}) - found.lower
    moves = self.space.less_equal(0, step) and self.space.prover.equal(step, 0) is not True
    overlaps = moves and self.space.less_equal(step + 1, found.extent)
    before = found.lower.substitute({variable.as_symbol or "": variable - 1}) + found.extent
    return _Window(loop, axis, number, found, before) if overlaps else None


def _check_uses(self: ScheduleState, block: BlockOp, buffer: SSAValue, window: _Window) -> None:
    """Refuses other writers, and reads before the block or of what is not in the window."""
    name, hint = block.block_name.data, buffer.name_hint
    for access in accesses_in(self.space, self.func):
        if access.buffer is not buffer or is_inside(access.op, block):
            continue
        if access.is_store:
            raise self.error(f'{describe(access.op)} writes buffer "{hint}", too')
        if not is_inside(access.op, window.loop) or not comes_before(self, block, access.op):
            raise self.error(f'{describe(access.op)} reads buffer "{hint}" outside of the loops behind block "{name}"')
        if not _is_inside_window(self, access, window):
            extent = window.range.extent
            raise self.error(f'{describe(access.op)} reads buffer "{hint}" outside of a window of {extent} elements')


def _is_inside_window(self: ScheduleState, access: Access, window: _Window) -> bool:
    inner = [self.space.variable(op.induction_var) for op in loops_between(access, window.loop)]
    found = range_of(self.space.prover, access.axes[window.axis], inner)
    if found is None:
        return False
    ends = found.lower + found.extent, window.range.lower + window.range.extent
    return bool(self.space.less_equal(window.range.lower, found.lower)) and bool(self.space.less_equal(*ends))


def _check_inputs(self: ScheduleState, block: BlockOp, loop: ForOp, known: set[SSAValue]) -> None:
    """Refuses inputs of which an element may have another value in another iteration of the loop.

    What is written in the loop must be written at the iterators of a block, and be made of such inputs itself.
    """
    for buffer in read_buffers(block) - known:
        known.add(buffer)
        for op in loop.walk():
            if not touches(op, {buffer}, writes_only=True):
                continue
            writer, hint = enclosing_block(op), buffer.name_hint
            if writer is None or not isinstance(op, StoreOp) or _updates(writer, op):
                raise self.error(f'{describe(op)} may give an element of buffer "{hint}" another value')
            if iterators_of_indices(writer, op.indices) is None:
                raise self.error(
                    f'{describe(op)} stores to buffer "{hint}" at other indices than its iterators: of buffers that '
                    f'are made of each other, roll "{hint}" after those that are made of it'
                )
            _check_inputs(self, writer, loop, known)


def _updates(block: BlockOp, store: StoreOp) -> bool:
    """Whether what a block stores to an element may depend on what was there."""
    return block.init is None and root_buffer(store.buffer) in read_buffers(block)


def _compute_what_is_new(self: ScheduleState, block: BlockOp, window: _Window) -> None:
    """Lets the block run in the first iteration, and for what the iteration before has not computed."""
    binding = self.space.dim_of(block.iterators[window.iterator].binding) or window.range.lower
    iteration = self.symbol(window.loop) - self.lower(window.loop)
    missing = window.before - binding
    emitter = Materializer(self.func, self.space, InsertPoint.before(block))
    condition = emit_conditions(emitter, [Less(minimum(iteration, missing), constant(1))])
    if condition is not None:
        add_condition(block, condition)
