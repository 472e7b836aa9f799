"""GEMM with small M: rows of B are read along their whole length.

A register tile reads one or two cache lines of each row of B, a pattern that prefetchers do not follow. Here some long
rows of B are read side by side, and all rows of A use them at once. The accumulators go through the caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.gemm.cost_model import (
    L3_PART,
    SMALL_M_BURST_ROWS,
    SMALL_M_L2_PART,
    SMALL_M_MAX_M,
    SMALL_M_MIN_K,
    SMALL_M_MIN_M,
    SMALL_M_MIN_N,
    SMALL_M_N_PER_ROW,
    SMALL_M_NARROW_SHAPE,
    SMALL_M_UNIT_BYTES,
    SMALL_M_WIDE_SHAPE,
    TASK_MACS,
)
from lowering.kernels.cpu.gemm.epilogue import SinglePassGemm, can_store_tiles, output_tile
from lowering.kernels.cpu.gemm.operands import Matrix, elements_before_alignment, lies_evenly, operand
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from lowering.kernels.cpu.gemm.skinny import max_skinny_m, row_groups
from lowering.kernels.cpu.gemm.small_m_routine import Columns, GroupShape, SmallMRoutine, accumulator_offset, blocks
from lowering.kernels.cpu.gemm.tall_skinny import is_tall
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

NARROW = GroupShape(*SMALL_M_NARROW_SHAPE)
WIDE = GroupShape(*SMALL_M_WIDE_SHAPE, prefetches=True, low=SMALL_M_BURST_ROWS)


def group_shape(gemm: Gemm) -> GroupShape:
    """The rows of B and of A that are multiplied at once."""
    return WIDE if _is_wide(gemm) else NARROW


def can_be_small_m(gemm: Gemm) -> bool:
    """Whether there may be few rows and enough columns, both in memory."""
    what = gemm.what
    if what.longest is not None or what.outer or what.columns.panels is not None:
        return False
    if _known(_all(gemm)).count(False) or (_any(gemm) and set(_known(_any(gemm))) == {False}):
        return False
    if not gemm.is_contiguous(what.columns, what.column):
        return False
    return lies_evenly(gemm, what.rows, what.row) and lies_evenly(gemm, what.columns, what.column)


def replaces_skinny(gemm: Gemm) -> bool:
    """Whether this takes every call that would be a skinny GEMM with two rows or more: columns are always enough."""
    enough = gemm.n.constant_value is not None and max_skinny_m(gemm) <= _max_m(gemm)
    return enough and not _is_wide(gemm) and can_be_small_m(gemm) and is_tall(gemm) is False


def is_small_m(gemm: Gemm) -> SSAValue | None:
    """Whether there are few rows and enough columns in a call; `None` if that is known."""
    code, known = gemm.code, _known(_any(gemm))

    def holds(test: _AtMost) -> SSAValue:
        return code.compare("sle", code.dim(test[0]), code.dim(test[1]))

    tests = [holds(test) for test, is_true in zip(_all(gemm), _known(_all(gemm)), strict=True) if is_true is None]
    if known and True not in known:
        tests.append(reduce(code.either, [holds(test) for test in _any(gemm)]))
    return reduce(code.both, tests) if tests else None


def from_memory(gemm: Gemm) -> _AtMost:
    """What holds where the matrix comes from memory."""
    room = gemm.kernel.target.l3_bytes // L3_PART // byte_size(gemm.what.element)
    return constant(room + 1), gemm.k * gemm.n


_AtMost = tuple[Dim, Dim]
"""What has to be at most something else."""


def _all(gemm: Gemm) -> Sequence[_AtMost]:
    """All of these have to hold."""
    m, least = gemm.m, constant(SMALL_M_MIN_N)
    few = (constant(SMALL_M_MIN_M), m), (m, constant(_max_m(gemm)))
    if not _is_wide(gemm):
        return *few, (least, gemm.n)
    wide = maximum(least, SMALL_M_N_PER_ROW * m * gemm.threads(TASK_MACS))
    return *few, (wide, gemm.n), (constant(SMALL_M_MIN_K), gemm.k)


def _any(gemm: Gemm) -> Sequence[_AtMost]:
    """One of these has to hold, if there are any.

    A skinny GEMM is as fast for rows that fill its tallest tiles, if B is in a cache.
    """
    if not _is_wide(gemm):
        return ()
    return from_memory(gemm), (constant(1), gemm.m % row_groups(gemm)[0])


def _known(tests: Sequence[_AtMost]) -> list[bool | None]:
    """Which hold for every call, and for none."""
    spare = [(more - less).constant_value for less, more in tests]
    return [None if each is None else each >= 0 for each in spare]


def _max_m(gemm: Gemm) -> int:
    """The largest M that is small."""
    return min(gemm.kernel.target.schedule.unpacked_rows or SMALL_M_MAX_M, SMALL_M_MAX_M)


def _is_wide(gemm: Gemm) -> bool:
    """Whether vectors are whole cache lines, and there are many registers."""
    size = byte_size(gemm.what.element)
    return gemm.tiles.lanes * size >= LINE_BYTES and gemm.kernel.target.vector_registers >= 32


class SmallMGemm(SinglePassGemm):
    """Emits a GEMM with small M, for one batch."""

    @property
    def is_best(self) -> SSAValue | None:
        """Whether M is small and there are enough columns; `None` if that is known."""
        return is_small_m(self.gemm)

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch: tasks have vectors of columns."""
        code, gemm, lanes = self.code, self.gemm, self.lanes
        start = {**coords, gemm.what.column: code.index(0), gemm.what.reduced: code.index(0)}
        shift = code.remainder(
            code.sub(code.index(lanes), elements_before_alignment(gemm, gemm.what.columns, start)), lanes
        )
        vectors = code.divide(code.add(code.add(code.dim(gemm.n, "n"), shift), lanes - 1), lanes)
        unit = self._unit
        units = ceildiv(gemm.n + (lanes - 1), constant(unit * lanes))
        tasks = minimum(units, gemm.threads(TASK_MACS))
        with shared_units(code, units, tasks, whole=True) as (lower, upper):
            accumulators = code.alloc([(2 * self._most * self._rows + 1) * lanes], gemm.what.element, "sums")
            begin, end = code.mul(lower, unit), code.minimum(code.mul(upper, unit), vectors)
            extent, most = (begin, code.sub(end, begin)), code.dim(self._most)
            if can_store_tiles(gemm):
                out = output_tile(gemm, {**start, gemm.what.row: code.index(0)}, code.index(0))
                self._call(coords, accumulators, (*extent, shift), [most, out.first, out.each], [out.buffer])
                return
            with blocks(code, extent, most) as block:
                self._call(coords, accumulators, (*block, shift), [], [])
                self._store(coords, accumulators, block, shift)

    @property
    def _rows(self) -> Dim:
        """Rows that there is room for."""
        m = self.gemm.m
        return m if m.constant_value is not None else maximum(minimum(m, constant(SMALL_M_MAX_M)), constant(1))

    @property
    def _most(self) -> Dim:
        """Most vectors of columns in a block."""
        room = self.gemm.kernel.target.l2_bytes // SMALL_M_L2_PART // self._vector_bytes
        return maximum(floordiv(constant(room), self._rows), constant(self._unit))

    @property
    def _unit(self) -> int:
        """Vectors that are not partitioned."""
        return max(1, SMALL_M_UNIT_BYTES // self._vector_bytes)

    @property
    def _vector_bytes(self) -> int:
        return self.lanes * byte_size(self.gemm.what.element)

    def _call(
        self,
        coords: Coords,
        accumulators: SSAValue,
        extent: tuple[SSAValue, SSAValue, SSAValue],
        more: Sequence[SSAValue],
        output: Sequence[SSAValue],
    ) -> None:
        """Calls the routine for some vectors of columns; it also stores the accumulators if there is an output."""
        code, gemm, what, zero = self.code, self.gemm, self.gemm.what, self.code.index(0)
        rows = operand(gemm, what.rows, {**coords, what.row: zero, what.reduced: zero}, what.row)
        columns = operand(gemm, what.columns, {**coords, what.column: zero, what.reduced: zero}, what.column)
        assert isinstance(rows, Matrix)  # they lie evenly
        assert isinstance(columns, Matrix)
        layout = [rows.first, rows.each, rows.step, columns.first, columns.step]
        values = [code.index(each) if isinstance(each, int) else each for each in layout]
        buffers = [rows.buffer, columns.buffer, accumulators, *output]
        kind = group_shape(gemm)
        prefetched = [self._prefetched(kind)] * kind.prefetches
        sizes = [*map(code.dim, (gemm.m, gemm.k, gemm.n)), *extent, *values, *prefetched, *more]
        routine = SmallMRoutine(what.element, self.lanes, kind, bool(output))
        gemm.kernel.routines.call(code, routine, sizes, buffers)

    def _prefetched(self, kind: GroupShape) -> SSAValue:
        """How many rows of B of the next iteration are prefetched: all if they come from memory."""
        code, (room, size) = self.code, map(self.code.dim, from_memory(self.gemm))
        return code.select(code.compare("sle", room, size), code.index(kind.k_rows), code.index(0))

    def _store(self, coords: Coords, accumulators: SSAValue, block: tuple[SSAValue, SSAValue], shift: SSAValue) -> None:
        """The epilogue of a block."""
        code, what, (first, vectors) = self.code, self.gemm.what, block
        m, columns = code.dim(self.gemm.m, "m"), Columns(code, self.lanes, code.dim(self.gemm.n, "n"), shift)
        with code.loop(m, "i") as i, code.loop(vectors, "v", vectorize=False) as v:
            column, count, skipped = columns.own(code.add(first, v))
            position = code.add(accumulator_offset(code, m, v, i, self.lanes), skipped)
            value = code.load(accumulators, [position], self.lanes)
            self.finish.store(value, {**coords, what.row: i, what.column: column}, count)
