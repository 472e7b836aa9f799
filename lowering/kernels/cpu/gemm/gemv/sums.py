"""Sums of the rows of a matrix, each times its element of a vector: what a thread does for a product with one row.

A routine where both are in memory. Accumulators are whole, numbered vectors: vector 0 has the `head` columns before the
first aligned position, the others follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import Routine, flat
from lowering.kernels.cpu.gemm.operands import Matrix
from tir_dialect.types import BufferType

LINES = 7
"""Lines of the matrix that are read side by side. With the sums they are as many as a set of the first-level cache has
ways, and all may fall into one."""
SIDE = 4
"""Vectors of each line that are taken at once: loads right behind a store wait if their addresses end as it does."""

_Bounds = tuple[SSAValue, SSAValue]
_Column = tuple[SSAValue, SSAValue]
"""The first column of a vector, and where its sums are."""
_Add = Callable[[Sequence[_Column], Sequence[SSAValue] | None], None]
"""Adds to some vectors; all lanes, or so many or more."""


@dataclass(frozen=True)
class Values:
    """The operands."""

    element: Callable[[SSAValue], SSAValue]
    """The row's at a line."""
    vector: Callable[[SSAValue, SSAValue, SSAValue | None], SSAValue]
    """The matrix's at a line from a column on: all lanes, or so many or more."""
    added: Callable[[SSAValue, SSAValue], SSAValue]
    """A vector of sums and one of the products of some lines."""
    zeros: Callable[[], SSAValue]
    """A vector of sums without products."""
    ask: Callable[[SSAValue, SSAValue], None] | None = None
    """Asks for the matrix's at a line, which need not exist, and a column."""


@dataclass(frozen=True)
class Extent:
    """The range of rows and columns."""

    lower: SSAValue
    upper: SSAValue
    """The first line, and the one behind the last."""
    n: SSAValue
    """Columns."""
    head: SSAValue
    vectors: SSAValue
    block: SSAValue
    """Vectors of sums that are made before the next ones; whole groups."""
    asked: SSAValue | None = None
    """Not 0 where the lines of the next iteration are asked for."""


@dataclass(frozen=True)
class VectorSums(Routine):
    """The kind of elements and vectors."""

    dtype: AnyFloat
    lanes: int
    masks: bool
    """Whether masks cost next to nothing."""
    asks: bool = False
    """Whether lines may be asked for."""

    def emit(self, code: Code, extent: Extent, values: Values, sums: SSAValue) -> None:
        """Inlined code, for operands that are computed."""
        _Body(self, code, extent, values, sums).emit()

    @property
    @override
    def label(self) -> str:
        """The lanes."""
        return f"vector.{self.dtype}.{self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return [*self._extent, "row", "row_step", "column", "column_step"]

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, "rows", "columns", "sums")

    @property
    def _extent(self) -> Sequence[str]:
        return ["lower", "upper", "n", "head", "vectors", "block", *["asked"] * self.asks]

    def arguments(self, extent: Extent, row: Matrix, columns: Matrix) -> list[SSAValue | int]:
        """The sizes of a call, without those of the buffers."""
        sizes = [extent.lower, extent.upper, extent.n, extent.head, extent.vectors, extent.block]
        asked = [extent.asked] if extent.asked is not None else []
        return [*sizes, *asked, row.first, row.step, columns.first, columns.step]

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function."""

        def element(line: SSAValue) -> SSAValue:
            return code.load(buffer["rows"], [code.add(size["row"], code.mul(line, size["row_step"]))])

        def begin(line: SSAValue) -> SSAValue:
            return code.add(size["column"], code.mul(line, size["column_step"]))

        def vector(line: SSAValue, j: SSAValue, on: SSAValue | None) -> SSAValue:
            index = code.add(begin(line), j)
            mask = None if on is None else code.leading(on, self.lanes)
            return code.load(buffer["columns"], [index], self.lanes, mask)

        def ask(line: SSAValue, j: SSAValue) -> None:
            code.prefetch(buffer["columns"], [code.add(begin(line), j)], 2)

        values = Values(element, vector, code.add_floats, lambda: code.zeros(self.dtype, self.lanes), ask)
        self.emit(code, Extent(*(size[name] for name in self._extent)), values, buffer["sums"])


@dataclass(frozen=True)
class _Body:
    kind: VectorSums
    code: Code
    extent: Extent
    values: Values
    sums: SSAValue

    def emit(self) -> None:
        """The sums over some lines, block by block: those of an iteration, then what is left, one by one."""
        code, extent = self.code, self.extent
        with code.loop(code.add(extent.vectors, SIDE - 1), "v", vectorize=False) as v:
            code.store(self.values.zeros(), self.sums, [code.mul(v, self.kind.lanes)])
        iterations = code.divide(code.sub(extent.upper, extent.lower), LINES)
        rest = code.add(extent.lower, code.mul(iterations, LINES))
        blocks = code.divide(code.add(extent.vectors, code.sub(extent.block, 2)), extent.block)
        with code.loop(code.maximum(blocks, 1), "block") as number:
            begin = code.add(code.mul(number, extent.block), 1)  # the first one has number 0 too
            bounds = begin, code.minimum(code.add(begin, extent.block), extent.vectors)
            with code.loop(iterations, "iteration") as iteration:
                first = code.add(extent.lower, code.mul(iteration, LINES))
                self._lines([code.add(first, line) for line in range(LINES)], bounds)
            with code.loop(extent.upper, "line", lower=rest) as line:
                self._lines([line], bounds)

    def _lines(self, lines: Sequence[SSAValue], bounds: _Bounds) -> None:
        """Adds some lines times their elements of the row; all vectors within bounds.

        Several vectors at a time, without masks but at the ends.
        """
        code, (n, head), (begin, end) = self.code, (self.extent.n, self.extent.head), bounds
        factors = [code.splat(self.values.element(line), self.kind.lanes) for line in lines]
        add = partial(self._add, lines, factors)
        with code.when(code.compare("sle", begin, code.minimum(head, 1))):
            add([(code.index(0), code.index(0))], [head])
        if len(lines) == 1:
            self._single(add, begin, end)
            return
        whole = code.minimum(end, code.add(code.divide(code.sub(n, head), self.kind.lanes), 1))
        groups = code.divide(code.maximum(code.sub(whole, begin), 0), SIDE)
        asked = self.extent.asked
        if asked is None:
            self._groups(add, begin, groups)
        else:
            with code.when(code.compare("ne", asked, 0)) as branch:
                self._groups(add, begin, groups, [code.add(line, LINES) for line in lines])
            with code.otherwise(branch):
                self._groups(add, begin, groups)
        self._rest(add, code.add(begin, code.mul(groups, SIDE)), end)

    def _groups(self, add: _Add, begin: SSAValue, groups: SSAValue, soon: Sequence[SSAValue] = ()) -> None:
        """So many groups of vectors; of some lines the same vectors are asked for."""
        code = self.code
        with code.loop(groups, "group", vectorize=False) as group:
            first = code.add(begin, code.mul(group, SIDE))
            targets = [column_of(code, self.kind.lanes, self.extent.head, code.add(first, v)) for v in range(SIDE)]
            if self.values.ask is not None:
                for line in soon:
                    for column, _ in targets:
                        self.values.ask(line, column)
            add(targets, None)

    def _rest(self, add: _Add, begin: SSAValue, end: SSAValue) -> None:
        """The vectors behind whole groups, fewer than one: where masks cost little, as one that reaches into padding.

        Only the last block has some, so that what is off adds to nothing: zero times infinity is no zero.
        """
        code, extent = self.code, self.extent
        if not self.kind.masks:
            self._single(add, begin, end)
            return
        with code.when(code.compare("slt", begin, end)):
            targets = [column_of(code, self.kind.lanes, extent.head, code.add(begin, v)) for v in range(SIDE)]
            add(targets, [code.sub(extent.n, column) for column, _ in targets])

    def _single(self, add: _Add, begin: SSAValue, end: SSAValue) -> None:
        """Vectors one by one."""
        code, lanes = self.code, self.kind.lanes
        with code.loop(end, "v", lower=begin, vectorize=False) as v:
            target = column_of(code, lanes, self.extent.head, v)
            count = code.sub(self.extent.n, target[0])
            if self.kind.masks:
                add([target], [count])
                return
            with code.when(code.compare("sge", count, lanes)) as branch:
                add([target], None)
            with code.otherwise(branch):
                add([target], [count])

    def _add(
        self,
        lines: Sequence[SSAValue],
        factors: Sequence[SSAValue],
        targets: Sequence[_Column],
        on: Sequence[SSAValue] | None,
    ) -> None:
        """Adds the products of some lines to some vectors of sums.

        All sums are read before one is written, and all lanes of them: what is off in `on` adds zero.
        """
        code, lanes = self.code, self.kind.lanes
        totals = [code.zeros(self.kind.dtype, lanes)] * len(targets)
        counts = [None] * len(targets) if on is None else on
        for factor, line in zip(factors, lines, strict=True):
            columns = [
                self.values.vector(line, column, count) for (column, _), count in zip(targets, counts, strict=True)
            ]
            totals = [code.fma(factor, column, total) for column, total in zip(columns, totals, strict=True)]
        old = [code.load(self.sums, [number], lanes) for _, number in targets]
        for (_, number), earlier, total in zip(targets, old, totals, strict=True):
            code.store(self.values.added(earlier, total), self.sums, [number])


def column_of(code: Code, lanes: int, head: SSAValue, vector: SSAValue) -> _Column:
    """The first column of a vector, but for number 0, and where its sums are."""
    return code.add(head, code.mul(code.sub(vector, 1), lanes)), code.mul(vector, lanes)
