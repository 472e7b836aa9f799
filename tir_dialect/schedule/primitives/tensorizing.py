"""Replacing a tile of a computation by an intrinsic."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.schedule import intrinsics
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.intrinsics import TensorIntrin
from tir_dialect.schedule.legality.matching import Matcher, Tile
from tir_dialect.schedule.legality.tiles import check_tiles
from tir_dialect.schedule.primitives.blockizing import blockize
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import is_index_op
from tir_dialect.types import BufferType


@primitive
def tensorize(self: ScheduleState, block_or_loop: Block | Loop, tensor_intrin: str) -> Block:
    """Replaces the body of a block, or a loop and its body, by a registered tensor intrinsic.

    rewrite:
        for i0: for i1 in 4: C[4 * i0 + i1] = A[4 * i0 + i1] * 2
        -> for i0: block(vo = i0): C_tile = C[4 * vo to 4 * vo + 4]; A_tile = ...; double4(A_tile, C_tile)

    The init of a reduction stays what it is. Returns the block, which has the annotations of an implementation that is
    one block.

    Refuses:
    1. an intrinsic that is not registered;
    2. loops that `blockize` refuses;
    3. content that differs from the description: loops, iterator kinds, ops, operands, dtypes, or accesses;
    4. tiles that overlap where one is written, and tiles that may reach after a buffer;
    5. an implementation that needs other strides than the buffers have.
    """
    found = intrinsics.tensor_intrin(tensor_intrin)
    if found is None:
        names = ", ".join(intrinsics.tensor_intrin_names()) or "none"
        raise self.error(f'expected a registered tensor intrinsic, got "{tensor_intrin}"; there are {names}')
    self.as_refusal(lambda: _try(self.copy(), block_or_loop, found))
    return _tensorized(self, block_or_loop, found)


def _tensorized(self: ScheduleState, target: Block | Loop, intrin: TensorIntrin) -> Block:
    block = blockize(self, target) if isinstance(target, Loop) else target
    matcher = Matcher(self, block.op, intrin.description)
    tiles = matcher.match()
    check_tiles(self, matcher.space, tiles, intrin.description)
    _replace(self, block.op, tiles, intrin, matcher.space)
    return block


def _try(twin: ScheduleState, target: Block | Loop, intrin: TensorIntrin) -> None:
    """Refuses on a copy of the schedule, before anything is changed."""
    twin.run(_tensorized, (target, intrin), {})
    try:
        twin.func.verify()
    except VerifyException as error:
        reason = error.__cause__ or error
        raise twin.error(f'the implementation of intrinsic "{intrin.name}" does not fit here: {reason}') from None


def _replace(
    self: ScheduleState, outer: BlockOp, tiles: Sequence[Tile], intrin: TensorIntrin, space: IndexSpace
) -> None:
    body = outer.body.block
    for op in reversed([op for op in body.ops if op is not outer.init]):
        Rewriter.erase_op(op)
    emitter = Materializer(self.func, space, InsertPoint.at_end(body))
    mapping: dict[SSAValue, SSAValue] = {}
    for tile, param in zip(tiles, intrin.implementation.params, strict=True):
        source, kind = (SSAValue.get(buffer, type=BufferType).type for buffer in (tile.buffer, param))
        view = _view(emitter, tile, source, kind)
        view.view.name_hint = f"{tile.buffer.name_hint or 'buffer'}_tile"
        body.add_op(view)
        mapping[param] = view.view
    for op in intrin.implementation.body.block.ops:
        clone = op.clone(mapping)
        clone.location = outer.location
        body.add_op(clone)
    _take_annotations(outer, [op for op in body.ops if not is_index_op(op)])


def _take_annotations(outer: BlockOp, content: Sequence[Operation]) -> None:
    """What an implementation that is one block says of itself, it says of the block that it becomes."""
    match [op for op in content if not isinstance(op, MatchBufferOp | InitOp)]:
        case [BlockOp(iterators=()) as whole] if whole.annotations is not None:
            own = (outer.annotations or DictionaryAttr({})).data
            outer.annotations = DictionaryAttr({**own, **whole.annotations.data})
            whole.annotations = None
        case _:
            pass


def _view(emitter: Materializer, tile: Tile, source: BufferType, kind: BufferType) -> MatchBufferOp:
    lead = source.rank - kind.rank
    axes = [RegionAxis(emitter.emit(start)) for start in tile.starts[:lead]]
    for start, extent in zip(tile.starts[lead:], kind.shape, strict=True):
        axes.append(RegionAxis(emitter.emit(start), emitter.emit(start + extent)))
    strides = source.strides[lead:]
    return MatchBufferOp(tile.buffer, axes, BufferType(kind.shape, kind.dtype, strides=strides, scope=source.scope))
