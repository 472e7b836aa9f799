"""Columns in panels of words: `[depth, width]`, zeros past the end of the reduction.

Weights may be packed already. Otherwise rows of adjacent columns are interleaved, and columns that are contiguous along
the reduction are transposed word by word.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.explicit import Explicit, Lanes
from lowering.schedule.cpu.emit.transpose import shuffle, transposed
from lowering.schedule.cpu.low_precision.code import view
from lowering.schedule.cpu.low_precision.contraction import WordContraction
from lowering.schedule.cpu.products.product import Coords, Product
from tir_dialect.dims import ceildiv, constant


class WordColumns:
    """All panels of a product, `[panel, depth, width]`."""

    def __init__(self, product: Product, words: WordContraction):
        self.product, self.words, self.code = product, words, product.code
        self.tiles, self.depth = product.tiles, words.depth
        self.count = ceildiv(product.n, constant(self.tiles.width))
        shape = [self.count, self.depth, self.tiles.width]
        if words.panels is not None:
            memory = product.kernel.flat[words.panels.load.buffer]
            self.buffer = view(self.code, memory, shape, i32)
            return
        self.buffer = self.code.alloc(shape, i32, "packed_columns")
        size = self.count * self.depth * (self.tiles.width * words.parts)
        self.numbers = view(self.code, self.buffer, [size], words.storage)

    @property
    def are_given(self) -> bool:
        """Whether the columns need no packing."""
        return self.words.panels is not None

    def vector(self, panel: SSAValue, r: SSAValue, number: int) -> SSAValue:
        """A vector of words of a panel."""
        indices = [panel, r, self.code.index(number * self.tiles.lanes)]
        return self.code.load(self.buffer, indices, self.tiles.lanes)

    def pack(self, coords: Coords, panel: SSAValue) -> None:
        """Packs one panel."""
        left = self.code.mul(panel, self.tiles.width)
        if self.product.is_contiguous(self.words.columns, self.words.what.column):
            self._interleave(coords, panel, left)
        else:
            self._transpose(coords, panel, left)

    def _numbers(self, coords: Coords, axis: int, lanes: int, on: SSAValue) -> SSAValue:
        """Numbers of the columns along an axis, `on` of them, then zeros."""
        columns = self.words.columns
        at = self.product.at(columns.accesses, columns.pinned, coords)
        body = Explicit(self.product.kernel, self.words.what.stage, at, Lanes(axis, lanes, on))
        body.run(columns.ops)
        return body.widened(body.value(columns.value))

    # Columns beside each other.

    def _interleave(self, coords: Coords, panel: SSAValue, left: SSAValue) -> None:
        code, what, parts, width = self.code, self.words.what, self.words.parts, self.tiles.width
        on = code.sub(code.dim(self.product.n), left)
        k = code.dim(self.words.k)
        with code.loop(code.dim(self.depth), "r") as r:
            rows: list[SSAValue] = []
            for part in range(parts):
                element = code.add(code.mul(r, parts), part)
                some = code.select(code.compare("slt", element, k), on, code.index(0))
                here = {**coords, self.words.reduced: element, what.column: left}
                rows.append(self._numbers(here, what.column[-1], width, some))
            row = code.add(code.mul(panel, code.dim(self.depth)), r)
            code.store(interleaved(self.product, rows), self.numbers, [code.mul(row, width * parts)])

    # Columns along the reduction.

    def _transpose(self, coords: Coords, panel: SSAValue, left: SSAValue) -> None:
        """Blocks of as many words as columns: each column goes to memory, from where words are read."""
        code, what, lanes = self.code, self.words.what, self.tiles.lanes
        numbers = lanes * self.words.parts
        block = code.alloc([lanes, lanes], i32, "block", scope="local")
        parts = view(code, block, [lanes, numbers], self.words.storage)
        last, k = code.sub(code.dim(self.product.n), 1), code.dim(self.words.k)
        with (
            code.loop(code.index(self.tiles.vectors), "v") as v,
            code.loop(code.dim(ceildiv(self.depth, constant(lanes))), "block") as block_number,
        ):
            first, start = code.mul(v, lanes), code.mul(block_number, numbers)
            on = code.sub(k, start)
            for j in range(lanes):
                column = code.minimum(code.add(code.add(left, first), j), last)
                here = {**coords, self.words.reduced: start, what.column: column}
                values = self._numbers(here, self.words.reduced[-1], numbers, on)
                code.store(values, parts, [code.index(j), code.index(0)])
            words = [code.load(block, [code.index(j), code.index(0)], lanes) for j in range(lanes)]
            self._store(panel, code.mul(block_number, lanes), first, transposed(code, words))

    def _store(self, panel: SSAValue, top: SSAValue, first: SSAValue, lines: Sequence[SSAValue]) -> None:
        """As many lines of a block as the panel has."""
        code = self.code
        for i, line in enumerate(lines):
            r = code.add(top, i)
            inside = code.select(code.compare("slt", r, code.dim(self.depth)), code.index(len(lines)), code.index(0))
            code.store(line, self.buffer, [panel, r, first], code.leading(inside, len(lines)))


def interleaved(product: Product, rows: Sequence[SSAValue]) -> SSAValue:
    """Two or four vectors as one: an element of each in turn."""
    code, lanes = product.code, product.tiles.width
    pairs = [
        shuffle(code, (rows[i], rows[i + 1]), [each + lanes * half for each in range(lanes) for half in range(2)])
        for i in range(0, len(rows), 2)
    ]
    if len(pairs) == 1:
        return pairs[0]
    order = [2 * each + at + 2 * lanes * half for each in range(lanes) for half in range(2) for at in range(2)]
    return shuffle(code, (pairs[0], pairs[1]), order)
