"""What the generators of attention share: addresses, and the code for one row, from its scores to its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.attention.pattern import COLUMN, AffineForm, Attention, row_forms
from lowering.kernels.cpu.emit.explicit import Explicit, Lanes
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from lowering.kernels.cpu.gemm.tiling import Tiling
from lowering.kernels.cpu.structure.epilogue import Epilogue
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.loop_nest import LoopNest
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Rows:
    """A block of rows: the scores of each are a row of `scores`, the scalars of its chain are in `numbers`."""

    scores: SSAValue
    numbers: Mapping[SSAValue, SSAValue]
    batch: SSAValue
    top: SSAValue
    count: SSAValue


class AttentionCode:
    """What the generators of attention share: addresses, and the code for one row."""

    def __init__(self, kernel: Kernel, attention: Attention, tiles: Tiling):
        self.kernel = kernel
        self.code = kernel.code
        self.attention = attention
        self.tiles = tiles
        self.scores = Gemm(kernel, attention.scores, Epilogue(), tiles)
        self.totals = Gemm(kernel, attention.totals, Epilogue(), tiles)
        self.m, self.n = self.scores.m, self.scores.n
        self.batches = self.scores.size(attention.scores.batch)
        self.pitch = ceildiv(self.n, constant(tiles.nr)) * tiles.nr + tiles.lanes
        """The row stride of the scores, which is no power of two."""

    # Memory

    def memory(self, rows: Dim) -> tuple[SSAValue, dict[SSAValue, SSAValue]]:
        """Memory for the scores of some rows, and for the scalars of their chains."""
        code, attention = self.code, self.attention
        scores = code.alloc([rows, self.pitch], attention.scores.element, "scores")
        kept = [
            each
            for each in attention.row.buffers
            if each not in {attention.buffer, attention.weights.buffer, *attention.row.unread}
        ]
        numbers = {each: code.alloc([rows], attention.scores.element, each.name_hint or "numbers") for each in kept}
        return scores, numbers

    # Columns

    def all_coords(self, batch: SSAValue, row: SSAValue | None) -> tuple[Coords, Coords]:
        """A batch, and a row if it is given, as values of the axes of both GEMMs."""
        mine, axes = self.attention.scores, self.attention.axes
        given = [(mine.batch, batch)] + ([(mine.row, row)] if row is not None else [])
        own: dict[tuple[int, ...], SSAValue] = {group: value for group, value in given if group}
        return own, {tuple(axes[axis] for axis in group): value for group, value in own.items()}

    def digits(self, rows: Rows, row: SSAValue) -> dict[int, SSAValue]:
        """The value of each axis of the first GEMM that chooses a row."""
        mine = self.attention.scores
        return self.scores.at(
            (), (*mine.batch, *mine.row), self.all_coords(rows.batch, self.code.add(rows.top, row))[0]
        )

    def value(self, form: AffineForm, digits: Mapping[int, SSAValue]) -> SSAValue:
        """The value of an affine form."""
        return self.code.linear(form.base, [(digits[axis], step) for axis, step in form.terms])

    def leading(self, digits: Mapping[int, SSAValue]) -> dict[int, SSAValue]:
        """The values of the dimensions that choose a row."""
        return {number: self.value(form, digits) for number, form in enumerate(row_forms(self.attention.scores))}

    def vectors(self, tile: SSAValue, row: SSAValue, count: int) -> list[SSAValue]:
        """The vectors of a row of a tile."""
        lanes = self.tiles.lanes
        return [self.code.load(tile, [row, self.code.index(v * lanes)], lanes) for v in range(count)]

    # One row

    def put_scores(
        self, rows: Rows, row: SSAValue, vectors: Sequence[SSAValue], left: SSAValue, on: SSAValue | None = None
    ) -> None:
        """Applies the elementwise stages to vectors of the first GEMM, from column `left` on, and stores them as
        scores.

        Only the first `on` lanes are stored, or all.
        """
        code, lanes = self.code, self.tiles.lanes
        digits = self.leading(self.digits(rows, row)) if self.attention.elementwise else {}
        for number, vector in enumerate(vectors):
            column = code.add(left, number * lanes)
            value = self._mapped(vector, {**digits, len(digits): column})
            code.store(value, rows.scores, [row, column], None if on is None else code.leading(on, lanes))

    def _mapped(self, vector: SSAValue, at: Mapping[int, SSAValue]) -> SSAValue:
        """A vector of the first GEMM after the elementwise stages."""
        produced, last = {self.attention.scores.store.buffer: vector}, len(at) - 1
        on = None if not self.attention.elementwise else self.code.sub(self.code.dim(self.n), at[last])
        for stage in self.attention.elementwise:
            produced |= self._computed(stage, at, Lanes(last, self.tiles.lanes, on), produced)
        return produced[self.attention.buffer]

    def _computed(
        self, stage: Stage, at: Mapping[int, SSAValue], lanes: Lanes, produced: Mapping[SSAValue, SSAValue]
    ) -> dict[SSAValue, SSAValue]:
        """The values that an elementwise stage stores, by buffers; inputs among `produced` are in registers."""
        body = Explicit(self.kernel, stage, at, lanes)
        body.values |= {load.result: produced[load.buffer] for load in stage.loads if load.buffer in produced}
        body.run(stage.body)
        return {store.buffer: body.widened(body.value(store.value)) for store in stage.stores}

    def chain(self, rows: Rows, row: SSAValue, end: SSAValue | None = None) -> None:
        """The chain along the scores of a row, up to a column or over all."""
        attention, kernel, chain = self.attention, self.kernel, self.attention.row
        at = self.leading(self.digits(rows, row))
        scores = self.code.part(rows.scores, row, [self.n])
        for buffer in (attention.buffer, attention.weights.buffer):
            kernel.rows[buffer] = scores, chain.depth
        for buffer in chain.unread:
            kernel.rows[buffer] = scores, chain.depth  # these are not read from memory
        for buffer, memory in rows.numbers.items():
            one = RegionAxis(row, self.code.add(row, 1))
            kind = SSAValue.get(memory, type=BufferType).type
            view = MatchBufferOp(memory, [one], BufferType([1], kind.dtype, scope=kind.scope))
            kernel.rows[buffer] = self.code.value(view), chain.depth
        outer, kernel.unread = kernel.unread, chain.unread
        for items in chain.passes:
            found = {i: attention.reductions[stage] for i, stage in enumerate(items) if stage in attention.reductions}
            nest = LoopNest(kernel, items, range(chain.depth, len(items[0].axes)), found)
            chunk = None if end is None or nest.outermost is not nest.lane else (self.code.index(0), end)
            accumulators = nest.emit(at, chunk)
            if accumulators is not None:
                accumulators.write(accumulators.finish())
        kernel.unread = outer

    def put_totals(self, rows: Rows, row: SSAValue, vectors: Sequence[SSAValue], left: SSAValue) -> None:
        """Applies the epilogue to vectors of the second GEMM, from column `left` on, and stores them."""
        code, lanes = self.code, self.tiles.lanes
        digits = self.digits(rows, row)
        numbers = {buffer: code.load(memory, [row]) for buffer, memory in rows.numbers.items()}
        for number, vector in enumerate(vectors):
            column = code.add(left, number * lanes)
            on = code.sub(code.dim(self.totals.n), column)
            self._put_total(vector, {**digits, COLUMN: column}, on, numbers)

    def _put_total(
        self,
        vector: SSAValue,
        digits: Mapping[int, SSAValue],
        on: SSAValue,
        numbers: Mapping[SSAValue, SSAValue],
    ) -> None:
        attention, lanes = self.attention, self.tiles.lanes
        produced = {**numbers, attention.totals.store.buffer: vector}
        if attention.totals.store.buffer not in attention.unread:
            at = {theirs: digits[mine] for mine, theirs in attention.axes.items()} | {
                attention.totals.column[0]: digits[COLUMN]
            }
            terms = [(value, attention.totals.output.strides[axis]) for axis, value in at.items()]
            index = self.code.linear(attention.totals.output.base, terms)
            self.code.store(vector, self.totals.accumulators, [index], self.code.leading(on, lanes))
        for step in attention.following:
            at = {axis: self.value(form, digits) for axis, form in enumerate(step.axes)}
            axis = next(axis for axis, form in enumerate(step.axes) if any(each == COLUMN for each, _ in form.terms))
            produced |= self._computed(step.stage, at, Lanes(axis, lanes, on), produced)
