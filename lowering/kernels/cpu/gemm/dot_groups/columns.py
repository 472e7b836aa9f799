"""Columns in panels of words: `[depth, width]`, zeros past the end of the reduction.

Weights may be packed already. Otherwise rows of adjacent columns are interleaved, and columns that are contiguous along
the reduction are transposed word by word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.explicit import Explicit, Lanes
from lowering.kernels.cpu.emit.shuffles import shuffle, transposed
from lowering.kernels.cpu.gemm.dot_groups.code import view
from lowering.kernels.cpu.gemm.dot_groups.contraction import WordContraction
from lowering.kernels.cpu.gemm.product import Coords, Product
from tir_dialect.dims import Dim, ceildiv, constant


class WordColumns:
    """The panels `[depth, width]` of a product: given, or packed by the task that uses them, which keeps some."""

    def __init__(self, product: Product, words: WordContraction, tasks: Dim, kept: Dim):
        self.product, self.words, self.code = product, words, product.code
        self.tiles, self.depth, self.kept = product.tiles, words.depth, kept
        if words.panels is not None:
            memory = product.kernel.flat[words.panels.load.buffer]
            count = ceildiv(product.n, constant(self.tiles.width))
            self.buffer = view(self.code, memory, [count, self.depth, self.tiles.width], i32)
            return
        self.buffer = self.code.alloc([tasks * kept, self.depth, self.tiles.width], i32, "packed_columns")
        size = tasks * kept * self.depth * (self.tiles.width * words.parts)
        self.numbers = view(self.code, self.buffer, [size], words.storage)

    def take(
        self, coords: Coords, panel: SSAValue, task: SSAValue, panels: tuple[SSAValue, SSAValue], block: SSAValue
    ) -> Callable[[SSAValue, int], SSAValue]:
        """What gives vectors of words of a panel, one of the `panels` of a task, by their step and their number.

        The first one packs as many as are kept: in the first block of rows, or in each where these are not all.
        """
        code, (first, end) = self.code, panels
        if self.words.panels is not None:
            return lambda r, number: self._vector(panel, r, number)
        kept, number = code.dim(self.kept), code.sub(panel, first)
        slot = code.remainder(number, kept)
        base = code.mul(task, kept)
        is_needed = code.either(code.compare("eq", block, 0), code.compare("sgt", code.sub(end, first), kept))
        with (
            code.when(code.both(is_needed, code.compare("eq", slot, 0))),
            code.loop(code.minimum(code.sub(end, panel), kept), "panel") as i,
        ):
            self.pack(coords, code.add(panel, i), code.add(base, i))
        target = code.add(base, slot)
        return lambda r, number: self._vector(target, r, number)

    def _vector(self, panel: SSAValue, r: SSAValue, number: int) -> SSAValue:
        indices = [panel, r, self.code.index(number * self.tiles.lanes)]
        return self.code.load(self.buffer, indices, self.tiles.lanes)

    def pack(self, coords: Coords, panel: SSAValue, target: SSAValue) -> None:
        """Packs a panel into that with the number `target` of the memory."""
        left = self.code.mul(panel, self.tiles.width)
        if self.product.is_contiguous(self.words.columns, self.words.what.column):
            self._interleave(coords, target, left)
        else:
            self._transpose(coords, target, left)

    def _numbers(self, coords: Coords, axis: int, lanes: int, on: SSAValue) -> SSAValue:
        """Numbers of the columns along an axis, `on` of them, then zeros."""
        columns = self.words.columns
        at = self.product.at(columns.accesses, columns.pinned, coords)
        body = Explicit(self.product.kernel, self.words.what.stage, at, Lanes(axis, lanes, on))
        body.run(columns.ops)
        return body.widened(body.value(columns.value))

    # Columns beside each other.

    def _interleave(self, coords: Coords, panel: SSAValue, left: SSAValue) -> None:
        code, parts, width = self.code, self.words.parts, self.tiles.width
        on, k = code.sub(code.dim(self.product.n), left), code.dim(self.words.k)
        start = code.mul(panel, code.dim(self.depth))

        def word(r: SSAValue, counts: Sequence[SSAValue]) -> None:
            elements = [code.add(code.mul(r, parts), part) for part in range(parts)]
            rows = [self._row(coords, left, *each) for each in zip(elements, counts, strict=True)]
            row = code.add(start, r)
            code.store(interleaved(self.product, rows), self.numbers, [code.mul(row, width * parts)])

        whole = code.divide(k, parts)
        with code.loop(whole, "r") as r:
            word(r, [on] * parts)
        rest = code.sub(k, code.mul(whole, parts))
        with code.when(code.compare("sgt", rest, 0)):
            word(whole, [code.select(code.compare("sgt", rest, part), on, code.index(0)) for part in range(parts)])

    def _row(self, coords: Coords, left: SSAValue, element: SSAValue, on: SSAValue) -> SSAValue:
        """The numbers of a panel's columns at an element of the sums, `on` of them, then zeros."""
        column = self.words.what.column
        here = {**coords, self.words.reduced: element, column: left}
        return self._numbers(here, column[-1], self.tiles.width, on)

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
