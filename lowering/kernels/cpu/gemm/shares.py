"""How a product is partitioned among threads: as a grid of parts of its rows and parts of its columns.

Each task packs what it needs for itself, into the memory that it used in the call before, so threads neither wait for
each other nor fetch packed lines from each other's caches: where cores do not share a last-level cache, that took
longer than packing twice.
"""

from __future__ import annotations

from lowering.kernels.cpu.gemm.product import Product
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum

PRODUCTS_PER_TASK = 3 << 17
"""So few take some four microseconds; to wake a thread for less does not pay."""
WEIGHTS_PER_TASK = 1 << 17
"""Half a megabyte, which takes some thirty microseconds to come."""
UNITS_PER_TASK = 64
"""With fewer strips or panels in a task, what it packs takes more than half a per cent of its time."""
TASKS_PER_THREAD = 4
"""More tasks than threads, where they are long, so that a thread that is late leaves work to the others."""
MOST = 1 << 20
"""More parts than there are."""
STRIPS_PER_PANEL = 2
"""With more strips than that for each panel, rows are shared out: else they are packed for each part of the columns."""
UNEVEN = 20
"""Where a row of a panel is a single cache line, far from the next, panels take longer to pack: then columns of square
products are shared out too. But so many strips less, since parts of few panels are uneven."""


def threads_for(product: Product) -> Dim:
    """How many threads have enough to do in one batch."""
    threads = product.threads(PRODUCTS_PER_TASK)
    if product.what.columns.panels is not None:  # few rows wait for memory, which threads do side by side
        least = product.threads(WEIGHTS_PER_TASK, product.n * product.rounds * product.k)
        threads = maximum(threads, least)
    batches = maximum(product.size(product.what.batch), constant(1))
    return ceildiv(threads, batches)


def shares(threads: Dim, strips: Dim, panels: Dim, given: bool, square: int = 0) -> tuple[Dim, Dim]:
    """In how many parts the strips of rows and the panels of columns are shared out.

    Panels that are given are read once by a single thread, if they suffice. A square product has `square` strips for
    each panel, where a row of a panel is one cache line.
    """
    one = constant(1)
    strips, panels = maximum(strips, one), maximum(panels, one)
    most = STRIPS_PER_PANEL * panels
    if square > STRIPS_PER_PANEL:
        most = maximum(most, square * panels - UNEVEN)
    spare = constant(-1) if given else strips - most
    columns = _unless_above(spare, minimum(_tasks(threads, panels), panels))
    of_rows = _unless_above(-1 - spare, minimum(_tasks(threads, strips), strips))
    return minimum(maximum(of_rows, ceildiv(threads, columns)), strips), columns


def _unless_above(number: Dim, many: Dim) -> Dim:
    """`many`, which is at least 1, unless a number is not negative: then 1. Short where a sum of products is not."""
    return maximum(minimum(many, -MOST * number), constant(1))


def _tasks(threads: Dim, units: Dim) -> Dim:
    """So many tasks that each thread has equally many."""
    one = constant(1)
    several = 1 + (TASKS_PER_THREAD - 1) * minimum(threads - 1, one)
    return threads * maximum(minimum(floordiv(units, UNITS_PER_TASK * threads), several), one)
