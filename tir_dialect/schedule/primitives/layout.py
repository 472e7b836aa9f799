"""Changing the layout of buffers, and the iterators of a block, by an index map; and rolling buffers: keeping only a
window of a buffer that moves along with a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as IRBlock
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Axis
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange, read_buffers, written_buffers
from tir_dialect.analysis.structure import enclosing_block, enclosing_loops, root_buffer
from tir_dialect.dims import Dim, constant, minimum, mod, product, symbol
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.buffers import Which, any_buffer, mapped_shape, retype, written_buffer
from tir_dialect.schedule.edits import (
    Materializer,
    add_condition,
    erase_nest,
    header_value,
    nest_of,
    only_statement,
    set_condition,
)
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike, inverse
from tir_dialect.schedule.legality.accesses import Access, accesses_in, loops_between, range_of
from tir_dialect.schedule.legality.independence import check_reorderable
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.legality.motion import describe, iterators_of_indices, kind_of, own_allocation, touches
from tir_dialect.schedule.nests import (
    check_no_branch,
    check_plain_conditions,
    emit_conditions,
    hoist_allocation,
    insert_nest,
)
from tir_dialect.schedule.partial_writes import PadValue, fill, old_indices, pad_value_of
from tir_dialect.schedule.primitives.loops import check_serial
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import Less, comes_before, sized_extent
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class ElementAccess:
    """A load or store of an element, and its indices."""

    op: LoadOp | StoreOp
    space: IndexSpace
    indices: tuple[Dim, ...]


@primitive
def transform_layout(
    self: ScheduleState,
    block: Block,
    buffer: Which,
    index_map: IndexMapLike,
    pad_value: PadValue | None = None,
    *,
    assume_injective_transform: bool = False,
) -> None:
    """Changes the layout of a buffer: a map gives the new indices of element `[i, j]`, in all accesses.

    rewrite:
        B = alloc [n, m];                B[i, j] = ...; ... = B[i, j]
        -> B = alloc [ceildiv(n, 4), m, 4];  B[i // 4, j, i % 4] = ...; ... = B[i // 4, j, i % 4]

    The map is text, `"(i, j) -> (floordiv(i, 4), j, mod(i, 4))"`, or a function of dimensions. Elements that it leaves
    free are filled with `pad_value`, a number or a map from positions to one, or are not defined. Of a parameter this
    is another function, which takes the elements in the new order; what is free of one that is only read is the
    caller's. With `assume_injective_transform` the caller answers for that the map sends no two elements to one
    position where this cannot be shown.

    Refuses:
    1. a view, and a parameter of a function that others in the module call;
    2. accesses of vectors, views and calls, and indices that come from memory;
    3. maps of another number of indices, over other symbols than those of the function, of indices that may be
       negative, or that may not be injective;
    4. a `pad_value` that is no number of the dtype, nor a map of positions to one;
    5. a `pad_value` for a parameter that is read and written, or whose unused elements cannot be determined.
    """
    value = any_buffer(self, block.op, buffer)
    # The type of an allocated buffer, or of a parameter of a function that nobody else calls; refuses others.
    if value.owner is not self.func.body.block:
        kind = own_allocation(self, value).buffer_type
    else:
        module, name = self.func.parent_op(), self.func.sym_name.data
        for op in () if module is None else module.walk():
            if any(_names(attribute, name) for attribute in op.properties.values()) and op is not self.func:
                raise self.error(f"buffer \"{value.name_hint}\" is a parameter, and '{op.name}' calls the function")
        kind = SSAValue.get(value, type=BufferType).type
    try:
        wanted = IndexMap.of(index_map, kind.rank)
    except ValueError as error:
        raise self.error(str(error)) from None
    self.record_as(index_map, wanted)
    shape = mapped_shape(self, wanted, kind.shape, assume_injective=assume_injective_transform)
    padding = None if pad_value is None else pad_value_of(self, pad_value, len(shape), kind.dtype)
    accesses = buffer_accesses(self, value)
    fills = self.space.prover.equal(product(shape), product(kind.shape)) is not True
    free = None
    if padding is not None and fills and not isinstance(value.owner, AllocBufferOp):
        fills = _is_output(self, value)
        # what the function does not write is the caller's
        free = old_indices(self, wanted, kind.shape, shape, value.name_hint or "buffer") if fills else None
    value = retype(value, BufferType(shape, kind.dtype, scope=kind.scope, align=kind.align))
    move_accesses(self, accesses, wanted)
    if padding is not None and fills:
        fill(self, value, padding, free)


def _names(attribute: Attribute, name: str) -> bool:
    return isinstance(attribute, SymbolRefAttr) and attribute.root_reference.data == name


def _is_output(self: ScheduleState, buffer: SSAValue) -> bool:
    """Whether a parameter is written; refuses one that is read, too."""
    written = any(isinstance(use.operation, StoreOp) for use in buffer.uses)
    if written and any(isinstance(use.operation, LoadOp) for use in buffer.uses):
        raise self.error(f'buffer "{buffer.name_hint}" is a parameter that is read and written, so it cannot be filled')
    return written


def buffer_accesses(self: ScheduleState, buffer: SSAValue) -> list[ElementAccess]:
    """All accesses of a buffer; refuses one that is not of an element at known indices."""
    return [_access(self, use.operation, buffer) for use in buffer.uses]


def move_accesses(self: ScheduleState, accesses: Sequence[ElementAccess], index_map: IndexMap) -> None:
    """Sends accesses to the indices that a map gives."""
    for access in accesses:
        op = access.op
        emitter = Materializer(self.func, access.space, InsertPoint.before(op))
        for index, value in zip(access.indices, op.indices, strict=True):
            emitter.remember(index, value)
        mapped = index_map.apply(access.indices)
        # of what has no values anything is equal to anything, but the iterators have to stay in the indices
        if not any(variable.is_empty for variable in access.space.variables.values()):
            mapped = [access.space.prover.simplify(index) for index in mapped]
        indices = [emitter.emit(index) for index in mapped]
        new = LoadOp(op.buffer, indices) if isinstance(op, LoadOp) else StoreOp(op.value, op.buffer, indices)
        new.location = op.location
        Rewriter.replace_op(op, new)


def _access(self: ScheduleState, op: Operation, buffer: SSAValue) -> ElementAccess:
    if not isinstance(op, LoadOp | StoreOp) or op.lanes is not None:
        raise self.error(
            f'buffer "{buffer.name_hint}" is used by {kind_of(op)}, expected loads and stores of single elements'
        )
    block = enclosing_block(op)
    space = self.space if block is None else IndexSpace(block)
    indices = [space.dim_of(index) for index in op.indices]
    known = tuple(index for index in indices if index is not None)
    if len(known) != len(indices):
        raise self.error(f'{describe(op)} uses buffer "{buffer.name_hint}" at indices that come from memory')
    return ElementAccess(op, space, known)


Inverse = Mapping[SSAValue, Dim]
"""The old iterators in terms of `_placeholder(0)`, `_placeholder(1)`, ..., the new ones."""


@primitive
def transform_block_layout(self: ScheduleState, block: Block, index_map: IndexMapLike) -> None:
    """Replaces the iterators of a block by those that a map of them gives, and its loops accordingly.

    rewrite:
        for i in 8: for j in 16: block(vi = i, vj = j)
        -> for f in 128: block(vf = f), with vf // 16 for vi and vf % 16 for vj      # (vi, vj) -> (16 * vi + vj)

    Refuses:
    1. maps as in `transform_layout`, maps that cannot be inverted, and new iterators made of different kinds;
    2. loops that hold more than the block, or whose iterations `reorder` would not put in any order;
    3. predicates other than the bounds of iterators;
    4. loops that do not take the iterators through all values;
    5. loops that move no iterator and may be empty, or would repeat updates;
    6. extents that come from memory or depend on a block around.
    """
    op = block.op
    try:
        wanted = IndexMap.of(index_map, len(op.iterators))
    except ValueError as error:
        raise self.error(str(error)) from None
    self.record_as(index_map, wanted)
    extents = [sized_extent(self, op, number) for number in range(len(op.iterators))]
    shape = mapped_shape(self, wanted, extents)
    kinds = [_kind(self, op, wanted, output) for output in wanted.outputs]
    _check_loops(self, op)
    old = _inverse(self, op, wanted, shape)
    made = _new_block(self, op, kinds, shape)
    _fill(self, op, made, old)
    # Lets the block run where the old iterators are below their extents.
    limits = list(zip(old.values(), extents, strict=True))
    self.changed()
    bindings = [self.space.dim_of(binding) or constant(0) for binding in made.bindings]
    positions = {_placeholder(number).as_symbol or "": dim for number, dim in enumerate(bindings)}
    below = [Less(dim.substitute(positions), extent) for dim, extent in limits]
    unknown: list[Less | SSAValue] = [c for c in below if self.space.prover.less(c.lhs, c.rhs) is not True]
    emitter = Materializer(self.func, self.space, InsertPoint.before(made))
    set_condition(made, emit_conditions(emitter, unknown))
    erase_nest(op)
    made.block_name = op.block_name
    self.replaced(block, made)


def _placeholder(number: int) -> Dim:
    return symbol(f"place${number}")


def _kind(self: ScheduleState, block: BlockOp, index_map: IndexMap, output: Dim) -> IteratorKind:
    kinds = {it.kind for name, it in zip(index_map.inputs, block.iterators, strict=True) if name in output.symbols}
    if len(kinds) > 1:
        raise self.error(f"index map {index_map} mixes {' and '.join(sorted(kind.value for kind in kinds))} iterators")
    return kinds.pop() if kinds else IteratorKind.SPATIAL


def _check_loops(self: ScheduleState, block: BlockOp) -> None:
    name = block.block_name.data
    current: Operation | None = nest_of(block)
    while isinstance(current, ForOp):
        current = only_statement(current.body.block)
    if current is not block:
        raise self.error(f'expected loops that hold block "{name}" alone')
    if loops := enclosing_loops(block):
        check_reorderable(self, loops)
    _check_idle(self, block)
    check_plain_conditions(self, block)
    if not Instances(self, block).reach_all(range(len(block.iterators))):
        raise self.error(f'the loops do not reach all values of the iterators of block "{name}"')


def _check_idle(self: ScheduleState, block: BlockOp) -> None:
    """Refuses a loop that drives no iterator, which is left out, unless it has an iteration and repeats no update."""
    updates = block.init is None and not read_buffers(block).isdisjoint(written_buffers(block))
    for loop in Instances(self, block).idle(range(len(block.iterators))):
        extent = self.extent(loop)
        if extent.constant_value != 1 and (updates or self.space.less_equal(1, extent) is not True):
            name = loop.induction_var.name_hint
            raise self.error(
                f'loop "{name}" moves no iterator of block "{block.block_name.data}" and is not of length 1'
            )


def _inverse(self: ScheduleState, block: BlockOp, index_map: IndexMap, shape: Sequence[Dim]) -> dict[SSAValue, Dim]:
    space = IndexSpace(block)
    values = {value: space.variable(value).dim for value in block.body.block.args}
    outputs = index_map.apply(list(values.values()))
    names = {dim.as_symbol or "" for dim in values.values()}
    found = inverse(space, outputs, [_placeholder(number) for number in range(len(outputs))], names, shape)
    if found is None:
        raise self.error(f"index map {index_map} cannot be inverted")
    return {value: found[dim.as_symbol or ""] for value, dim in values.items()}


def _new_block(self: ScheduleState, block: BlockOp, kinds: Sequence[IteratorKind], shape: Sequence[Dim]) -> BlockOp:
    """The block, without a body, in its loops before those of the old one."""
    extents = [header_value(self.func, extent) for extent in shape]
    hints = [f"ax{axis}" for axis in range(len(shape))]
    iterators = [(kind, extent, extent) for kind, extent in zip(kinds, extents, strict=True)]
    made = BlockOp(block.block_name.data, iterators, name_hints=[f"v{hint}" for hint in hints])
    made.annotations = block.annotations
    ranges = [AxisRange(constant(0), extent) for extent in shape]
    insert_nest(self, made, ranges, hints, InsertPoint.before(nest_of(block)), block.location)
    return made


def _fill(self: ScheduleState, block: BlockOp, made: BlockOp, old: Inverse) -> None:
    """Copies the body of the old block, which sees its iterators in terms of the new ones."""
    space = IndexSpace(made)
    positions = {_placeholder(n).as_symbol or "": space.variable(v).dim for n, v in enumerate(made.body.block.args)}

    def clone(source: IRBlock, target: IRBlock) -> None:
        emitter = Materializer(self.func, space, InsertPoint.at_end(target))
        mapping = {v: emitter.emit(space.prover.simplify(dim.substitute(positions))) for v, dim in old.items()}
        for op in source.ops:
            if not isinstance(op, InitOp):
                target.add_op(op.clone(mapping))

    if block.init is not None:
        init = InitOp()
        Rewriter.insert_op(init, InsertPoint.at_start(made.body.block))
        clone(block.init.body.block, init.body.block)
    clone(block.body.block, made.body.block)


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
    # Refuses other writers, and reads before the block or of what is not in the window.
    name, hint = op.block_name.data, buffer.name_hint
    for access in accesses_in(self.space, self.func):
        if access.buffer is not buffer or is_inside(access.op, op):
            continue
        if access.is_store:
            raise self.error(f'{describe(access.op)} writes buffer "{hint}", too')
        if not is_inside(access.op, window.loop) or not comes_before(self, op, access.op):
            raise self.error(f'{describe(access.op)} reads buffer "{hint}" outside of the loops behind block "{name}"')
        if not _is_inside_window(self, access, window):
            extent = window.range.extent
            raise self.error(f'{describe(access.op)} reads buffer "{hint}" outside of a window of {extent} elements')
    _check_inputs(self, op, window.loop, {buffer})
    accesses = buffer_accesses(self, buffer)
    # Lets the block run in the first iteration, and for what the iteration before has not computed.
    binding = self.space.dim_of(op.iterators[window.iterator].binding) or window.range.lower
    iteration = self.symbol(window.loop) - self.lower(window.loop)
    missing = window.before - binding
    emitter = Materializer(self.func, self.space, InsertPoint.before(op))
    condition = emit_conditions(emitter, [Less(minimum(iteration, missing), constant(1))])
    if condition is not None:
        add_condition(op, condition)
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
    stores = [op for op in block.body.walk() if isinstance(op, StoreOp) and op.buffer is buffer]
    found = [iterators_of_indices(block, store.indices) for store in stores if store.lanes is None]
    if not stores or len(found) < len(stores) or found[0] is None or any(each != found[0] for each in found):
        name = block.block_name.data
        raise self.error(
            f'block "{name}" stores to buffer "{buffer.name_hint}" at other indices than its iterators, each once'
        )
    positions = found[0]
    for loop in enclosing_loops(block):
        for axis, number in enumerate(positions):
            found = None if number is None else _window_in(self, block, loop, axis, number)
            if found is not None:
                return found
    raise self.error(
        f'no loop around block "{block.block_name.data}" needs elements of buffer "{buffer.name_hint}" again that '
        "the iteration before it needed"
    )


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
