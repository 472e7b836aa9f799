"""Which products have few rows, and what is multiplied at once for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.operands import lies_evenly
from lowering.kernels.cpu.gemm.product import Product
from lowering.kernels.cpu.gemm.skinny.few_rows_routine import Grid
from lowering.kernels.cpu.gemm.skinny.row_groups import groups
from lowering.kernels.cpu.gemm.skinny.streamed import PRODUCTS_PER_TASK, max_rows
from lowering.kernels.cpu.gemm.skinny.tall import is_tall
from tir_dialect.dims import Dim, constant, maximum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

LEAST_ROWS, MOST_ROWS = 2, 16
"""One row has a way of its own; with more rows packed columns are used often enough."""
LEAST_COLUMNS = 64
"""Shorter lines do not pay."""
COLUMNS_PER_ROW = 36
"""Nor do lines of wide vectors, in each thread, that are shorter for each row: others are streamed nearly as fast, and
have no elements of all rows to spread before each line."""
LEAST_STEPS = 96
"""Nor do so short sums along lines of wide vectors, whose accumulators go through the caches all the more often."""
NARROW, WIDE = Grid(4, (4, 3, 2)), Grid(6, (6, 5, 4, 3, 2), asks=True, low=4)
"""For 16 registers, and where vectors are whole lines of the cache and there are 32 registers."""
L3_PART = 2
"""A matrix that takes more than such a part of the last-level cache comes from memory."""


def grid(product: Product) -> Grid:
    """What is multiplied at once."""
    return WIDE if _is_wide(product) else NARROW


def can_have_few_rows(product: Product) -> bool:
    """Whether there may be few rows and enough columns, both in memory."""
    what = product.what
    if what.longest is not None or what.outer or what.columns.panels is not None:
        return False
    if _known(_all(product)).count(False) or (_any(product) and set(_known(_any(product))) == {False}):
        return False
    if not product.is_contiguous(what.columns, what.column):
        return False
    return lies_evenly(product, what.rows, what.row) and lies_evenly(product, what.columns, what.column)


def replaces_streams(product: Product) -> bool:
    """Whether whatever else is streamed, but one row, has few rows here: then there are columns enough in each call."""
    enough = product.n.constant_value is not None and max_rows(product) <= _most_rows(product)
    return enough and not _is_wide(product) and can_have_few_rows(product) and is_tall(product) is False


def has_few_rows(product: Product) -> SSAValue | None:
    """Whether there are few rows and enough columns in a call; `None` if that is known."""
    code, known = product.code, _known(_any(product))

    def holds(test: _Test) -> SSAValue:
        return code.compare("sle", code.dim(test[0]), code.dim(test[1]))

    tests = [holds(test) for test, is_true in zip(_all(product), _known(_all(product)), strict=True) if is_true is None]
    if known and True not in known:
        tests.append(reduce(code.either, [holds(test) for test in _any(product)]))
    return reduce(code.both, tests) if tests else None


def from_memory(product: Product) -> _Test:
    """What holds where the matrix comes from memory."""
    room = product.kernel.target.l3_bytes // L3_PART // byte_size(product.what.element)
    return constant(room + 1), product.k * product.n


_Test = tuple[Dim, Dim]
"""What has to be at most something else."""


def _all(product: Product) -> Sequence[_Test]:
    """What has to hold."""
    m, least = product.m, constant(LEAST_COLUMNS)
    few = (constant(LEAST_ROWS), m), (m, constant(_most_rows(product)))
    if not _is_wide(product):
        return *few, (least, product.n)
    wide = maximum(least, COLUMNS_PER_ROW * m * product.threads(PRODUCTS_PER_TASK))
    return *few, (wide, product.n), (constant(LEAST_STEPS), product.k)


def _any(product: Product) -> Sequence[_Test]:
    """Of what one has to hold, if there is anything.

    Rows that fill the tallest tiles are streamed as fast from nearby, in panels as wide as several lines of the cache.
    """
    if not _is_wide(product):
        return ()
    return from_memory(product), (constant(1), product.m % groups(product)[0])


def _known(tests: Sequence[_Test]) -> list[bool | None]:
    """Which hold for every call, and for none."""
    spare = [(more - less).constant_value for less, more in tests]
    return [None if each is None else each >= 0 for each in spare]


def _most_rows(product: Product) -> int:
    """The most rows that are few."""
    return min(product.kernel.target.schedule.unpacked_rows or MOST_ROWS, MOST_ROWS)


def _is_wide(product: Product) -> bool:
    """Whether vectors are whole lines of the cache, and there are many registers."""
    size = byte_size(product.what.element)
    return product.tiles.lanes * size >= LINE_BYTES and product.kernel.target.vector_registers >= 32
