"""The micro-kernel on words: a register tile of accumulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.dot_groups.code import dot, sign_words, splat
from lowering.kernels.cpu.gemm.dot_groups.contraction import WordContraction
from lowering.kernels.cpu.gemm.product import Product

Word = Callable[[int, SSAValue], SSAValue]
"""Gives a word of the rows, by its row in the tile and its step of the reduction."""

Columns = Callable[[SSAValue, int], SSAValue]
"""Gives a vector of words of a panel, by its step of the reduction and its number."""

CHAINS, MOST_PARTS = 12, 4
"""So many sums under way keep the multipliers busy; low tiles are made in parts to have them."""


class WordTile:
    """Emits accumulators of a panel of columns with some rows."""

    def __init__(self, product: Product, words: WordContraction, columns: Columns):
        """The sums begin with what changed signs of the rows add, which is computed here."""
        self.product, self.words, self.columns = product, words, columns
        self.code, self.tiles = product.code, product.tiles
        self.depth = self.code.dim(words.depth)
        self.first = self._sums_of_columns() if words.is_flipped else None

    def _sums_of_columns(self) -> SSAValue:
        code, tiles = self.code, self.tiles
        buffer = code.alloc([1, tiles.width], self.words.total, "first", scope="local")
        accumulators = [[code.index(0), code.index(v * tiles.lanes)] for v in range(tiles.vectors)]
        zeros, signs = splat(code, 0, self.words.total, tiles.lanes), sign_words(code, tiles.lanes)
        for accumulator in accumulators:
            code.store(zeros, buffer, accumulator)
        with code.loop(self.depth, "r") as r:
            for v, accumulator in enumerate(accumulators):
                column = self.columns(r, v)
                total = code.load(buffer, accumulator, tiles.lanes)
                code.store(dot(code, self.words.factors, signs, column, total), buffer, accumulator)
        for accumulator in accumulators:
            code.store(
                code.value(arith.SubiOp(zeros, code.load(buffer, accumulator, tiles.lanes))), buffer, accumulator
            )
        return buffer

    def emit(self, height: int, word: Word, tile: SSAValue) -> None:
        """Sums of `height` rows into the buffer `tile`."""
        code, tiles = self.code, self.tiles
        parts = min(MOST_PARTS, max(1, CHAINS // (height * tiles.vectors)))
        sums = code.alloc([parts * height, tiles.width], self.words.total, "sums", scope="local")
        lines = [
            [
                [[code.index(part * height + i), code.index(v * tiles.lanes)] for v in range(tiles.vectors)]
                for i in range(height)
            ]
            for part in range(parts)
        ]
        self._begin(sums, lines)
        done = code.index(0)
        if parts > 1:
            iterations = code.divide(self.depth, parts)
            with code.loop(iterations, "iteration") as iteration:
                for part in range(parts):
                    self._step(sums, lines[part], word, code.add(code.mul(iteration, parts), part))
            done = code.mul(iterations, parts)
        with code.loop(self.depth, "r", lower=done) as r:
            self._step(sums, lines[0], word, r)
        for i in range(height):
            for v, accumulator in enumerate(lines[0][i]):
                values = [code.load(sums, part[i][v], tiles.lanes) for part in lines]
                code.store(reduce(self._added, values), tile, accumulator)

    def _begin(self, sums: SSAValue, lines: Sequence[Sequence[Sequence[Sequence[SSAValue]]]]) -> None:
        code, tiles = self.code, self.tiles
        zeros = splat(code, 0, self.words.total, tiles.lanes)
        for number, part in enumerate(lines):
            for line in part:
                for v, accumulator in enumerate(line):
                    start = [code.index(0), code.index(v * tiles.lanes)]
                    given = None if number or self.first is None else code.load(self.first, start, tiles.lanes)
                    code.store(zeros if given is None else given, sums, accumulator)

    def _step(self, sums: SSAValue, lines: Sequence[Sequence[Sequence[SSAValue]]], word: Word, r: SSAValue) -> None:
        """The products of one word of each row with those of the columns."""
        code, tiles = self.code, self.tiles
        columns = [self.columns(r, v) for v in range(tiles.vectors)]
        for i, line in enumerate(lines):
            row = code.splat(word(i, r), tiles.lanes)
            for accumulator, column in zip(line, columns, strict=True):
                total = code.load(sums, accumulator, tiles.lanes)
                code.store(dot(code, self.words.factors, row, column, total), sums, accumulator)

    def _added(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.code.value(arith.AddfOp(a, b) if isinstance(self.words.total, AnyFloat) else arith.AddiOp(a, b))
