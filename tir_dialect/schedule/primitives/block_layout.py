"""Changing the iterators of a block by an index map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import enclosing_loops
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import Block
from tir_dialect.schedule.index_domain import inverse
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike
from tir_dialect.schedule.legality.accesses import read_buffers, written_buffers
from tir_dialect.schedule.legality.independence import check_reorderable
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.rewriting.edits import erase_nest, set_condition
from tir_dialect.schedule.rewriting.mapped_shape import mapped_shape
from tir_dialect.schedule.rewriting.materialize import Materializer, header_value
from tir_dialect.schedule.rewriting.nests import insert_nest
from tir_dialect.schedule.rewriting.normalize import emit_conditions
from tir_dialect.schedule.rewriting.renest import check_plain_conditions
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import nest_of, only_statement
from tir_dialect.schedule.structure import Less, sized_extent
from tir_dialect.types import IteratorKind

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
    _set_condition(self, made, list(zip(old.values(), extents, strict=True)))
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


def _set_condition(self: ScheduleState, made: BlockOp, limits: Sequence[tuple[Dim, Dim]]) -> None:
    """Lets the block run where the old iterators are below their extents."""
    self.changed()
    bindings = [self.space.dim_of(binding) or constant(0) for binding in made.bindings]
    positions = {_placeholder(number).as_symbol or "": dim for number, dim in enumerate(bindings)}
    below = [Less(dim.substitute(positions), extent) for dim, extent in limits]
    unknown: list[Less | SSAValue] = [c for c in below if self.space.prover.less(c.lhs, c.rhs) is not True]
    emitter = Materializer(self.func, self.space, InsertPoint.before(made))
    set_condition(made, emit_conditions(emitter, unknown))
