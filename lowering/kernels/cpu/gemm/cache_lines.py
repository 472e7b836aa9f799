"""The cache lines that a row of a panel covers: one prefetch per line."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat

from lowering.kernels.cpu.gemm.product import Product
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES


def line_starts(product: Product) -> range:
    """The first column in each of the lines, of a panel that begins with one."""
    return range(0, product.tiles.width, _per_line(product.tiles.width, product.what.element))


def line_ends(product: Product) -> range:
    """The last column in each of them: where a panel begins anywhere, its first may be in the line before."""
    return ends_of_lines(product.tiles.width, product.what.element)


def ends_of_lines(width: int, element: AnyFloat) -> range:
    """The same for so many columns of a type."""
    step = _per_line(width, element)
    return range(step - 1, width, step)


def _per_line(width: int, element: AnyFloat) -> int:
    """Elements in a line, at most those of a row of a panel."""
    return min(width, LINE_BYTES // byte_size(element))
