"""Prefetching by the tiles of blocked products: weights, and the memory of results."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from lowering.schedule.cpu.blocked.reduction_parts import ReductionPart, ReductionParts
from lowering.schedule.cpu.blocked.shape import Shape
from lowering.schedule.cpu.blocked.tile import LINE_BYTES, PrefetchedLines, Tile
from lowering.schedule.cpu.products.product import Coords
from lowering.schedule.cpu.structure.places import Place
from tir_dialect.dims import ceildiv, constant, maximum, total
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size

MAX_PREFETCHED_LINES = 16
"""More lines of a block at once are not asked for."""
USUAL_TILES = 4
"""Of a picture of unknown size there are at least so many."""


class Hints:
    """The prefetches of one product. Inside a network even weights that fit in a cache are not there yet."""

    def __init__(self, tile: Tile, shape: Shape, turns: ReductionParts | None):
        self.tile, self.shape, self.turns = tile, shape, turns
        self.product, self.code = tile.product, tile.code

    def of(
        self, here: Coords, weights: SSAValue, number: SSAValue, turn: ReductionPart | None
    ) -> list[PrefetchedLines]:
        """What a tile asks for whose weights are at `weights`; `number` is how many tiles came before."""
        ahead = self._weights(weights, number, turn)
        return [*([] if ahead is None else [ahead]), *self._results(here)]

    def _weights(self, weights: SSAValue, number: SSAValue, turn: ReductionPart | None) -> PrefetchedLines | None:
        """The weights that come next, of the next turn or of the next blocks; `None` if they are near.

        The tiles of one picture ask for them together.
        """
        code, what, tile, blocks = self.code, self.product.what, self.tile, self.tile.blocks
        extents = [extent.constant_value for extent in (*tile.extents, tile.jump)]
        if len(what.outer) != 1 or len(tile.extents) < 2 or None in extents:
            return None
        steps = extents[0] if self.turns is None else self.turns.steps
        known = (extent for axis in blocks.lines if (extent := what.stage.extents[axis]).is_constant)
        line = self.product.size(blocks.pixels)
        tiles = product_of([ceildiv(line, constant(self.shape.pixels)), *known]).constant_value or USUAL_TILES
        tiles = tiles if self.turns is None else min(tiles, self.turns.tiles)
        length = tile.weights.strides[blocks.reduced[0][-1]] * (steps or 0)
        runs = product_of(tile.extents[1:-1]) * (steps or 0) * tiles
        lines = ceildiv(length * byte_size(what.element), LINE_BYTES * maximum(runs, constant(1))).constant_value or 0
        start = code.add(weights, code.dim(tile.jump * self.shape.blocks))
        if turn is not None:
            done = code.add(turn.start, turn.steps)
            further = code.add(weights, code.mul(done, code.dim(length // (steps or 1))))
            start = code.select(code.compare("slt", done, code.dim(tile.extents[0])), further, start)
        prefetched = PrefetchedLines(tile.weights.memory, start, tile.jump, code.minimum(number, tiles - 1), lines, 2)
        return prefetched if 0 < lines <= MAX_PREFETCHED_LINES else None

    def _results(self, here: Coords) -> Iterator[PrefetchedLines]:
        """Where the results of a tile go, and what is computed with its sums."""
        product, tile = self.product, self.tile
        runs, along = tile.runs(None if self.turns is None else self.turns.steps), tile.blocks.pixels[-1]
        for memory, place in self._accessed():
            step = place.strides[along].constant_value
            if runs is None or step is None:
                continue
            lines = -(-self.shape.pixels * step * byte_size(product.what.element) // (LINE_BYTES * runs))
            jump = total(place.strides[axis] for axis in product.what.outer)
            level = 1 if self.turns is None else 2
            if 0 < lines <= MAX_PREFETCHED_LINES:
                yield PrefetchedLines(memory, product.offset(place, here), jump, self.code.index(0), lines, level)

    def _accessed(self) -> Iterator[tuple[SSAValue, Place]]:
        """The memory that the results of a tile are made of and go to, each once."""
        product = self.product
        what, epilogue = product.what, product.epilogue
        count = len(what.stage.axes)
        places = {
            what.store.buffer: what.output,
            **{op.buffer: step.place(op, count) for step, op in epilogue.accesses},
        }
        for buffer, place in places.items():
            if buffer not in epilogue.unread:
                yield product.kernel.flat[buffer], place
