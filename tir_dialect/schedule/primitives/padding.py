"""Padding the loops of a contraction, so that they divide by tile sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, i1
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.structure import loop_of
from tir_dialect.dims import Dim, ceildiv
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.schedule.handles import Block
from tir_dialect.schedule.legality.elementwise import iterators_of_indices
from tir_dialect.schedule.legality.independence import bare_statements
from tir_dialect.schedule.legality.monoid import combination
from tir_dialect.schedule.legality.plain_uses import check_plain_uses
from tir_dialect.schedule.primitives.splitting import check_serial
from tir_dialect.schedule.rewriting.buffers import redirect
from tir_dialect.schedule.rewriting.edits import rebuild_block
from tir_dialect.schedule.rewriting.materialize import header_value
from tir_dialect.schedule.rewriting.nests import copy_block, insert_nest, whole
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import is_index_op, nest_of, unique_block_name
from tir_dialect.schedule.structure import iterator_extent, shape_of, sized_extent
from tir_dialect.types import BufferType, IteratorKind

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
    _extend_loops(self, plan)


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
    load, zero = LoadOp(buffer, args), _zero(buffer)
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


def _zero(buffer: SSAValue) -> arith.ConstantOp:
    kind = buffer.type.element_type if isinstance(buffer.type, BufferType) else i1
    return arith.ConstantOp(FloatAttr(0.0, kind) if isinstance(kind, AnyFloat) else IntegerAttr(0, kind))


def _extend_loops(self: ScheduleState, plan: _Plan) -> None:
    iterators: list[tuple[IteratorKind, SSAValue, SSAValue]] = []
    for iterator, extent in zip(plan.block.iterators, plan.extents, strict=True):
        limit = header_value(self.func, extent)
        loop = loop_of(iterator.binding)
        if loop is not None:
            loop.operands[len(loop.operands) - 1] = limit
        iterators.append((iterator.kind, iterator.binding, limit))
    rebuild_block(plan.block, iterators, plan.block.condition)
