"""Prefetching by the tiles of blocked products: weights, and the memory of results."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.reduction_parts import ReductionPart, ReductionParts
from lowering.kernels.cpu.conv.shape import Shape
from lowering.kernels.cpu.conv.tile import PrefetchedLines, Tile
from lowering.kernels.cpu.gemm.problem import Coords
from lowering.kernels.cpu.structure.accesses import AffineAccess
from tir_dialect.dims import ceildiv, constant, maximum, total
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

MAX_PREFETCHED_LINES = 16
"""More lines of a block at once are not asked for."""
USUAL_TILES = 4
"""Of a picture of unknown size there are at least so many."""


class Hints:
    """The prefetches of one product. Inside a network even weights that fit in a cache are not there yet."""

    def __init__(self, tile: Tile, shape: Shape, reduction_parts: ReductionParts | None):
        self.tile, self.shape, self.reduction_parts = tile, shape, reduction_parts
        self.product, self.code = tile.product, tile.code

    def of(
        self, here: Coords, weights: SSAValue, number: SSAValue, reduction_part: ReductionPart | None
    ) -> list[PrefetchedLines]:
        """What a tile asks for whose weights are at `weights`; `number` is how many tiles came before."""
        ahead = self._weights(weights, number, reduction_part)
        return [*([] if ahead is None else [ahead]), *self._results(here)]

    def _weights(
        self, weights: SSAValue, number: SSAValue, reduction_part: ReductionPart | None
    ) -> PrefetchedLines | None:
        """The weights that come next, of the next part of the reduction or of the next blocks; `None` if they are near.

        The tiles of one picture ask for them together.
        """
        code, what, tile, blocks = self.code, self.product.what, self.tile, self.tile.blocks
        extents = [extent.constant_value for extent in (*tile.extents, tile.jump)]
        if len(what.outer) != 1 or len(tile.extents) < 2 or None in extents:
            return None
        steps = extents[0] if self.reduction_parts is None else self.reduction_parts.steps
        known = (extent for axis in blocks.lines if (extent := what.stage.extents[axis]).is_constant)
        line = self.product.size(blocks.pixels)
        tiles = product_of([ceildiv(line, constant(self.shape.pixels)), *known]).constant_value or USUAL_TILES
        tiles = tiles if self.reduction_parts is None else min(tiles, self.reduction_parts.tiles)
        length = tile.weights.strides[blocks.reduced[0][-1]] * (steps or 0)
        runs = product_of(tile.extents[1:-1]) * (steps or 0) * tiles
        lines = ceildiv(length * byte_size(what.element), LINE_BYTES * maximum(runs, constant(1))).constant_value or 0
        start = code.add(weights, code.dim(tile.jump * self.shape.blocks))
        if reduction_part is not None:
            done = code.add(reduction_part.start, reduction_part.steps)
            further = code.add(weights, code.mul(done, code.dim(length // (steps or 1))))
            start = code.select(code.compare("slt", done, code.dim(tile.extents[0])), further, start)
        prefetched = PrefetchedLines(tile.weights.memory, start, tile.jump, code.minimum(number, tiles - 1), lines, 2)
        return prefetched if 0 < lines <= MAX_PREFETCHED_LINES else None

    def _results(self, here: Coords) -> Iterator[PrefetchedLines]:
        """Where the results of a tile go, and what is computed with its sums."""
        product, tile = self.product, self.tile
        runs, along = (
            tile.runs(None if self.reduction_parts is None else self.reduction_parts.steps),
            tile.blocks.pixels[-1],
        )
        for memory, access in self._accessed():
            step = access.strides[along].constant_value
            if runs is None or step is None:
                continue
            lines = -(-self.shape.pixels * step * byte_size(product.what.element) // (LINE_BYTES * runs))
            jump = total(access.strides[axis] for axis in product.what.outer)
            level = 1 if self.reduction_parts is None else 2
            if 0 < lines <= MAX_PREFETCHED_LINES:
                yield PrefetchedLines(memory, product.offset(access, here), jump, self.code.index(0), lines, level)

    def _accessed(self) -> Iterator[tuple[SSAValue, AffineAccess]]:
        """The memory that the results of a tile are made of and go to, each once."""
        product = self.product
        what, epilogue = product.what, product.epilogue
        count = len(what.stage.axes)
        accesses = {
            what.store.buffer: what.output,
            **{op.buffer: step.access(op, count) for step, op in epilogue.accesses},
        }
        for buffer, access in accesses.items():
            if buffer not in epilogue.unread:
                yield product.kernel.flat[buffer], access
