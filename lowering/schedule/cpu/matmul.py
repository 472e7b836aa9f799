"""Code for contractions: panels packed into cache, a tile of the output in registers (Goto and van de Geijn, 2008).

The columns of `columns` are packed in panels of a few vectors, the rows of `rows` in panels of a few rows; the micro-
kernel keeps a tile of sums in registers while it runs along both. Edges: rows past the end are repeated while packing
and not stored, columns past the end are masked. Everything is in terms of symbols, so one artefact serves all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Region, SSAValue

from lowering.schedule.cpu.code import Code
from lowering.schedule.cpu.contraction import Contraction
from lowering.schedule.cpu.few_rows import MAX_ROWS, emit_few_rows, is_wanted
from lowering.schedule.cpu.product import Product
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import LoopKind
from tir_dialect.target import Target

PRODUCTS_PER_THREAD = 1 << 20
"""So few take some ten microseconds; to wake a thread for less does not pay."""
PANELS_PER_THREAD = 8


@dataclass(frozen=True)
class Tiling:
    """Sizes of the blocking, in elements."""

    lanes: int
    """Of one vector register."""
    vectors: int
    """Registers in a row of the tile."""
    rows: int
    """Rows of the tile."""
    depth: int
    """Length of a packed panel along the reduced axis: a panel of columns stays in the first-level cache."""
    height: int
    """Rows that are packed at once, a multiple of `rows`: they stay in the second-level cache."""

    @property
    def width(self) -> int:
        """Columns of the tile."""
        return self.lanes * self.vectors


def tiling(target: Target, element_bytes: int) -> Tiling:
    """The tile that fills the registers of a machine: with 32 of them 14 x 2, with 16 of them 6 x 2."""
    lanes = target.lanes(8 * element_bytes)
    rows = 14 if target.vector_bits >= 512 else 6
    return Tiling(lanes, 2, rows, 2048 // element_bytes, rows * (896 // element_bytes // rows))


def emit_matmul(func: PrimFuncOp, contraction: Contraction, target: Target) -> None:
    """Replaces the body of a function that is a contraction."""
    tiles = tiling(target, byte_size(contraction.dtype))
    old = func.body.block
    body = Block(arg_types=old.arg_types)
    replaced: dict[SSAValue, SSAValue] = {}
    for before, after in zip(old.args, body.args, strict=True):
        replaced[before] = after
        after.name_hint = before.name_hint
    product = Product(Code(body, func.location), contraction, target.cores, replaced)
    kernel = _Matmul(product, tiles)
    kernel.emit()
    func.detach_region(func.body)
    func.add_region(Region(body))


def _parallel(count: Dim) -> LoopKind:
    """A loop that is known to run once is not worth a team of threads."""
    known = count.constant_value
    return LoopKind.PARALLEL if known is None or known > 1 else LoopKind.SERIAL


class _Matmul:
    """Emits the code of one contraction."""

    def __init__(self, product: Product, tiles: Tiling):
        self.product = product
        self.code = product.code
        self.what = product.what
        self.tiles = tiles
        self.m, self.n, self.k = product.m, product.n, product.k

    def emit(self) -> None:
        """The loops over batches, then one product after the other."""
        if self._never_packed:
            self._batches(list(self.what.batch), {})
            return
        code, tiles = self.code, self.tiles
        self.depth = maximum(minimum(self.k, constant(tiles.depth)), constant(1))
        count = maximum(ceildiv(self.n, constant(tiles.width)), constant(1))
        self.panels = code.alloc([count, self.depth, tiles.width], self.what.dtype, "packed_columns")
        self._batches(list(self.what.batch), {})

    @property
    def _never_packed(self) -> bool:
        """Whether the rows are known to be few."""
        return is_wanted(self.product) and self.m.constant_value is not None

    def _batches(self, axes: list[int], at: dict[int, SSAValue]) -> None:
        if not axes:
            self._one_product(at)
            return
        with self.code.loop(self.code.dim(self.what.extents[axes[0]]), "b") as index:
            self._batches(axes[1:], {**at, axes[0]: index})

    def _one_product(self, at: dict[int, SSAValue]) -> None:
        """The product at one place of the batch axes, by the way that suits the number of rows."""
        code = self.code
        if self._never_packed:
            emit_few_rows(self.product, at, self.tiles.lanes)
        elif is_wanted(self.product):
            with code.when(code.compare("sle", code.dim(self.m, "m"), MAX_ROWS)) as branch:
                emit_few_rows(self.product, at, self.tiles.lanes)
            with code.otherwise(branch):
                self._packed(at)
        else:
            self._packed(at)

    def _packed(self, at: dict[int, SSAValue]) -> None:
        code, tiles = self.code, self.tiles
        m, n, k = code.dim(self.m, "m"), code.dim(self.n, "n"), code.dim(self.k, "k")
        panels = code.dim(ceildiv(self.n, constant(tiles.width)), "panels")
        tasks, height = self._tasks()
        # A sum of nothing is zero, so there is always at least one turn.
        turns = code.dim(maximum(ceildiv(self.k, constant(tiles.depth)), constant(1)), "turns")
        with code.loop(turns, "turn") as turn:
            start = code.mul(turn, tiles.depth)
            length = code.minimum(code.sub(k, start), tiles.depth)
            first = code.compare("eq", turn, 0)
            with code.loop(panels, "panel", kind=_parallel(self.n), grain=PANELS_PER_THREAD) as panel:
                self._pack_columns(at, panel, start, length, n)
            with code.loop(code.dim(tasks), "task", kind=_parallel(tasks)) as task:
                top = code.mul(task, code.dim(height))
                rows = code.minimum(code.sub(m, top), code.dim(height))
                packed = self._pack_rows(at, top, rows, start, length, m, height)
                self._tiles(at, packed, top, rows, length, first, panels, m, n)

    def _tasks(self) -> tuple[Dim, Dim]:
        """How many blocks of rows there are, a multiple of the threads if possible, and their height."""
        tiles = self.tiles
        threads = self.product.threads(PRODUCTS_PER_THREAD)
        strips = ceildiv(self.m, constant(tiles.rows))
        rounds = maximum(ceildiv(self.m, threads * tiles.height), constant(1))
        height = tiles.rows * maximum(ceildiv(strips, threads * rounds), constant(1))
        return ceildiv(self.m, height), height

    # Packing

    def _pack_columns(
        self, at: dict[int, SSAValue], panel: SSAValue, start: SSAValue, length: SSAValue, n: SSAValue
    ) -> None:
        """One panel: `depth` rows of `width` columns, those past the end zero."""
        code, tiles = self.code, self.tiles
        left = code.mul(panel, tiles.width)
        operand = self.what.columns
        if operand.axes[-1] == self.what.column[0]:
            places = [code.add(left, v * tiles.lanes) for v in range(tiles.vectors)]
            masks = [code.leading(code.sub(n, place), tiles.lanes) for place in places]
            with code.loop(length, "r") as r:
                row = {**at, self.what.reduced[0]: code.add(start, r)}
                for v, (place, mask) in enumerate(zip(places, masks, strict=True)):
                    part = self.product.load(operand, {**row, self.what.column[0]: place}, tiles.lanes, mask)
                    code.store(part, self.panels, [panel, r, code.index(v * tiles.lanes)])
            return
        last = code.sub(n, 1)
        with code.loop(code.index(tiles.width), "j") as j:
            column = code.minimum(code.add(left, j), last)
            with code.loop(length, "r") as r:
                place = {**at, self.what.column[0]: column, self.what.reduced[0]: code.add(start, r)}
                code.store(self.product.load(operand, place), self.panels, [panel, r, j])

    def _pack_rows(
        self,
        at: dict[int, SSAValue],
        top: SSAValue,
        rows: SSAValue,
        start: SSAValue,
        length: SSAValue,
        m: SSAValue,
        height: Dim,
    ) -> SSAValue:
        """A block of rows in strips; a row past the end is the last one again."""
        code, tiles = self.code, self.tiles
        strips = ceildiv(height, constant(tiles.rows))
        packed = code.alloc([strips, self.depth, tiles.rows], self.what.dtype, "packed_rows")
        last = code.sub(m, 1)
        with (
            code.loop(self._strips(rows), "strip") as strip,
            code.loop(code.index(tiles.rows), "i") as i,
        ):
            row = code.minimum(code.add(code.add(top, code.mul(strip, tiles.rows)), i), last)
            place = {**at, **self.product.row_place(row)}
            with code.loop(length, "r") as r:
                place[self.what.reduced[0]] = code.add(start, r)
                code.store(self.product.load(self.what.rows, place), packed, [strip, r, i])
        return packed

    def _strips(self, rows: SSAValue) -> SSAValue:
        return self.code.divide(self.code.add(rows, self.tiles.rows - 1), self.tiles.rows)

    # The product

    def _tiles(
        self,
        at: dict[int, SSAValue],
        packed: SSAValue,
        top: SSAValue,
        rows: SSAValue,
        length: SSAValue,
        first: SSAValue,
        panels: SSAValue,
        m: SSAValue,
        n: SSAValue,
    ) -> None:
        """All tiles of a block of rows."""
        code, tiles = self.code, self.tiles
        with code.loop(panels, "panel") as panel:
            left = code.mul(panel, tiles.width)
            places = [code.add(left, v * tiles.lanes) for v in range(tiles.vectors)]
            masks = [code.leading(code.sub(n, place), tiles.lanes) for place in places]
            with code.loop(self._strips(rows), "strip") as strip:
                sums = self._micro_kernel(packed, strip, panel, length)
                row = code.add(top, code.mul(strip, tiles.rows))
                for i in range(tiles.rows):
                    self._store_row(at, sums, i, code.add(row, i), m, places, masks, first)

    def _micro_kernel(self, packed: SSAValue, strip: SSAValue, panel: SSAValue, length: SSAValue) -> SSAValue:
        """The tile of sums, in a buffer that LLVM keeps in registers: every access to it has constant indices."""
        code, tiles = self.code, self.tiles
        sums = code.alloc([tiles.rows, tiles.width], self.what.dtype, "sums", scope="local")
        zeros = code.zeros(self.what.dtype, tiles.lanes)
        for i in range(tiles.rows):
            for v in range(tiles.vectors):
                code.store(zeros, sums, [code.index(i), code.index(v * tiles.lanes)])
        with code.loop(length, "r") as r:
            columns = [
                code.load(self.panels, [panel, r, code.index(v * tiles.lanes)], tiles.lanes)
                for v in range(tiles.vectors)
            ]
            for i in range(tiles.rows):
                element = code.splat(code.load(packed, [strip, r, code.index(i)]), tiles.lanes)
                for v in range(tiles.vectors):
                    place = [code.index(i), code.index(v * tiles.lanes)]
                    code.store(code.fma(element, columns[v], code.load(sums, place, tiles.lanes)), sums, place)
        return sums

    def _store_row(
        self,
        at: dict[int, SSAValue],
        sums: SSAValue,
        i: int,
        row: SSAValue,
        m: SSAValue,
        places: Sequence[SSAValue],
        masks: Sequence[SSAValue],
        first: SSAValue,
    ) -> None:
        """One row of a tile, added to what earlier turns have left there."""
        code, tiles = self.code, self.tiles
        with code.when(code.compare("slt", row, m)):
            here = {**at, **self.product.row_place(row)}
            targets = [{**here, self.what.column[0]: place} for place in places]
            values = [
                code.load(sums, [code.index(i), code.index(v * tiles.lanes)], tiles.lanes) for v in range(len(places))
            ]
            with code.when(first) as branch:
                for value, target, mask in zip(values, targets, masks, strict=True):
                    self.product.store(value, target, mask)
            with code.otherwise(branch):
                for value, target, mask in zip(values, targets, masks, strict=True):
                    old = self.product.load(self.what.output, target, tiles.lanes, mask)
                    self.product.store(code.value(arith.AddfOp(value, old)), target, mask)
