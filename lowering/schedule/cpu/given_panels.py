"""Columns that lie in panels already: the micro-kernel reads them where they are, and asks for the next in advance."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.schedule.cpu.product import Product, Spot
from lowering.schedule.cpu.tile import Element, emit_panel_tile
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
        (load,) = product.what.columns.loads
        self.buffer = product.kernel.flat[load.buffer]
        self.per_line = LINE_BYTES // byte_size(load.buffer_type.dtype)
        self.pitch = product.what.columns.panels or product.tiles.width

    def tile(self, length: SSAValue, height: int, element: Element, tile: SSAValue, strip: SSAValue) -> None:
        """Sums of `height` rows into the buffer `tile`."""
        whole = height < self.product.tiles.rows
        half = None if whole else self.code.mul(self.code.remainder(strip, 2), length)

        def ask(r: SSAValue) -> None:
            self._near(r)
            if self.pitch == self.product.tiles.width:
                self._next(r, half)

        emit_panel_tile(self.product, length, height, element, self._vector, tile, ask)

    def _spot(self, depth: SSAValue) -> Spot:
        return {**self.spot, self.product.what.reduced: self.code.add(self.start, depth)}

    def _vector(self, depth: SSAValue, number: int) -> SSAValue:
        return self.product.panel_vector(self._spot(depth), self.left, number)

    def _near(self, depth: SSAValue) -> None:
        code, place = self.code, self._place()
        for line in range(0, self.product.tiles.width, self.per_line):
            further = code.add(code.mul(depth, self.pitch), NEAR * self.pitch + line)
            code.prefetch(self.buffer, [code.add(place, further)], 1)

    def _next(self, depth: SSAValue, half: SSAValue | None) -> None:
        """A line of the next panel, or, where no other strip may follow, two."""
        code, width = self.code, self.pitch
        place = code.add(self._place(), code.mul(code.dim(self.product.k), width))
        if half is not None:
            code.prefetch(self.buffer, [code.add(place, code.mul(code.add(half, depth), width // 2))], 2)
            return
        for part in (0, width // 2):
            code.prefetch(self.buffer, [code.add(place, code.add(code.mul(depth, width), part))], 2)

    def _place(self) -> SSAValue:
        """Where the panel is, in elements."""
        product, what = self.product, self.product.what
        here = {**self.spot, what.reduced: self.start, what.column: self.left}
        return self.code.add(product.offset(what.columns.places[0], here), product.panel_jump(self.left))
