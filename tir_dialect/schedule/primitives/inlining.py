"""Inlining a block into the blocks that use its result, or into the block that makes its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import enclosing_block
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import erase_nest
from tir_dialect.schedule.elementwise import ElementBlock, element_block, iterators_of_indices, own_allocation
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.inverse import inverse
from tir_dialect.schedule.materialize import Materializer, header_value
from tir_dialect.schedule.moves import iterator_extent
from tir_dialect.schedule.normalize import Less, emit_conditions
from tir_dialect.schedule.program_order import describe, runs_between
from tir_dialect.schedule.state import ScheduleState, primitive


@primitive
def compute_inline(self: ScheduleState, block: Block) -> None:
    """Inlines a block into its consumers, and removes the block and its buffer.

    rewrite:
        for i: B[i] = f(A[i])
        for i: C[i] = g(B[i])
        -> for i: C[i] = g(f(A[i]))

    Refuses blocks that do more than store one element per instance at its iterators, buffers that are parameters or
    that others write or see as a whole, and inputs that change before the result is used.
    """
    producer = element_block(self, block.op)
    allocation = own_allocation(self, producer.store.buffer)
    loads = _loads_of(self, allocation.buffer, producer.store)
    positions = _positions(self, block.op, producer.store, producer.store.indices)
    _check_inputs(self, producer, loads)
    computed: dict[tuple[object, ...], SSAValue] = {}
    for load in loads:
        key = (load.parent, *load.indices)
        if key not in computed:
            values = _bind_iterators(self, block.op, positions, load.indices)
            computed[key] = _clone_body(producer, values, InsertPoint.before(load))
        _replace_load(load, computed[key])
    erase_nest(block.op)
    Rewriter.erase_op(allocation)


@primitive
def reverse_compute_inline(self: ScheduleState, block: Block) -> None:
    """Inlines a block into its producer, and removes the buffer between them.

    rewrite:
        for i: B[i] = f(A[i])
        for i: C[i] = g(B[i])
        -> for i: C[i] = g(f(A[i]))

    The buffer may be read in another order, `B[i // 4, i % 4]`, and elements that nobody reads are not stored. Refuses
    blocks that do more than store one element per instance, or that read an element of the buffer between several
    times; producers that are reductions; and buffers that others use.
    """
    consumer = element_block(self, block.op)
    allocation, loads = _intermediate(self, consumer)
    store = _producer_store(self, allocation, loads)
    producer = enclosing_block(store)
    if producer is None:
        raise self.error(f'buffer "{allocation.buffer.name_hint}" is not written by a block')
    check_moved_up(self, consumer, producer, allocation.buffer)
    values = _values_at(self, block.op, loads[0], store, allocation)
    known: dict[SSAValue, SSAValue] = {load.result: store.value for load in loads}
    point = _where_it_runs(self, block.op, values, store)
    _clone_ops(block.op.body.block, {**values, **known}, point, skip=loads)
    Rewriter.erase_op(store)
    erase_nest(block.op)
    Rewriter.erase_op(allocation)


def _loads_of(self: ScheduleState, buffer: SSAValue, store: StoreOp) -> list[LoadOp]:
    """The loads that use a buffer; refuses one that anything but scalar loads and `store` uses."""
    loads: list[LoadOp] = []
    for use in buffer.uses:
        op = use.operation
        if op is store:
            continue
        if not isinstance(op, LoadOp) or op.lanes is not None:
            raise self.error(f'buffer "{buffer.name_hint}" is used by {describe(op)}, expected scalar loads only')
        loads.append(op)
    return loads


def _positions(self: ScheduleState, block: BlockOp, access: Operation, indices: Sequence[SSAValue]) -> list[int | None]:
    positions = iterators_of_indices(block, indices)
    if positions is None:
        raise self.error(
            f"block \"{block.block_name.data}\" has a '{access.name}' at other indices than its iterators, each once"
        )
    return positions


def _bind_iterators(
    self: ScheduleState, block: BlockOp, positions: Sequence[int | None], indices: Sequence[SSAValue]
) -> dict[SSAValue, SSAValue]:
    """The values of a block's iterators in the instance that touches the element at `indices`."""
    args = block.body.block.args
    values: dict[SSAValue, SSAValue] = {
        args[position]: index for position, index in zip(positions, indices, strict=True) if position is not None
    }
    zero = header_value(self.func, constant(0)) if len(values) < len(args) else None
    return values if zero is None else {arg: values.get(arg, zero) for arg in args}


def _check_inputs(self: ScheduleState, producer: ElementBlock, loads: Sequence[LoadOp]) -> None:
    inputs = {load.buffer for load in producer.loads}
    if producer.store.buffer in inputs:
        raise self.error(f'block "{producer.op.block_name.data}" reads what it writes')
    if not loads:
        return
    writer = runs_between(self, producer.op, loads, inputs, writes_only=True)
    writer = writer or _own_write(loads, inputs)
    if writer is not None:
        name = producer.op.block_name.data
        raise self.error(f'{describe(writer)} writes an input of block "{name}" before its result is used')


def _own_write(loads: Sequence[LoadOp], inputs: set[SSAValue]) -> Operation | None:
    """A store to an input in a block that would load it in place of the result."""
    blocks = {block for load in loads if (block := enclosing_block(load)) is not None}
    stores = (op for block in blocks for op in block.body.walk() if isinstance(op, StoreOp))
    return next((op for op in stores if op.buffer in inputs), None)


def _clone_body(producer: ElementBlock, values: Mapping[SSAValue, SSAValue], point: InsertPoint) -> SSAValue:
    mapping = _clone_ops(producer.op.body.block, values, point, skip=(producer.store,))
    return mapping.get(producer.store.value, producer.store.value)


def _clone_ops(
    body: IRBlock, values: Mapping[SSAValue, SSAValue], point: InsertPoint, skip: Sequence[Operation]
) -> dict[SSAValue, SSAValue]:
    mapping = dict(values)
    for op in body.ops:
        if op not in skip:
            clone = op.clone(mapping)
            Rewriter.insert_op(clone, point)
    return mapping


def _replace_load(load: LoadOp, value: SSAValue) -> None:
    value.name_hint = value.name_hint or load.result.name_hint
    load.result.replace_all_uses_with(value)
    Rewriter.erase_op(load)


def _intermediate(self: ScheduleState, consumer: ElementBlock) -> tuple[AllocBufferOp, list[LoadOp]]:
    """The buffer that `consumer` alone reads, and its loads."""
    name = consumer.op.block_name.data
    found: dict[SSAValue, list[LoadOp]] = {}
    for load in consumer.loads:
        if isinstance(load.buffer.owner, AllocBufferOp) and load.buffer is not consumer.store.buffer:
            found.setdefault(load.buffer, []).append(load)
    own = {
        buffer: loads
        for buffer, loads in found.items()
        if all(_is_producer(use.operation, buffer) or is_inside(use.operation, consumer.op) for use in buffer.uses)
    }
    if len(own) != 1:
        raise self.error(f'block "{name}" reads {len(own)} allocated buffers that nobody else reads, expected one')
    ((buffer, loads),) = own.items()
    space = IndexSpace(consumer.op)
    places = [[space.dim_of(index) or index for index in load.indices] for load in loads]
    if any(place != places[0] for place in places) or any(load.lanes is not None for load in loads):
        raise self.error(f'block "{name}" reads several elements of buffer "{buffer.name_hint}"')
    if any(load.parent is not consumer.op.body.block for load in loads):
        raise self.error(f'block "{name}" reads buffer "{buffer.name_hint}" under a condition')
    return own_allocation(self, buffer), loads


def _is_producer(op: Operation, buffer: SSAValue) -> bool:
    """Whether an op stores to a buffer, or loads from it in a block that does."""
    block = enclosing_block(op)
    return block is not None and any(isinstance(o, StoreOp) and o.buffer is buffer for o in block.body.walk())


def _producer_store(self: ScheduleState, allocation: AllocBufferOp, loads: Sequence[LoadOp]) -> StoreOp:
    buffer = allocation.buffer
    stores = [use.operation for use in buffer.uses if use.operation not in loads]
    reader = next((op for op in stores if isinstance(op, LoadOp)), None)
    if reader is not None:
        raise self.error(f'buffer "{buffer.name_hint}" is updated by {describe(reader)}: its values are not final')
    if len(stores) != 1 or not isinstance(stores[0], StoreOp) or stores[0].lanes is not None:
        raise self.error(f'buffer "{buffer.name_hint}" has {len(stores)} writes, expected one scalar store')
    return stores[0]


def _values_at(
    self: ScheduleState, block: BlockOp, load: LoadOp, store: StoreOp, allocation: AllocBufferOp
) -> dict[SSAValue, SSAValue]:
    """The values of a block's iterators in the instance that loads what `store` has stored."""
    positions = iterators_of_indices(block, load.indices)
    if positions is not None:
        _check_units(self, block, allocation, positions)
        return _bind_iterators(self, block, positions, store.indices)
    space, outside = IndexSpace(block), IndexSpace(enclosing_block(store) or self.func)
    indices = [space.dim_of(index) for index in load.indices]
    places = [outside.dim_of(index) for index in store.indices]
    names = {value: space.variable(value).dim.as_symbol or "" for value in block.body.block.args}
    found = None
    if None not in indices and None not in places:
        dims, targets = ([each for each in row if each is not None] for row in (indices, places))
        found = inverse(space, dims, targets, set(names.values()), allocation.buffer_type.shape)
    if found is None:
        raise self.error(f'block "{block.block_name.data}" may read an element of its input several times')
    emitter = Materializer(self.func, outside, InsertPoint.before(store))
    for place, value in zip(places, store.indices, strict=True):
        emitter.remember(place or constant(0), value)
    return {value: emitter.emit(outside.prover.simplify(found[name])) for value, name in names.items()}


def _check_units(
    self: ScheduleState, block: BlockOp, allocation: AllocBufferOp, positions: Sequence[int | None]
) -> None:
    """Refuses the index 0 where there are other elements."""
    for position, extent in zip(positions, allocation.buffer_type.shape, strict=True):
        if position is None and extent.constant_value != 1:
            name, hint = block.block_name.data, allocation.buffer.name_hint
            raise self.error(f'block "{name}" covers 1 of {extent} elements of buffer "{hint}"')


def _where_it_runs(
    self: ScheduleState, block: BlockOp, values: Mapping[SSAValue, SSAValue], store: StoreOp
) -> InsertPoint:
    """The place for what a block does for the element that is stored: under a condition if there may be no instance."""
    outside = IndexSpace(enclosing_block(store) or self.func)
    emitter = Materializer(self.func, outside, InsertPoint.before(store))
    conditions: list[Less | SSAValue] = []
    for number, argument in enumerate(block.body.block.args):
        value, extent = outside.dim_of(values[argument]), iterator_extent(self, block, number)
        if value is None:
            below = arith.CmpiOp(values[argument], emitter.emit(extent), "slt")
            conditions.append(emitter.insert(below))
            continue
        emitter.remember(value, values[argument])
        if outside.prover.less(value, extent) is not True:
            conditions.append(Less(value, extent))
    condition = emit_conditions(emitter, conditions)
    if condition is None:
        return InsertPoint.before(store)
    branch = IfOp(condition)
    Rewriter.insert_op(branch, InsertPoint.before(store))
    return InsertPoint.at_end(branch.then_body.block)


def check_moved_up(self: ScheduleState, consumer: ElementBlock, producer: BlockOp, between: SSAValue) -> None:
    """Refuses if what the consumer reads or writes is touched between the producer and the consumer."""
    inputs = {load.buffer for load in consumer.loads} - {between}
    name = consumer.op.block_name.data
    writer = runs_between(self, producer, [consumer.op], inputs, writes_only=True)
    inside = (op for op in producer.body.walk() if isinstance(op, StoreOp) and op.buffer in inputs)
    writer = writer or next(inside, None)
    if writer is not None:
        raise self.error(f'{describe(writer)} writes an input of block "{name}" after the producer')
    output = {consumer.store.buffer}
    user = runs_between(self, producer, [consumer.op], output, writes_only=False)
    if user is not None or any(op.buffer in output for op in producer.body.walk() if isinstance(op, LoadOp | StoreOp)):
        raise self.error(f'the output of block "{name}" is used before it')
