"""Columns that lie in panels already: the micro-kernel reads them where they are, and asks for the next in advance."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.products.tile import Element, emit_panel_tile
from tir_dialect.dtypes import byte_size

LINE_BYTES = 64
NEAR = 16
"""Steps along the sums from the one that is made to the one whose columns should be in the first-level cache."""


class GivenPanel:
    """One panel of columns.

    What comes from far away would keep the multipliers waiting, and panels of constants are read once in a run of a
    network. So while a panel is used, the next one is brought to the second-level cache, a line in each step: half of
    it in every other strip of rows; and what is used soon to the first-level cache.
    """

    def __init__(self, product: Product, spot: Spot, left: SSAValue, start: SSAValue):
        """The columns from `left` on, from `start` along the sums."""
        self.product = product
        self.code = product.code
        self.spot, self.left, self.start = spot, left, start
        what = product.what
        (load,) = what.columns.loads
        self.buffer = product.kernel.flat[load.buffer]
        self.per_line = LINE_BYTES // byte_size(load.buffer_type.dtype)
        self.pitch = what.columns.panels or product.tiles.width
        first = product.offset(what.columns.places[0], {**spot, what.reduced: start, what.column: left})
        self.first = self.code.add(first, product.panel_jump(left))
        self.next = self.code.add(self.first, self.code.dim(product.k * self.pitch))

    def tile(self, length: SSAValue, height: int, element: Element, tile: SSAValue, strip: SSAValue) -> None:
        """Sums of `height` rows into the buffer `tile`."""
        code, half = self.code, self.pitch // 2
        if self.pitch != self.product.tiles.width:  # the next tile is in the same panel
            ahead: list[tuple[SSAValue, int]] = []
        elif height < self.product.tiles.rows:  # no other strip may follow
            ahead = [(self.next, self.pitch), (code.add(self.next, half), self.pitch)]
        else:
            done = code.mul(code.mul(code.remainder(strip, 2), length), half)
            ahead = [(code.add(self.next, done), half)]

        def ask(r: SSAValue) -> None:
            row = code.add(self.first, code.mul(r, self.pitch))
            for line in range(0, self.product.tiles.width, self.per_line):
                code.prefetch(self.buffer, [code.add(row, NEAR * self.pitch + line)], 1)
            for place, step in ahead:
                code.prefetch(self.buffer, [code.add(place, code.mul(r, step))], 2)

        emit_panel_tile(self.product, length, height, element, self._vector, tile, ask)

    def _vector(self, depth: SSAValue, number: int) -> SSAValue:
        here = {**self.spot, self.product.what.reduced: self.code.add(self.start, depth)}
        return self.product.panel_vector(here, self.left, number)
