"""Inlining a block into the blocks that use its result (`compute_inline`), or into the block that makes its input
(`reverse_compute_inline`).

The copy of a reduction's result goes, too: the reduction works in the destination of the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import read_buffers
from tir_dialect.analysis.structure import ancestors, enclosing_block, is_defined_inside, root_buffer
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp, ReadsOp
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.buffers import check_declared, redeclare
from tir_dialect.schedule.edits import Materializer, erase_nest, header_value
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.index_map import inverse
from tir_dialect.schedule.legality.instances import Instances, check_new_instances
from tir_dialect.schedule.legality.motion import (
    ElementBlock,
    check_moved_up,
    describe,
    element_block,
    iterators_of_indices,
    kind_of,
    own_allocation,
    runs_between,
    touches,
)
from tir_dialect.schedule.nests import earlier_user, emit_conditions, hoist_allocation
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import Less, iterator_extent, shape_of


@primitive
def compute_inline(self: ScheduleState, block: Block) -> None:
    """Inlines a block into its consumers, and removes the block and its buffer.

    rewrite:
        for i: B[i] = f(A[i])
        for i: C[i] = g(B[i])
        -> for i: C[i] = g(f(A[i]))

    Refuses:
    1. a block with reduce, scan or opaque iterators, with a predicate, or that does more than store one element;
    2. a result that is a parameter or view, or that is stored at other indices than the iterators, each once;
    3. a result that is used otherwise than by loads of single elements, or of which a block declares to read more than
       it loads;
    4. inputs that are written before the result is used, or by the block itself;
    5. elements that the block may not compute, if it could load outside of its inputs for them.
    """
    producer = element_block(self, block.op)
    allocation = own_allocation(self, producer.store.buffer)
    loads, declared = _reads_of(self, allocation.buffer, producer.store)
    positions = _positions(self, block.op, producer.store, producer.store.indices)
    _check_inputs(self, producer, loads)
    # Refuses a producer that uses what is defined around it, but not around all of its consumers.
    used = dict.fromkeys(operand for op in producer.op.body.walk() for operand in op.operands)
    for value in used:
        scope = value.owner.parent_op()
        outside = next((load for load in loads if all(op is not scope for op in ancestors(load))), None)
        if outside is not None and not is_defined_inside(value, producer.op):
            raise self.error(
                f'"{value.name_hint}" is local to where block "{producer.op.block_name.data}" is, '
                f"expected a value that {describe(outside)} can use, too"
            )
    check_declared(self, declared, loads)
    # Refuses a producer that does not run for all elements if for the others it might load what is not there.
    instances = Instances(self, producer.op)
    numbers = range(len(producer.op.iterators))
    extents = instances.extents(numbers)
    for index, extent in zip(positions, shape_of(producer.store.buffer), strict=True):
        if index is not None:
            extents[index] = extent
    check_new_instances(self, instances, extents, numbers, producer.loads)
    computed: dict[tuple[object, ...], SSAValue] = {}
    read: list[LoadOp] = []
    for load in loads:
        key = (load.parent, *load.indices)
        if key not in computed:
            values = bind_iterators(self, block.op, positions, load.indices)
            computed[key], loaded = _clone_body(producer, values, InsertPoint.before(load))
            read += loaded
        value = computed[key]
        value.name_hint = value.name_hint or load.result.name_hint
        load.result.replace_all_uses_with(value)
        Rewriter.erase_op(load)
    redeclare(self, declared, read)
    erase_nest(block.op)
    Rewriter.erase_op(allocation)


def _reads_of(self: ScheduleState, buffer: SSAValue, store: StoreOp) -> tuple[list[LoadOp], list[ReadsOp]]:
    """The loads that use a buffer, in program order, and what blocks declare of them.

    Refuses a buffer that anything but scalar loads and `store` uses.
    """
    loads: list[LoadOp] = []
    declared: list[ReadsOp] = []
    for use in buffer.uses:
        op = use.operation
        if op is store:
            continue
        if isinstance(op, ReadsOp):
            declared.append(op)
        elif isinstance(op, LoadOp) and op.lanes is None:
            loads.append(op)
        else:
            raise self.error(f'buffer "{buffer.name_hint}" is used by {describe(op)}, expected scalar loads only')
    order = {op: position for position, op in enumerate(self.func.walk())}
    return sorted(loads, key=lambda load: order[load]), declared


def _positions(self: ScheduleState, block: BlockOp, access: Operation, indices: Sequence[SSAValue]) -> list[int | None]:
    positions = iterators_of_indices(block, indices)
    if positions is None:
        raise self.error(
            f"block \"{block.block_name.data}\" has a '{access.name}' at other indices than its iterators, each once"
        )
    return positions


def bind_iterators(
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
    inputs = read_buffers(producer.op)
    if producer.store.buffer in inputs:
        raise self.error(f'block "{producer.op.block_name.data}" reads what it writes')
    if not loads:
        return
    writer = runs_between(self, producer.op, loads, inputs, writes_only=True)
    # A store to an input in a block that would load it instead of the result.
    blocks = {block for load in loads if (block := enclosing_block(load)) is not None}
    inside = (op for block in blocks for op in block.body.walk())
    writer = writer or next((op for op in inside if touches(op, inputs, writes_only=True)), None)
    if writer is not None:
        name = producer.op.block_name.data
        raise self.error(f'{describe(writer)} writes an input of block "{name}" before its result is used')


def _clone_body(
    producer: ElementBlock, values: Mapping[SSAValue, SSAValue], point: InsertPoint
) -> tuple[SSAValue, list[LoadOp]]:
    """What the producer would store, and the loads in its computation."""
    mapping = clone_ops(producer.op.body.block, values, point, skip=(producer.store,))
    made = [value.owner for old, value in mapping.items() if old not in values]
    loads = [each for op in made if isinstance(op, Operation) for each in op.walk() if isinstance(each, LoadOp)]
    return mapping.get(producer.store.value, producer.store.value), loads


def clone_ops(
    body: IRBlock, values: Mapping[SSAValue, SSAValue], point: InsertPoint, skip: Sequence[Operation]
) -> dict[SSAValue, SSAValue]:
    """Clones the ops of a body but for some, with other values for some; what stands for each value."""
    mapping = dict(values)
    for op in body.ops:
        if op not in skip:
            clone = op.clone(mapping)
            Rewriter.insert_op(clone, point)
    return mapping


def is_plain_copy(consumer: ElementBlock, loads: Sequence[LoadOp]) -> bool:
    """Whether a block stores what it loads, each at its iterators."""
    if len(loads) != 1 or consumer.store.value is not loads[0].result:
        return False
    indices = (loads[0].indices, consumer.store.indices)
    return all(iterators_of_indices(consumer.op, each) is not None for each in indices)


def work_in_copy(self: ScheduleState, consumer: ElementBlock, load: LoadOp) -> None:
    """Lets those that use a buffer, but for the block that copies it, use the copy.

    Refuses a copy of a part, and a copy that others write while the buffer is in use.
    """
    buffer, copy = load.buffer, consumer.store.buffer
    # For each dimension of the copy that of the buffer which has the same index, `None` for the index 0.
    block = consumer.op
    there = iterators_of_indices(block, load.indices) or []
    back = iterators_of_indices(block, consumer.store.indices) or []
    for position, extent in zip(there, shape_of(load.buffer), strict=True):
        covered = constant(1) if position is None else iterator_extent(self, block, position)
        if self.space.prover.equal(covered, extent) is not True:
            name, hint = block.block_name.data, load.buffer.name_hint
            raise self.error(f'block "{name}" copies {covered} of {extent} elements of buffer "{hint}"')
    order = [there.index(position) if position in there else None for position in back]
    uses = [use.operation for use in buffer.uses if use.operation is not load]
    producers = {op: _scalar_access(self, op, buffer) for op in uses}
    for producer in dict.fromkeys(producers.values()):
        check_moved_up(self, consumer, producer, buffer)
        # Refuses others that write the copy in a loop of the producer: it goes on with what it finds
        # there.
        loop = next((op for op in reversed([*ancestors(producer)]) if isinstance(op, ForOp)), producer)
        for op in loop.walk():
            if touches(op, {root_buffer(copy)}, writes_only=True) and not is_inside(op, consumer.op):
                raise self.error(f'{describe(op)} writes buffer "{copy.name_hint}" in the loops of the reduction')
    zero = header_value(self.func, constant(0)) if None in order else None
    for op in uses:
        if isinstance(op, LoadOp | StoreOp):
            old = list(op.indices)
            indices = [zero if position is None else old[position] for position in order]
            _use_copy(op, copy, [index for index in indices if index is not None])


def _scalar_access(self: ScheduleState, op: Operation, buffer: SSAValue) -> BlockOp:
    """The block of a scalar load or store; refuses other uses of the buffer."""
    block = enclosing_block(op)
    if not isinstance(op, LoadOp | StoreOp) or op.lanes is not None or block is None:
        raise self.error(
            f'buffer "{buffer.name_hint}" is used by {kind_of(op)} in {describe(op)}, expected loads and stores of '
            "single elements"
        )
    return block


def _use_copy(op: LoadOp | StoreOp, copy: SSAValue, indices: Sequence[SSAValue]) -> None:
    point = InsertPoint.before(op)
    if isinstance(op, StoreOp):
        Rewriter.insert_op(StoreOp(op.value, copy, indices), point)
    else:
        load = LoadOp(copy, indices)
        load.result.name_hint = op.result.name_hint
        Rewriter.insert_op(load, point)
        op.result.replace_all_uses_with(load.result)
    Rewriter.erase_op(op)


@primitive
def reverse_compute_inline(self: ScheduleState, block: Block) -> None:
    """Inlines a block into its producer, and removes the buffer between them.

    rewrite:
        for i: B[i] = f(A[i])
        for i: C[i] = g(B[i])
        -> for i: C[i] = g(f(A[i]))

    The buffer may be read in another order, `B[i // 4, i % 4]`, and elements that nobody reads are not stored. After a
    reduction, a block that only copies all elements, in any order of dimensions, goes: the reduction works in the copy.

    Refuses:
    1. a block with reduce, scan or opaque iterators, with a predicate, or that does more than store one element;
    2. other than one allocated buffer that only the block and its producers use;
    3. a block that loads several elements of it, or one under a condition; and one that loads an element several times;
    4. loops that do not take the iterators through all values, or may be empty, and a branch without the producer;
    5. several producers; after reductions, other blocks than copies of all elements, and accesses of vectors;
    6. inputs and outputs of the block that others use between producer and block, or, after a reduction, write in its
       loops;
    7. an output that is allocated in a loop which the producer is not in;
    8. loops that repeat instances, if the block updates elements of its output.
    """
    consumer = element_block(self, block.op)
    allocation, loads = _intermediate(self, consumer)
    users = [use.operation for use in allocation.buffer.uses if use.operation not in loads]
    _check_instances(self, block.op, users)
    position = earlier_user(self, consumer.store.buffer, users)
    if is_plain_copy(consumer, loads) and any(isinstance(op, LoadOp) for op in users):
        work_in_copy(self, consumer, loads[0])
    else:
        # The producer stores what the consumer computes of its values.
        buffer = allocation.buffer
        stores = [use.operation for use in buffer.uses if use.operation not in loads]
        reader = next((op for op in stores if isinstance(op, LoadOp)), None)
        if reader is not None:
            raise self.error(f'buffer "{buffer.name_hint}" is updated by {describe(reader)}: its values are not final')
        store = stores[0] if len(stores) == 1 else None
        producer = None if store is None else enclosing_block(store)
        if not isinstance(store, StoreOp) or store.lanes is not None or producer is None:
            raise self.error(f'buffer "{buffer.name_hint}" has {len(stores)} writes, expected one scalar store')
        check_moved_up(self, consumer, producer, allocation.buffer)
        if consumer.store.buffer in read_buffers(consumer.op):
            _check_distinct(self, consumer.op, producer)
            _check_distinct(self, producer, consumer.op)
        values = _values_at(self, consumer.op, loads[0], store, allocation)
        known: dict[SSAValue, SSAValue] = {load.result: store.value for load in loads}
        point = _where_it_runs(self, consumer.op, values, store)
        clone_ops(consumer.op.body.block, {**values, **known}, point, skip=loads)
        Rewriter.erase_op(store)
    if position is not None:
        hoist_allocation(consumer.store.buffer, position)
    erase_nest(block.op)
    Rewriter.erase_op(allocation)


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
    positions = [[space.dim_of(index) or index for index in load.indices] for load in loads]
    if any(position != positions[0] for position in positions) or any(load.lanes is not None for load in loads):
        raise self.error(f'block "{name}" reads several elements of buffer "{buffer.name_hint}"')
    if any(load.parent is not consumer.op.body.block for load in loads):
        raise self.error(f'block "{name}" reads buffer "{buffer.name_hint}" under a condition')
    return own_allocation(self, buffer), loads


def _is_producer(op: Operation, buffer: SSAValue) -> bool:
    """Whether an op stores to a buffer, or loads from it in a block that does."""
    block = enclosing_block(op)
    return block is not None and any(isinstance(o, StoreOp) and o.buffer is buffer for o in block.body.walk())


def _check_instances(self: ScheduleState, consumer: BlockOp, users: Sequence[Operation]) -> None:
    """Refuses a consumer that may not run for all values of its iterators where the other users run."""
    instances = Instances(self, consumer)
    if not instances.reach_all(range(len(consumer.iterators))):
        raise self.error(
            f'the loops of block "{consumer.block_name.data}" do not take its iterators through all values'
        )
    for loop in instances.idle(range(len(consumer.iterators))):
        if all(is_inside(user, loop) for user in users):
            continue
        if self.space.less_equal(1, self.extent(loop)) is not True:
            raise self.error(f'loop "{loop.induction_var.name_hint}" may have no iteration')
    for op in ancestors(consumer):
        if isinstance(op, IfOp) and not all(is_inside(user, op) for user in users):
            raise self.error(f"block \"{consumer.block_name.data}\" stands in a 'tir.if' without its producer")


def _check_distinct(self: ScheduleState, block: BlockOp, other: BlockOp) -> None:
    """Refuses loops that repeat instances of a block and are not around the other one."""
    instances = Instances(self, block)
    for loop in instances.loops:
        if not (is_inside(other, loop) or instances.are_distinct([loop]) or instances.run_once(loop)):
            raise self.error(
                f'loop "{loop.induction_var.name_hint}" may run instances of block "{block.block_name.data}" again, '
                "expected each once where elements are updated"
            )


def _values_at(
    self: ScheduleState, block: BlockOp, load: LoadOp, store: StoreOp, allocation: AllocBufferOp
) -> dict[SSAValue, SSAValue]:
    """The values of a block's iterators in the instance that loads what `store` has stored."""
    positions = iterators_of_indices(block, load.indices)
    if positions is not None:
        for position, extent in zip(positions, allocation.buffer_type.shape, strict=True):
            if position is None and extent.constant_value != 1:
                name, hint = block.block_name.data, allocation.buffer.name_hint
                raise self.error(f'block "{name}" covers 1 of {extent} elements of buffer "{hint}"')
        return bind_iterators(self, block, positions, store.indices)
    space, outside = IndexSpace(block), IndexSpace(enclosing_block(store) or self.func)
    indices = [space.dim_of(index) for index in load.indices]
    target_dims = [outside.dim_of(index) for index in store.indices]
    names = {value: space.variable(value).dim.as_symbol or "" for value in block.body.block.args}
    found = None
    if None not in indices and None not in target_dims:
        dims, targets = ([each for each in row if each is not None] for row in (indices, target_dims))
        found = inverse(space, dims, targets, set(names.values()), allocation.buffer_type.shape)
    if found is None:
        raise self.error(f'block "{block.block_name.data}" may read an element of its input several times')
    emitter = Materializer(self.func, outside, InsertPoint.before(store))
    for position, value in zip(target_dims, store.indices, strict=True):
        emitter.remember(position or constant(0), value)
    return {value: emitter.emit(outside.prover.simplify(found[name])) for value, name in names.items()}


def _where_it_runs(
    self: ScheduleState, block: BlockOp, values: Mapping[SSAValue, SSAValue], store: StoreOp
) -> InsertPoint:
    """The position for what a block does for the element that is stored: under a condition if there may be no
    instance.
    """
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
