"""The lines of the cache that a row of a panel takes: hints for memory are given once for each."""

from __future__ import annotations

from lowering.schedule.cpu.products.product import Product
from tir_dialect.dtypes import byte_size

LINE_BYTES = 64


def per_line(product: Product) -> int:
    """Elements in a line, at most those of a row of a panel."""
    return min(product.tiles.width, LINE_BYTES // byte_size(product.what.element))


def line_starts(product: Product) -> range:
    """The first column in each of the lines, of a panel that begins with one."""
    return range(0, product.tiles.width, per_line(product))


def line_ends(product: Product) -> range:
    """The last column in each of them: where a panel begins anywhere, its first may be in the line before."""
    return range(per_line(product) - 1, product.tiles.width, per_line(product))
