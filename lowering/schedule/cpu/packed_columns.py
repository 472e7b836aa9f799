"""All panels of columns that a turn along the sums packs, and how what comes next is asked for in advance."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowering.schedule.cpu.column_panels import ColumnPanel, has_lines
from lowering.schedule.cpu.contraction import is_chain
from lowering.schedule.cpu.product import Product, Spot
from lowering.schedule.cpu.tile import Element, emit_tile
from tir_dialect.dims import Dim, ceildiv, constant


@dataclass(frozen=True)
class Part:
    """What is done at once: a block of rows times a section of the columns, in one turn along the sums."""

    section: SSAValue
    block: SSAValue
    top: SSAValue
    """The first row."""
    count: SSAValue
    """How many rows there are."""
    start: SSAValue
    """Where the turn begins."""
    length: SSAValue
    """How long it is."""


class PackedColumns:
    """Panels `[number, depth, width]`."""

    def __init__(self, product: Product, count: Dim, depth: Dim):
        self.product = product
        self.code = product.code
        self.tiles = product.tiles
        lanes = constant(self.tiles.lanes)
        self.depth = ceildiv(depth, lanes) * lanes
        self.buffer = self.code.alloc([count, self.depth, self.tiles.width], product.what.element, "packed_columns")
        self.offsets: SSAValue | None = None

    def prepare(self, start: SSAValue, length: SSAValue) -> None:
        """Computes how far the elements of a sum are apart, where that is the same for all panels of a turn."""
        what, code = self.product.what, self.code
        if not has_lines(self.product) or len(what.columns.places) != 1:
            return
        self.offsets = code.alloc([self.depth], i64, "offsets")
        with code.loop(length, "r") as r:
            place = replace(what.columns.places[0], base=constant(0))
            offset = self.product.offset(place, {what.reduced: code.add(start, r)})
            code.store(code.value(arith.IndexCastOp(offset, i64)), self.offsets, [r])

    def panel(self, number: SSAValue) -> ColumnPanel:
        """One of the panels."""
        buffer = self.code.part(self.buffer, number, [self.depth, self.tiles.width])
        return ColumnPanel(self.product, buffer, self.offsets)


@dataclass(frozen=True)
class _Line:
    """Lines of memory, one for each step along the sums."""

    buffer: SSAValue
    first: SSAValue
    step: SSAValue


class PackedPanel:
    """One of the panels, while strips of rows use it.

    Meanwhile the next one is brought to the second-level cache, a line in each step, for one vector of columns in each
    strip: while panels are packed, that is where its columns are; later, the packed panel.
    """

    def __init__(self, columns: PackedColumns, number: SSAValue, spot: Spot, left: SSAValue, part: Part):
        """Panel `number`, which the first block of rows packs; its first column is `left`."""
        self.columns = columns
        self.product = columns.product
        self.code = columns.code
        self.tiles = columns.tiles
        self.number, self.spot, self.left, self.part = number, spot, left, part
        self.panel = columns.panel(number)
        self.is_packed = self.code.compare("ne", part.block, 0)
        with self.code.when(self.code.compare("eq", part.block, 0)):
            self.panel.pack(spot, left, part.start, part.length)

    def tile(self, length: SSAValue, height: int, element: Element, tile: SSAValue, strip: SSAValue) -> None:
        """Sums of `height` rows into the buffer `tile`."""
        code, tiles = self.code, self.tiles
        vector = code.remainder(strip, tiles.vectors)
        lines, following, place = self._source(vector), code.add(self.number, 1), code.mul(vector, tiles.lanes)
        moves = code.select(self.is_packed, code.index(1), code.index(0))  # else one line is asked for again and again

        def ask(r: SSAValue) -> None:
            code.prefetch(self.columns.buffer, [following, code.mul(r, moves), place], 2)
            for line in lines:
                code.prefetch(line.buffer, [code.add(line.first, code.mul(r, line.step))], 2)

        emit_tile(self.product, (code.index(0), length), height, element, self.panel.vector, tile, ask, tiles.steps)

    def _source(self, vector: SSAValue) -> list[_Line]:
        """Where the next panel is packed from, if columns are side by side; one line once all panels are packed."""
        code, product, what, tiles = self.code, self.product, self.product.what, self.tiles
        if not product.is_contiguous(what.columns, what.column):
            return []
        # The line of the first column may be that of the last one before, so the last ones are asked for.
        left = code.add(self.left, code.sub(code.mul(code.add(vector, tiles.vectors + 1), tiles.lanes), 1))
        places = [{**self.spot, what.column: left, what.reduced: code.add(self.part.start, r)} for r in (0, 1)]
        lines: list[_Line] = []
        for load, place in zip(what.columns.loads, what.columns.places, strict=True):
            if load.buffer in product.kernel.flat:
                first, second = (product.offset(place, at) for at in places)
                step = code.select(self.is_packed, code.index(0), code.sub(second, first))
                lines.append(_Line(product.kernel.flat[load.buffer], first, step))
        return lines

    def ask_output(self, strip: SSAValue) -> None:
        """Asks for the lines of the output that the next strip adds to, where its rows are evenly spaced."""
        code, product, what, tiles = self.code, self.product, self.product.what, self.tiles
        sums = product.kernel.flat.get(what.store.buffer)
        if sums is None or not is_chain([what.output], what.stage.extents, what.row):
            return
        top = code.add(self.part.top, code.mul(code.add(strip, 1), tiles.rows))
        with code.loop(code.index(tiles.rows), "ahead") as i:
            place = {**self.spot, what.row: code.add(top, i)}
            for v in range(tiles.vectors):
                column = code.add(self.left, (v + 1) * tiles.lanes - 1)
                code.prefetch(sums, [product.offset(what.output, {**place, what.column: column})], 2)
