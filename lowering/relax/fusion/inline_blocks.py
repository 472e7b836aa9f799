"""Inlines the producers of a buffer into its readers, so that the buffer goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import is_index_op
from tir_dialect.types import IteratorKind

MOST_REPEATED = 8
"""So many simple operations may be done again for each use, rather than written to memory and read."""

EXPENSIVE = (arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.FloorDivSIOp)
"""Operations that take several times as long as an addition, with the functions of `math`."""

FREE = (arith.ConstantOp, arith.IndexCastOp)
SIMPLE_MATH = (math.AbsFOp, math.FmaOp, math.CopySignOp, math.FloorOp, math.CeilOp, math.TruncOp)


def inline_buffers(func: PrimFuncOp, buffers: Sequence[SSAValue]) -> None:
    """Removes those of the function's own buffers whose elements are better computed where they are read.

    That is so for elements that are computed at their own index by code without loops, if they are used once, or are
    cheaper to compute again than to keep. The buffers are given in the order in which they are written; the time is
    linear in the size of the result.
    """
    accesses = _Accesses(func)
    for buffer in reversed(buffers):
        producer = _Producer.of(buffer, accesses)
        if producer is not None and producer.is_profitable(accesses.loads_of(buffer)):
            producer.inline(accesses)
    for op in func.body.walk():
        if isinstance(op, BlockOp):
            _number_values(op.body.block, accesses)
    for op in reversed(ops_in(func.body)):
        if is_index_op(op) and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


@dataclass
class _Accesses:
    """Who reads and writes which buffer, and where in the function."""

    func: PrimFuncOp
    _loads: dict[SSAValue, dict[LoadOp, None]] = field(default_factory=dict[SSAValue, dict[LoadOp, None]])
    _stores: dict[SSAValue, list[StoreOp]] = field(default_factory=dict[SSAValue, list[StoreOp]])
    _last_write: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _position: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def __post_init__(self) -> None:
        for position, nest in enumerate(self.func.body.block.ops):
            self._position[nest] = position
            for op in nest.walk():
                self.add((op,))
                if isinstance(op, StoreOp):
                    self._stores.setdefault(op.buffer, []).append(op)
                    self._last_write[op.buffer] = position

    def loads_of(self, buffer: SSAValue) -> list[LoadOp]:
        """The loads that there are now."""
        return list(self._loads.get(buffer, ()))

    def only_store(self, buffer: SSAValue) -> StoreOp | None:
        """The store to a buffer, if there is one only and nothing else may write it."""
        stores = self._stores.get(buffer, [])
        used = {use.operation for use in buffer.uses}
        plain = all(isinstance(op, LoadOp | StoreOp) for op in used)
        return stores[0] if plain and len(stores) == 1 else None

    def is_written(self, buffer: SSAValue, nest: Operation) -> bool:
        """Whether a buffer is written in a nest or after it."""
        return self._last_write.get(buffer, -1) >= self._position[nest]

    def is_only_read(self, buffer: SSAValue) -> bool:
        """Whether the function writes a buffer nowhere."""
        return buffer not in self._stores

    def add(self, ops: Iterable[Operation]) -> None:
        """Ops that are new."""
        for op in ops:
            if isinstance(op, LoadOp):
                self._loads.setdefault(op.buffer, {})[op] = None

    def remove(self, ops: Iterable[Operation]) -> None:
        """Ops that are to go."""
        for op in ops:
            if isinstance(op, LoadOp):
                self._loads[op.buffer].pop(op, None)


@dataclass(frozen=True)
class _Producer:
    """The nest that computes a buffer, one element in each instance of its block."""

    nest: Operation
    block: BlockOp
    store: StoreOp

    @staticmethod
    def of(buffer: SSAValue, accesses: _Accesses) -> _Producer | None:
        """The producer of a buffer, if its elements can be computed anywhere after it."""
        store = accesses.only_store(buffer)
        block = None if store is None else store.parent_op()
        if store is None or not isinstance(block, BlockOp) or block.condition is not None or store.lanes is not None:
            return None
        nest = _perfect_nest(block)
        if nest is None or not covers(block, store) or not _is_pure(block, store):
            return None
        reads = [op.buffer for op in block.walk() if isinstance(op, LoadOp)]
        safe = not any(accesses.is_written(read, nest) for read in reads)
        return _Producer(nest, block, store) if safe else None

    def is_profitable(self, loads: Sequence[LoadOp]) -> bool:
        """Whether to compute the elements again for each of the loads."""
        if any(load.lanes is not None or load.mask is not None for load in loads):
            return False
        work = [op for op in self.block.body.walk() if not isinstance(op, LoadOp | StoreOp) and not _is_free(op)]
        if len(work) <= MOST_REPEATED and not any(_is_expensive(op) for op in work):
            return True
        positions = {(load.parent, *load.indices) for load in loads}
        return len(positions) == 1 and _reads_each_once(loads[0])

    def inline(self, accesses: _Accesses) -> None:
        """Puts the computation instead of the loads, and removes the nest and the buffer."""
        buffer = self.store.buffer
        computed: dict[tuple[object, ...], SSAValue] = {}
        loads = _in_order(accesses.loads_of(buffer))
        positions = {(load.parent, *load.indices) for load in loads}
        for load in loads:
            key = (load.parent, *load.indices)
            if key not in computed:
                computed[key] = self._compute(load, accesses, moved=len(positions) == 1)
            load.result.replace_all_uses_with(computed[key])
            accesses.remove([load])
            Rewriter.erase_op(load)
        accesses.remove(self.nest.walk())
        self.nest.detach()
        self.nest.erase()
        owner = buffer.owner
        assert isinstance(owner, AllocBufferOp)  # the memory is the kernel's own
        Rewriter.erase_op(owner)

    def _compute(self, load: LoadOp, accesses: _Accesses, *, moved: bool) -> SSAValue:
        """The element at the indices of a load, before it: by a copy of the code, or the code itself."""
        values: dict[SSAValue, SSAValue] = {}
        for index, position in zip(self.store.indices, load.indices, strict=True):
            values[index] = position
        for iterator in self.block.body.block.args:
            if iterator not in values and iterator.uses:
                # The only value of an iterator that has no other.
                op = arith.ConstantOp(IntegerAttr(0, IndexType()))
                op.location = load.location
                Rewriter.insert_op(op, InsertPoint.before(load))
                values[iterator] = op.result
        code = [op for op in self.block.body.block.ops if op is not self.store]
        if moved:
            for op in code:
                op.operands = [values.get(operand, operand) for operand in op.operands]
                op.detach()
        else:
            code = [op.clone(values) for op in code]
            for op in code:
                accesses.add(op.walk())
        Rewriter.insert_op(code, InsertPoint.before(load))
        return values.get(self.store.value, self.store.value)


def _perfect_nest(block: BlockOp) -> Operation | None:
    """The outermost of the loops around a block, if these hold nothing else and run over its iterators."""
    for binding, extent in zip(block.bindings, block.extents, strict=True):
        loop = loop_of(binding)
        if loop is None or loop.lower is not None or dim_of(loop.upper) is not dim_of(extent):
            return None
    nest: Operation = block
    while not isinstance(parent := nest.parent_op(), PrimFuncOp):
        if not isinstance(parent, ForOp) or parent.body.block.first_op is not nest or nest.next_op is not None:
            return None
        nest = parent
    return nest


def covers(block: BlockOp, access: LoadOp | StoreOp) -> bool:
    """Whether the block reads or writes each element of the buffer once, at its own iterators."""
    used: set[SSAValue] = set()
    iterators = block.iterators
    for index, dim in zip(access.indices, access.buffer_type.shape, strict=True):
        iterator = index if isinstance(index, BlockArgument) and block_of(index) is block else None
        if iterator is None or iterator in used or dim_of(iterators[iterator.index].extent) is not dim:
            if dim.constant_value == 1 and iterator is None:
                continue  # it is 0
            return False
        used.add(iterator)
    spatial = all(iterator.kind is IteratorKind.SPATIAL for iterator in iterators)
    rest = (dim_of(each.extent) for each in iterators if each.value not in used)
    return spatial and all(dim is not None and dim.constant_value == 1 for dim in rest)


def _is_pure(block: BlockOp, store: StoreOp) -> bool:
    """Whether the code of a block only computes the value that it stores."""
    if isinstance(block.body.block.first_op, InitOp) or store.parent is not block.body.block:
        return False
    return all(op is store or isinstance(op, LoadOp) or is_index_op(op) for op in block.body.block.ops)


def _is_free(op: Operation) -> bool:
    return isinstance(op, FREE) or all(isinstance(result.type, IndexType) for result in op.results)


def _is_expensive(op: Operation) -> bool:
    if isinstance(op, EXPENSIVE):
        return True
    return op.name.startswith("math.") and not isinstance(op, SIMPLE_MATH)


def _reads_each_once(load: LoadOp) -> bool:
    """Whether a load has other indices in each instance of its block."""
    parent = load.parent_op()
    if not isinstance(parent, BlockOp):
        return False
    indices = set(load.indices)
    dims = [(each.value, dim_of(each.extent)) for each in parent.iterators]
    return all(value in indices or (dim is not None and dim.constant_value == 1) for value, dim in dims)


def _in_order(loads: list[LoadOp]) -> list[LoadOp]:
    """The loads of each block in the order in which they stand there."""
    if len(loads) < 2:
        return loads
    blocks = {load.parent: None for load in loads if load.parent is not None}
    wanted = set(loads)
    return [op for block in blocks for op in block.ops if isinstance(op, LoadOp) and op in wanted]


def _number_values(block: Block, accesses: _Accesses) -> None:
    """Keeps the first of equal computations, and of loads from memory that the function only reads."""
    seen: dict[tuple[object, ...], Operation] = {}
    for op in list(block.ops):
        reads = isinstance(op, LoadOp) and accesses.is_only_read(op.buffer)
        if op.regions or len(op.results) != 1 or not (reads or is_index_op(op)):
            continue
        key = (type(op), *op.operands, *op.properties.items(), op.results[0].type)
        first = seen.setdefault(key, op)
        if first is not op:
            Rewriter.replace_op(op, [], first.results)
