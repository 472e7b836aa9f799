"""Columns after the last whole panel, or vector: very few of them are multiplied separately.

A panel takes at least as long as one vector of columns, even for a single column. Where the last panel may be as narrow
as a vector, very few columns behind that are separate, too.
"""

from __future__ import annotations

from lowering.kernels.cpu.gemm.product import Product
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum

MOST_COLUMNS, MOST_IN_ALL = 4, 7
"""With more columns, behind the last whole panel or in all, a vector of them takes less time."""
STEPS_PER_COLUMN, ROWS_PER_COLUMN = 8, 8
"""So much longer are sums for each of them, since the lanes of a sum are added up at its end, and so many rows pay for
each that is copied, if there are more in all."""
FEW_ROWS = 16
"""With so few rows known, columns are what takes time, which a panel reads once."""


def lies_in_rows(product: Product) -> bool:
    """Whether rows lie along the reduction, and columns in no panels, so that few columns can be multiplied."""
    what = product.what
    plain = what.longest is None and not what.outer and what.columns.panels is None
    several = bool(what.row) and product.m.constant_value != 1
    return plain and several and product.is_contiguous(what.rows, what.reduced)


def narrow_step(product: Product) -> int:
    """Steps of columns where the last panel may be narrow: vectors, if they have more lanes than columns are few."""
    lanes = product.tiles.lanes
    return lanes if lanes > MOST_COLUMNS else product.tiles.width


def leaves_last(product: Product, step: int | None = None) -> bool:
    """Whether there may be very few columns behind whole steps, vectors or panels."""
    what, rows = product.what, product.m.constant_value
    if product.is_exchanged or not lies_in_rows(product) or product.is_contiguous(what.columns, what.reduced):
        return False
    if not product.is_contiguous(what.columns, what.column) or (rows is not None and rows <= FEW_ROWS):
        return False
    known = product.n.constant_value
    step = step or narrow_step(product)
    return known is None or (known > MOST_COLUMNS and 0 < known % step <= MOST_COLUMNS)


def most_columns(product: Product) -> Dim:
    """How many columns are very few, at least one."""
    longer = floordiv(product.k, constant(STEPS_PER_COLUMN))
    most = minimum(constant(MOST_IN_ALL), maximum(longer, constant(1)))
    if product.is_contiguous(product.what.columns, product.what.reduced):
        return most
    return minimum(most, maximum(floordiv(product.m, constant(ROWS_PER_COLUMN)), constant(MOST_COLUMNS)))


def are_very_few(product: Product) -> bool | None:
    """Whether there are no more in all; `None` if that depends on the call."""
    columns, most = product.n.constant_value, most_columns(product).constant_value
    if columns is None or (1 < columns <= MOST_IN_ALL and most is None):
        return None
    return columns <= (most or MOST_IN_ALL)


def most_last(product: Product, step: int) -> Dim:
    """How many columns behind whole steps are very few, fewer than a step has."""
    return minimum(constant(min(step - 1, MOST_COLUMNS)), most_columns(product))


def main_columns(product: Product, step: int) -> Dim:
    """How many columns there are without very few behind whole steps, where columns are not very few in all."""
    if not leaves_last(product, step):
        return product.n
    steps = floordiv(product.n + (constant(step - 1) - most_last(product, step)), constant(step))
    return minimum(product.n, maximum(steps, constant(1)) * step)


def panels(product: Product, step: int) -> Dim:
    """How many panels have these columns."""
    return ceildiv(main_columns(product, step), constant(product.tiles.width)) * product.rounds
