"""Columns after the last whole panel: very few of them are multiplied separately.

A panel takes at least as long as one vector of columns, even for a single column.
"""

from __future__ import annotations

from lowering.schedule.cpu.products.product import Product
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum

MOST_COLUMNS = 4
"""With more columns, in all or behind the last whole panel, a vector of them takes less time."""
STEPS_PER_COLUMN = 16
"""So much longer are sums for each of them: the lanes of a sum are added up at its end."""
FEW_ROWS = 16
"""With so few rows known, columns are what takes time, which a panel reads once."""


def lies_in_rows(product: Product) -> bool:
    """Whether rows lie along the sums, with columns that are in no panels, so that few columns can be multiplied."""
    what = product.what
    plain = what.longest is None and not what.outer and what.columns.panels is None
    several = bool(what.row) and product.m.constant_value != 1
    return plain and several and product.is_contiguous(what.rows, what.reduced)


def leaves_last(product: Product) -> bool:
    """Whether there may be very few columns behind whole panels, which are then no part of `panels`."""
    what, rows = product.what, product.m.constant_value
    if not lies_in_rows(product) or product.is_contiguous(what.columns, what.reduced):
        return False
    if not product.is_contiguous(what.columns, what.column) or (rows is not None and rows <= FEW_ROWS):
        return False
    known = product.n.constant_value
    return known is None or (known > MOST_COLUMNS and 0 < known % product.tiles.width <= MOST_COLUMNS)


def most_columns(product: Product) -> Dim:
    """How many columns are very few, at least one."""
    longer = floordiv(product.k, constant(STEPS_PER_COLUMN))
    return minimum(constant(MOST_COLUMNS), maximum(longer, constant(1)))


def are_very_few(product: Product) -> bool | None:
    """Whether there are no more in all; `None` if that depends on the call."""
    columns, most = product.n.constant_value, most_columns(product).constant_value
    if columns is None or (1 < columns <= MOST_COLUMNS and most is None):
        return None
    return columns <= (most or MOST_COLUMNS)


def most_last(product: Product) -> Dim:
    """How many columns behind whole panels are very few, less than a panel has."""
    return minimum(constant(product.tiles.width - 1), most_columns(product))


def panels(product: Product) -> Dim:
    """How many panels there are, where columns are not very few in all."""
    width = product.tiles.width
    if leaves_last(product):
        spare = constant(width - 1) - most_last(product)
        return maximum(floordiv(product.n + spare, constant(width)), minimum(product.n, constant(1)))
    return ceildiv(product.n, constant(width)) * product.rounds
