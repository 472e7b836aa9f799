"""Columns after the last whole panel: very few of them are multiplied separately.

A panel takes at least as long as one vector of columns, even for a single column.
"""

from __future__ import annotations

from lowering.schedule.cpu.products.product import Product
from tir_dialect.dims import Dim, ceildiv, constant, floordiv

MOST_COLUMNS = 8
"""With more columns in all it pays to use an element of the matrix for several at once."""
LAST_COLUMNS = 4
"""With more behind the last whole panel a panel for them takes less time: one vector has columns for all."""
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
    return known is None or (known > MOST_COLUMNS and 0 < known % product.tiles.width <= LAST_COLUMNS)


def most_last(product: Product) -> int:
    """How many columns behind whole panels are very few, less than a panel has."""
    return min(LAST_COLUMNS, product.tiles.width - 1)


def panels(product: Product) -> Dim:
    """How many panels there are, where there are more than `MOST_COLUMNS` columns."""
    width = product.tiles.width
    if leaves_last(product):
        return floordiv(product.n + (width - 1 - most_last(product)), constant(width))
    return ceildiv(product.n, constant(width)) * product.rounds
