"""Inlining a block into the blocks that use its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.structure import ancestors, enclosing_block, is_inside
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.regions import ReadsOp
from tir_dialect.schedule.handles import Block
from tir_dialect.schedule.legality.accesses import read_buffers
from tir_dialect.schedule.legality.elementwise import ElementBlock, element_block, iterators_of_indices, own_allocation
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.legality.motion import describe, runs_between, touches
from tir_dialect.schedule.legality.safe_accesses import check_new_instances
from tir_dialect.schedule.rewriting.buffers import check_declared, redeclare
from tir_dialect.schedule.rewriting.edits import erase_nest
from tir_dialect.schedule.rewriting.materialize import header_value
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import shape_of


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
    _check_in_scope(self, producer, loads)
    check_declared(self, declared, loads)
    _check_elements(self, producer, positions)
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
    writer = writer or _own_write(loads, inputs)
    if writer is not None:
        name = producer.op.block_name.data
        raise self.error(f'{describe(writer)} writes an input of block "{name}" before its result is used')


def _check_in_scope(self: ScheduleState, producer: ElementBlock, loads: Sequence[LoadOp]) -> None:
    """Refuses a producer that uses what is defined around it, but not around all of its consumers."""
    used = dict.fromkeys(operand for op in producer.op.body.walk() for operand in op.operands)
    for value in used:
        scope = value.owner.parent_op()
        outside = next((load for load in loads if all(op is not scope for op in ancestors(load))), None)
        if outside is not None and not is_inside(value, producer.op):
            raise self.error(
                f'"{value.name_hint}" is local to where block "{producer.op.block_name.data}" is, '
                f"expected a value that {describe(outside)} can use, too"
            )


def _check_elements(self: ScheduleState, producer: ElementBlock, positions: Sequence[int | None]) -> None:
    """Refuses a producer that does not run for all elements if for the others it might load what is not there."""
    instances = Instances(self, producer.op)
    numbers = range(len(producer.op.iterators))
    extents = instances.extents(numbers)
    for index, extent in zip(positions, shape_of(producer.store.buffer), strict=True):
        if index is not None:
            extents[index] = extent
    check_new_instances(self, instances, extents, numbers, producer.loads)


def _own_write(loads: Sequence[LoadOp], inputs: set[SSAValue]) -> Operation | None:
    """A store to an input in a block that would load it in place of the result."""
    blocks = {block for load in loads if (block := enclosing_block(load)) is not None}
    inside = (op for block in blocks for op in block.body.walk())
    return next((op for op in inside if touches(op, inputs, writes_only=True)), None)


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
