"""Products without rows to share columns, such as depthwise convolutions: line by line, without packing.

A vector of results lies along the last axis of the output; its sum runs through registers, written out if it is short.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant, minimum

MOST_UNROLLED = 64
"""Longer sums, or sums of unknown length, are loops."""
PRODUCTS_PER_TASK = 1 << 17


def is_line_product(product: Product) -> bool:
    """Whether both factors move along the output, or a short sum has columns that are read from where they are."""
    what = product.what
    if not what.along or what.columns.panels is not None:
        return False
    vectors = all(_is_vector(factor, what.along[-1]) for factor in (what.rows, what.columns))
    short = product.k.constant_value is not None and product.k.constant_value <= MOST_UNROLLED
    exact = short or what.longest is None
    return vectors and exact and (not what.column or (short and not what.row))


def _is_vector(factor: Factor, axis: int) -> bool:
    return factor.is_linear and factor.stride(axis) is not None


class LineProduct:
    """Emits the code of one contraction, its batch axes included."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.finish = Finish(product, None, None)
        what = product.what
        self.axis = what.along[-1]
        self.unit = tuple(axis for axis in (*what.batch, *what.row, *what.outer) if axis != self.axis)
        self.line = what.column[:-1]

    def emit(self) -> None:
        """All results: tasks have units, units lines, lines vectors."""
        code, product = self.code, self.product
        units = product.size(self.unit)
        lanes, extent = product.tiles.lanes, product.what.stage.extents[self.axis]
        tasks = minimum(units, product.threads(PRODUCTS_PER_TASK, self._work(units)))
        with (
            shared_units(code, units, tasks) as (lower, upper),
            code.loop(upper, "unit", lower=lower) as unit,
            code.loop(code.dim(product.size(self.line)), "line") as line,
            code.loop(code.dim(ceildiv(extent, constant(lanes))), "v") as v,
        ):
            place = code.mul(v, lanes)
            spot = {self.unit: unit, self.line: line, (self.axis,): place}
            on = code.sub(code.dim(extent), place)

            def emit(masked: bool, on: SSAValue = on, spot: Spot = spot) -> None:
                some = on if masked else None
                self.finish.store_lanes(self._sum(spot, some), spot, some)

            product.masked(on, lanes, emit)

    def _work(self, units: Dim) -> Dim:
        product = self.product
        return units * product.size((*self.line, self.axis)) * product.k

    def _sum(self, spot: Spot, on: SSAValue | None) -> SSAValue:
        """A vector of results."""
        code, product, reduced = self.code, self.product, self.product.what.reduced
        total = code.zeros(product.what.element, product.tiles.lanes)
        length = product.k.constant_value
        if length is not None and length <= MOST_UNROLLED:
            for r in range(length):
                total = self._more({**spot, reduced: code.index(r)}, on, total)
            return total
        sums, zero = code.alloc([product.tiles.lanes], product.what.element, "sums", scope="local"), code.index(0)
        code.store(total, sums, [zero])
        with code.loop(code.dim(product.k, "k"), "r") as r:
            so_far = code.load(sums, [zero], product.tiles.lanes)
            code.store(self._more({**spot, reduced: r}, on, so_far), sums, [zero])
        return code.load(sums, [zero], product.tiles.lanes)

    def _more(self, spot: Spot, on: SSAValue | None, total: SSAValue) -> SSAValue:
        what, along = self.product.what, (self.axis,)
        left, right = (self.product.vector(factor, spot, along, on) for factor in (what.rows, what.columns))
        return self.code.fma(left, right, total)
