"""Replacing a tile of a computation by an intrinsic.
Its tiles have to be in bounds, and apart where one of them is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.dims import constant
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.schedule import intrinsics
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.intrinsics import TensorIntrin
from tir_dialect.schedule.legality.accesses import accesses_in, written_buffers
from tir_dialect.schedule.legality.boxes import join, loops_between, range_of
from tir_dialect.schedule.legality.matching import Matcher, Tile
from tir_dialect.schedule.primitives.blockizing import blockize
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import is_index_op
from tir_dialect.schedule.structure import shape_of
from tir_dialect.types import BufferType


def check_tiles(self: ScheduleState, space: IndexSpace, tiles: Sequence[Tile], description: PrimFuncOp) -> None:
    """Refuses tiles, one for each parameter of a description, that an implementation may not use as it likes.

    Parameters of an intrinsic do not overlap, and all of their elements are there.
    """
    boxes = [_box(tile, param) for tile, param in zip(tiles, description.params, strict=True)]
    written = written_buffers(description)
    rows = list(zip(tiles, description.params, boxes, strict=True))
    for tile, param, box in rows:
        if not _is_inside(space, tile, box) and not _uses_all(description, param):
            raise self.error(f'the tile of buffer "{tile.buffer.name_hint}" may reach behind its end')
    for (one, param, box), (two, other, position) in combinations(rows, 2):
        if not written.isdisjoint((param, other)) and not _are_apart(space, (one, two), (box, position)):
            raise self.error(
                f'the tiles of parameters "{param.name_hint}" and "{other.name_hint}" may overlap in buffer '
                f'"{one.buffer.name_hint}", and one of them is written'
            )


def _box(tile: Tile, param: SSAValue) -> list[AxisRange]:
    shape = shape_of(param)
    extents = [*[constant(1)] * (len(tile.starts) - len(shape)), *shape]
    return [AxisRange(start, extent) for start, extent in zip(tile.starts, extents, strict=True)]


def _is_inside(space: IndexSpace, tile: Tile, box: Sequence[AxisRange]) -> bool:
    """Whether a tile is in its buffer for all values of the iterators."""
    return all(
        space.less_equal(0, axis.lower) is True and space.less_equal(axis.lower + axis.extent, extent) is True
        for axis, extent in zip(box, shape_of(tile.buffer), strict=True)
    )


def _uses_all(description: PrimFuncOp, param: SSAValue) -> bool:
    """Whether the description reaches both ends of a parameter, so the function itself reaches as far."""
    space = IndexSpace(description)
    columns: list[list[AxisRange | None]] = [[] for _ in shape_of(param)]
    for access in accesses_in(space, description):
        if access.buffer is param:
            inner = [space.variable(loop.induction_var) for loop in loops_between(access, None)]
            for column, axis in zip(columns, access.axes, strict=True):
                column.append(range_of(space.prover, axis, inner))
    for column, extent in zip(columns, shape_of(param), strict=True):
        known = [axis for axis in column if axis is not None]
        if not known or join(space.prover, known) != AxisRange(constant(0), extent):
            return False
    return True


def _are_apart(space: IndexSpace, tiles: tuple[Tile, Tile], boxes: tuple[list[AxisRange], list[AxisRange]]) -> bool:
    """Whether tiles have no element in common: of different memory, or one after the other in some dimension."""
    one, two = (tile.buffer for tile in tiles)
    if root_buffer(one) is not root_buffer(two):
        return True
    return one is two and any(
        space.less_equal(a.lower + a.extent, b.lower) is True or space.less_equal(b.lower + b.extent, a.lower) is True
        for a, b in zip(*boxes, strict=True)
    )


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
    outer = block.op
    body = outer.body.block
    for op in reversed([op for op in body.ops if op is not outer.init]):
        Rewriter.erase_op(op)
    emitter = Materializer(self.func, matcher.space, InsertPoint.at_end(body))
    mapping: dict[SSAValue, SSAValue] = {}
    for tile, param in zip(tiles, intrin.implementation.params, strict=True):
        source, kind = (SSAValue.get(buffer, type=BufferType).type for buffer in (tile.buffer, param))
        lead = source.rank - kind.rank
        axes = [RegionAxis(emitter.emit(start)) for start in tile.starts[:lead]]
        for start, extent in zip(tile.starts[lead:], kind.shape, strict=True):
            axes.append(RegionAxis(emitter.emit(start), emitter.emit(start + extent)))
        strides = source.strides[lead:]
        view = MatchBufferOp(tile.buffer, axes, BufferType(kind.shape, kind.dtype, strides=strides, scope=source.scope))
        view.view.name_hint = f"{tile.buffer.name_hint or 'buffer'}_tile"
        body.add_op(view)
        mapping[param] = view.view
    for op in intrin.implementation.body.block.ops:
        clone = op.clone(mapping)
        clone.location = outer.location
        body.add_op(clone)
    # What an implementation that is one block says of itself, it says of the block that it becomes.
    content = [op for op in body.ops if not is_index_op(op)]
    match [op for op in content if not isinstance(op, MatchBufferOp | InitOp)]:
        case [BlockOp(iterators=()) as whole] if whole.annotations is not None:
            own = (outer.annotations or DictionaryAttr({})).data
            outer.annotations = DictionaryAttr({**own, **whole.annotations.data})
            whole.annotations = None
        case _:
            pass
    return block


def _try(twin: ScheduleState, target: Block | Loop, intrin: TensorIntrin) -> None:
    """Refuses on a copy of the schedule, before anything is changed."""
    twin.run(_tensorized, (target, intrin), {})
    try:
        twin.func.verify()
    except VerifyException as error:
        reason = error.__cause__ or error
        raise twin.error(f'the implementation of intrinsic "{intrin.name}" does not fit here: {reason}') from None
