"""Caching of index computations in tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import child_blocks, enclosing_loops
from tir_dialect.dims import constant
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.ops.view import BufferViewOp
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.rewriting.buffers import checked_scope
from tir_dialect.schedule.rewriting.nests import insert_nest
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import is_index_op, unique_block_name
from tir_dialect.schedule.structure import iterator_extent, sized_extent
from tir_dialect.types import BufferType, IteratorKind

CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.SIToFPOp, arith.UIToFPOp)
QUOTIENTS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
)


@primitive
def cache_index(self: ScheduleState, block: Block, storage_scope: str, cse_thresh: int = 0) -> tuple[Block, ...]:
    """Precomputes, before the loops of a block, the indices at which it reads and other functions of its iterators.

    rewrite:
        for i, j: C[i, j] = A[i // 4 + j // 4, j]
        -> for i, j: index0[i, j] = i // 4 + j // 4
           for i, j: C[i, j] = A[index0[i, j], j]

    There is a table for each value that is used more than `cse_thresh` times. Returns the blocks that fill them, none
    where there is nothing to compute. Indices of what is written stay, and quotients by what may be negative or 0.

    Refuses:
    1. an unknown scope;
    2. a block with blocks inside;
    3. extents that come from memory or depend on a block around.
    """
    op, scope = block.op, checked_scope(self, storage_scope)
    if child_blocks(op):
        raise self.error(f'expected a block without blocks inside, got "{block.name}"')
    tables = _Computed(op).tables(cse_thresh)
    for values in tables:
        for number in _iterators(op, values[0]):
            sized_extent(self, op, number)
    fillers = [_tabulate(self, op, values, scope, f"{number}") for number, values in enumerate(tables)]
    return tuple(self.block(filler) for filler in fillers)


class _Computed:
    """The values of a block that follow from its iterators by ops that may run for any of their values."""

    def __init__(self, block: BlockOp):
        self._block = block
        self._keys: dict[SSAValue, Hashable] = {value: value for value in block.body.block.args}
        for op in block.body.walk():
            if isinstance(op, BufferViewOp) or not is_index_op(op) or len(op.results) != 1:
                continue
            if not _may_fail(op) and self._is_known(op):
                self._keys[op.results[0]] = self._key(op)

    def _is_known(self, op: Operation) -> bool:
        return all(operand in self._keys or self._is_outside(operand) for operand in op.operands)

    def _is_outside(self, value: SSAValue) -> bool:
        owner = value.owner.parent_op() if isinstance(value.owner, IRBlock) else value.owner
        return owner is not None and not is_inside(owner, self._block)

    def _key(self, op: Operation) -> Hashable:
        """Equal for values that are equal."""
        operands = tuple(self._keys.get(operand, operand) for operand in op.operands)
        parts = (*op.properties.items(), *op.attributes.items())
        return (op.name, tuple(sorted(parts, key=lambda part: part[0])), op.results[0].type, operands)

    def tables(self, threshold: int) -> list[list[SSAValue]]:
        """Values to look up, those that are equal together."""
        found: dict[Hashable, list[SSAValue]] = {}
        counts: dict[Hashable, int] = {}
        for value, key in self._keys.items():
            uses = len(list(self.uses_elsewhere(value)))
            if uses and not _is_plain(value) and _iterators(self._block, value):
                found.setdefault(key, []).append(value)
                counts[key] = counts.get(key, 0) + uses
        return [values for key, values in found.items() if counts[key] > threshold]

    def uses_elsewhere(self, value: SSAValue) -> Iterator[Use]:
        """The uses that are not on the way to another such value, and that need not see where the value comes from."""
        for use in value.uses:
            op = use.operation
            on_the_way = len(op.results) == 1 and op.results[0] in self._keys
            if not on_the_way and not _is_index(use):
                yield use


def _may_fail(op: Operation) -> bool:
    if not isinstance(op, QUOTIENTS):
        return False
    divisor = op.operands[1].owner
    known = divisor.value if isinstance(divisor, arith.ConstantOp) else None
    return not isinstance(known, IntegerAttr) or known.value.data <= 0


def _is_plain(value: SSAValue) -> bool:
    """Whether a value is an iterator or a number, or one of another dtype."""
    while isinstance(owner := value.owner, CASTS):
        value = owner.operands[0]
    return not isinstance(owner, Operation) or not owner.operands


def _is_index(use: Use) -> bool:
    """Whether the use is an index of what is written, in which iterators have to be seen, or a declaration."""
    op = use.operation
    return isinstance(op, ReadsOp | WritesOp) or (isinstance(op, StoreOp) and use.index >= 2)


def _iterators(block: BlockOp, value: SSAValue) -> list[int]:
    """The numbers of the iterators that a value depends on."""
    found: set[SSAValue] = set()
    pending = [value]
    while pending:
        owner = (current := pending.pop()).owner
        found.add(current)
        pending += owner.operands if isinstance(owner, Operation) and is_inside(owner, block) else ()
    return [number for number, argument in enumerate(block.body.block.args) if argument in found]


def _tabulate(self: ScheduleState, block: BlockOp, values: Sequence[SSAValue], scope: str, suffix: str) -> BlockOp:
    """The block that fills the table of equal values, which are looked up from now on."""
    numbers = _iterators(block, values[0])
    ranges = [AxisRange(constant(0), iterator_extent(self, block, number)) for number in numbers]
    position = next(iter(enclosing_loops(block)), block)
    kind = values[0].type
    is_index = isinstance(kind, IndexType)
    allocation = AllocBufferOp(BufferType([each.extent for each in ranges], i64 if is_index else kind, scope=scope))
    table = allocation.buffer
    table.name_hint = f"index{suffix}"
    Rewriter.insert_op(allocation, InsertPoint.before(position))
    uses = [(value, list(_Computed(block).uses_elsewhere(value))) for value in values]
    filler = _filler(self, block, numbers, values[0], table)
    filler.block_name = StringAttr(unique_block_name(self.func, f"index_{suffix}"))
    arguments = [block.body.block.args[number] for number in numbers]
    for value, used in uses:
        found = _looked_up(value, table, arguments)
        for use in used:
            use.operation.operands[use.index] = found
    if any(isinstance(op, ReadsOp) for op in block.body.block.ops):
        first = next(op for op in block.body.block.ops if isinstance(op, ReadsOp))
        Rewriter.insert_op(ReadsOp(table, [RegionAxis(each) for each in arguments]), InsertPoint.before(first))
    insert_nest(self, filler, ranges, [f"ax{axis}" for axis in range(len(ranges))], InsertPoint.before(position))
    return filler


def _filler(self: ScheduleState, block: BlockOp, numbers: Sequence[int], value: SSAValue, table: SSAValue) -> BlockOp:
    extents = [block.extents[number] for number in numbers]
    hints = [f"v{axis}" for axis in range(len(numbers))]
    filler = BlockOp("index", [(IteratorKind.SPATIAL, extent, extent) for extent in extents], name_hints=hints)
    filler.location = block.location
    body = filler.body.block
    mapping: dict[SSAValue, SSAValue] = {
        block.body.block.args[number]: argument for number, argument in zip(numbers, body.args, strict=True)
    }
    position = next(iter(enclosing_loops(block)), block)
    stored = _cloned(value, position, body, mapping)
    if isinstance(value.type, IndexType):
        cast = arith.IndexCastOp(stored, i64)
        body.add_op(cast)
        stored = cast.result
    body.add_op(StoreOp(stored, table, body.args))
    return filler


def _cloned(value: SSAValue, position: Operation, body: IRBlock, mapping: dict[SSAValue, SSAValue]) -> SSAValue:
    """The value, computed at the end of `body` as far as it is computed in `position`."""
    owner = value.owner
    if value in mapping or not isinstance(owner, Operation) or not is_inside(owner, position):
        return mapping.get(value, value)
    for operand in owner.operands:
        _cloned(operand, position, body, mapping)
    body.add_op(owner.clone(mapping))
    return mapping[value]


def _looked_up(value: SSAValue, table: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    """The value as an element of the table, right after where it was computed."""
    owner = value.owner
    load = LoadOp(table, indices)
    ops: list[Operation] = [load]
    if isinstance(value.type, IndexType):
        ops.append(arith.IndexCastOp(load.result, IndexType()))
    if isinstance(owner, Operation):
        Rewriter.insert_op(ops, InsertPoint.after(owner))
    found = ops[-1].results[0]
    found.name_hint = value.name_hint
    return found
