"""The routine of GEMM with small N: a vector of a row of A is loaded once for all columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST, VectorTotals, in_blocks
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import Routine, flat
from lowering.kernels.cpu.emit.shuffles import row_sums, shuffle
from lowering.kernels.cpu.gemm.cost_model import DOT_STREAMS, SMALL_N_ACCUMULATORS
from lowering.kernels.cpu.gemm.dot import RowVector
from tir_dialect.dims import constant
from tir_dialect.types import BufferType

PrefetchTileRow = Callable[[int, SSAValue], None]
"""Prefetches what follows a row, by its number in the tile, at a step of K."""


_SIZES = ("lower", "upper", "m", "k", "count", "near", "width", "first", "each", "out", "out_each", "asked")
_BUFFERS = ("copies", "matrix", "output")


@dataclass(frozen=True)
class SmallNRoutine(Routine):
    """A tile of accumulators: rows and columns, both powers of two."""

    dtype: AnyFloat
    lanes: int
    rows: int
    columns: int
    has_masks: bool = False
    """Whether masks cost nothing."""

    @staticmethod
    def of(dtype: AnyFloat, lanes: int, columns: int, registers: int) -> SmallNRoutine:
        """A tile with as many rows as are read side by side, fewer if registers or lanes do not suffice."""
        fits = registers > 2 * SMALL_N_ACCUMULATORS or columns * DOT_STREAMS <= SMALL_N_ACCUMULATORS
        return SmallNRoutine(dtype, lanes, min(lanes, DOT_STREAMS if fits else DOT_STREAMS // 2), columns)

    @property
    def together(self) -> int:
        """How many results one vector has, row by row."""
        return min(self.lanes, self.rows * self.columns)

    def emit(
        self,
        code: Code,
        k: SSAValue,
        near: Sequence[RowVector],
        far: Sequence[RowVector],
        prefetch: PrefetchTileRow | None = None,
    ) -> Sequence[SSAValue]:
        """The results of a tile in vectors of so many `together`: the `near` columns times the rows that are `far`."""
        lanes, count = self.lanes, self.columns
        buffer = code.alloc([self.rows * count, lanes], self.dtype, "sums", scope="local")
        positions = [[[code.index(i * count + j), code.index(0)] for j in range(count)] for i in range(self.rows)]
        for position in (position for line in positions for position in line):
            code.store(code.zeros(self.dtype, lanes), buffer, position)

        def add(r: SSAValue, on: SSAValue | None) -> None:
            columns = [line(r, on) for line in near]
            for line, own in zip(far, positions, strict=True):
                vector = line(r, on)
                for column, position in zip(columns, own, strict=True):
                    code.store(code.fma(vector, column, code.load(buffer, position, lanes)), buffer, position)

        whole = code.divide(k, lanes)

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "v", lower=lower, vectorize=False) as v:
                r = code.mul(v, lanes)
                if prefetch is not None:
                    for i in range(self.rows):
                        prefetch(i, r)
                add(r, None)

        indices = [position for line in positions for position in line]
        in_blocks(
            code, (None, whole), run, lambda: VectorTotals(code, self.dtype, buffer, indices, lanes), constant(MOST)
        )
        done = code.mul(whole, lanes)
        with code.when(code.compare("slt", done, k)):
            add(done, code.sub(k, done))
        accumulators = [code.load(buffer, position, lanes) for line in positions for position in line]
        return [row_sums(code, accumulators[i : i + self.together]) for i in range(0, len(accumulators), self.together)]

    # As a routine.

    @property
    @override
    def label(self) -> str:
        """The shape of the tile."""
        return f"columns.{self.dtype}.{self.rows}x{self.columns}"

    @override
    def sizes(self) -> Sequence[str]:
        return _SIZES

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, *_BUFFERS)

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function."""
        _Body(self, code, size, buffer).emit()


@dataclass(frozen=True)
class _Body:
    kind: SmallNRoutine
    code: Code
    size: Mapping[str, SSAValue]
    buffer: Mapping[str, SSAValue]

    def emit(self) -> None:
        """The tiles from `lower` to before `upper`; rows after the last one are that once more."""
        code, kind, size = self.code, self.kind, self.size
        near = [self._copy(j) for j in range(kind.columns)]
        count = code.compare("eq", size["count"], kind.columns)
        dense = code.both(count, code.compare("eq", size["out_each"], kind.columns))
        with code.loop(size["upper"], "tile", lower=size["lower"], vectorize=False) as tile:
            top = code.mul(tile, kind.rows)
            rows = [code.minimum(code.add(top, i), code.sub(size["m"], 1)) for i in range(kind.rows)]
            positions = [code.add(size["first"], code.mul(row, size["each"])) for row in rows]

            def prefetch(i: int, r: SSAValue) -> None:
                with code.when(code.compare("ne", size["asked"], 0)):
                    position = code.add(positions[i], code.mul(size["each"], kind.rows))
                    for ahead in (0, kind.lanes):
                        code.prefetch(self.buffer["matrix"], [code.add(code.add(position, r), ahead)], 2)

            lines = [self._line("matrix", position) for position in positions]
            totals = kind.emit(code, size["k"], near, lines, prefetch)
            with code.when(dense) as branch:
                self._dense(totals, top)
            with code.otherwise(branch):
                self._rows(totals, rows)

    def _copy(self, number: int) -> RowVector:
        """A column; that after the last one is that once more."""
        code, size = self.code, self.size
        column = code.minimum(code.sub(size["count"], 1), number)
        return self._line("copies", code.add(size["near"], code.mul(size["width"], column)))

    def _line(self, buffer: str, begin: SSAValue) -> RowVector:
        code, lanes = self.code, self.kind.lanes

        def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
            mask = None if on is None else code.leading(on, lanes)
            return code.load(self.buffer[buffer], [code.add(begin, r)], lanes, mask)

        return vector

    def _dense(self, totals: Sequence[SSAValue], top: SSAValue) -> None:
        """Stores to rows that are nothing but these columns."""
        code, kind, size = self.code, self.kind, self.size
        left = code.mul(code.sub(size["m"], top), kind.columns)
        first = code.add(size["out"], code.mul(top, kind.columns))
        for i, total in enumerate(totals):
            position, rest = [code.add(first, i * kind.together)], code.sub(left, i * kind.together)
            with code.when(code.compare("sge", rest, kind.together)) as branch:
                code.store(total, self.buffer["output"], position)
            with code.otherwise(branch):
                code.store(total, self.buffer["output"], position, code.leading(rest, kind.together))

    def _rows(self, totals: Sequence[SSAValue], rows: Sequence[SSAValue]) -> None:
        """Stores to some columns of rows."""
        code, kind, size = self.code, self.kind, self.size
        for i, row in enumerate(rows):
            position = code.add(size["out"], code.mul(row, size["out_each"]))
            for j in range(0, kind.columns, kind.together):
                number, first = divmod(i * kind.columns + j, kind.together)
                self._columns(totals[number], first, code.add(position, j), code.sub(size["count"], j))

    def _columns(self, total: SSAValue, first: int, position: SSAValue, count: SSAValue) -> None:
        """Stores some neighbouring results from one on, at most those of a row."""
        code, width = self.code, min(self.kind.columns, self.kind.together)

        def put(first: int, lanes: int, position: SSAValue, mask: SSAValue | None = None) -> None:
            values = shuffle(code, (total, total), range(first, first + lanes))
            code.store(values, self.buffer["output"], [position], mask)

        if self.kind.columns <= 2:  # which are there
            put(first, width, position)
        elif self.kind.has_masks:
            put(first, width, position, code.leading(count, width))
        else:
            with code.when(code.compare("sge", count, width)) as branch:
                put(first, width, position)
            with code.otherwise(branch):  # one column less
                if width > 2:
                    put(first, 2, position)
                put(first + width - 2, 1, code.add(position, width - 2))
