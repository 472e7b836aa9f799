"""Packed rows of words: the numbers of a row consecutively, each row from the start of a word."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.explicit import Explicit, Lanes
from lowering.kernels.cpu.gemm.dot_groups.code import WORD_BYTES, flipped, lanes_of_line, number, view
from lowering.kernels.cpu.gemm.dot_groups.contraction import WordContraction
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.structure.contraction import is_chain
from tir_dialect.dims import Dim, ceildiv, constant, maximum, mod
from tir_dialect.target import LINE_BYTES


class WordRows:
    """Some rows `[row, pitch]` of words.

    Rows are an odd number of lines apart, so that the first-level cache keeps those of a tile. Runs of numbers that lie
    side by side are copied by vectors: a whole row, or, of a window, what it has of a line. The columns have zeros past
    the end of the reduction, so the bytes that a row has there may be anything; floats are zeros too.
    """

    def __init__(self, product: Product, words: WordContraction, tasks: Dim, count: Dim):
        """Memory for so many rows of each task."""
        self.product, self.words, self.code = product, words, product.code
        lines = ceildiv(words.depth, constant(LINE_BYTES // WORD_BYTES))
        self.pitch = constant(LINE_BYTES // WORD_BYTES) * (lines + 1 - mod(lines, constant(2)))
        self.count, self.first = count, self.code.index(0)
        self.buffer = self.code.alloc([tasks * count, self.pitch], i32, "packed_rows")
        self.numbers = view(self.code, self.buffer, [tasks * count * self.pitch * words.parts], words.storage)
        self.run, self.runs = self._runs()

    def _runs(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The reduced axes along which a row lies side by side, and those before them."""
        reduced, extents = self.words.reduced, self.words.what.stage.extents
        first = len(reduced) - 1
        while first and is_chain(self.words.rows.accesses, extents, reduced[first - 1 :]):
            first -= 1
        return reduced[first:], reduced[:first]

    def take(self, task: SSAValue) -> None:
        """Uses the memory of a task from here on."""
        self.first = self.code.mul(task, self.code.dim(self.count))

    def word(self, row: SSAValue, r: SSAValue) -> SSAValue:
        """A word of a row."""
        return self.code.load(self.buffer, [self.code.add(self.first, row), r])

    def pack(self, coords: Coords, row: SSAValue, target: SSAValue) -> None:
        """Copies row `row` of the product to row `target` of the memory."""
        code, product, what = self.code, self.product, self.words.what
        target = code.add(self.first, target)
        if self.words.is_float:
            last = maximum(self.words.depth - 1, constant(0))
            code.store(number(code, 0, i32), self.buffer, [target, code.dim(last)])
        length = product.size(self.run)
        start = code.mul(target, code.dim(self.pitch * self.words.parts))
        here = {**coords, what.row: row}
        if not self.runs:
            self._copy(here, start, code.dim(length))
            return
        with code.loop(code.dim(product.size(self.runs)), "run") as run:
            position = code.add(start, code.mul(run, code.dim(length)))
            self._copy({**here, self.runs: run}, position, code.dim(length))

    def _copy(self, here: Coords, start: SSAValue, length: SSAValue) -> None:
        code, lanes = self.code, lanes_of_line(self.words.storage)

        def copy(r: SSAValue, on: SSAValue | None) -> None:
            values = self._vector({**here, self.run: r}, on)
            mask = None if on is None else code.leading(on, lanes)
            code.store(values, self.numbers, [code.add(start, r)], mask)

        whole = code.divide(length, lanes)
        with code.loop(whole, "v") as v:
            copy(code.mul(v, lanes), None)
        done = code.mul(whole, lanes)
        with code.when(code.compare("slt", done, length)):
            copy(done, code.sub(length, done))

    def _vector(self, coords: Coords, on: SSAValue | None) -> SSAValue:
        rows, lanes = self.words.rows, lanes_of_line(self.words.storage)
        at = self.product.at(rows.accesses, rows.pinned, coords)
        body = Explicit(self.product.kernel, self.words.what.stage, at, Lanes(self.run[-1], lanes, on))
        body.run(rows.ops)
        values = body.widened(body.value(rows.value))
        return flipped(self.code, values, lanes) if self.words.is_flipped else values
