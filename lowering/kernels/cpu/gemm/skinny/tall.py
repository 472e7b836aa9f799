"""Few columns for rows that come from memory: all columns are packed first, so that rows are read only once.

A strip of rows, while it is in L1, is multiplied with all panels, and the next strip is prefetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.vectorization import masks_are_registers
from lowering.kernels.cpu.gemm.cache_lines import line_starts
from lowering.kernels.cpu.gemm.last_columns import main_columns, narrow_step
from lowering.kernels.cpu.gemm.last_columns import panels as panels_of
from lowering.kernels.cpu.gemm.micro_kernel import micro_kernel
from lowering.kernels.cpu.gemm.product import Product
from lowering.kernels.cpu.gemm.results import can_store_tiles
from lowering.kernels.cpu.gemm.skinny.copied_columns import can_copy_columns
from lowering.kernels.cpu.gemm.skinny.tall_routine import PackingRoutine, TallRoutine
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.ops.memory import LoadOp

LEAST_ROWS, MOST_COLUMNS = 64, 64
"""Fewer rows do not pay for packed columns, and with more columns packed rows are used often enough."""
ROWS_PER_COLUMN, LOW_TILE = 8, 6
"""But so many rows for each column pay for more columns too, in strips of so few rows that one set of the first-level
cache has room for all of them; higher ones, beside lines of several cache lines, were not measured. Where the number of
rows is known only: another way through every product would take longer to compile than it gains."""
PACKED_PER_TASK = 1 << 14
"""Elements: to pack so many takes longer than to wake a thread."""
COLUMNS_PART, ROWS_PART = 2, 4
"""Packed columns take at most, and rows more than, such a part of the second-level cache."""


def is_tall(product: Product) -> bool | None:
    """Whether the cache holds all columns, but not the rows, and all lie in memory; `None` if that depends."""
    what = product.what
    plain = all(
        isinstance(each.value.owner, LoadOp) and each.value.type == what.element for each in (what.rows, what.columns)
    )
    beside = product.is_contiguous(what.columns, what.column) or can_copy_columns(product)
    if not plain or not beside or not product.is_contiguous(what.rows, what.reduced):
        return False
    if what.batch or what.outer or what.columns.panels or product.is_exchanged or not can_store_tiles(product):
        return False
    known = [(more - less).constant_value for less, more in _tests(product)]
    if any(each is not None and each < 0 for each in known):
        return False
    return None if None in known else True


def _tests(product: Product) -> Sequence[tuple[Dim, Dim]]:
    """What has to be at most something else."""
    m, n, k, width = product.m, product.n, product.k, product.tiles.width
    room = product.kernel.target.l2_bytes // byte_size(product.what.element)
    columns = ceildiv(n, constant(width)) * width * k
    rows, most = m.constant_value, MOST_COLUMNS
    if rows is not None and len(line_starts(product)) == 1 and product.tiles.rows <= LOW_TILE:
        most = max(most, rows // ROWS_PER_COLUMN)
    fit = (n, constant(most)), (columns, constant(room // COLUMNS_PART))
    return *fit, (constant(LEAST_ROWS), m), (constant(room // ROWS_PART), m * k)


def is_tall_here(product: Product) -> SSAValue:
    """The same in a call."""
    code = product.code
    return reduce(code.both, (code.compare("sle", code.dim(less), code.dim(more)) for less, more in _tests(product)))


def emit_tall(
    product: Product, layout: Sequence[SSAValue], buffers: Sequence[SSAValue], height: int, threads: Dim
) -> None:
    """The product by strips of so many rows.

    The layout is the first element of the rows, the columns and the output, each with how far apart lines are.
    """
    code, tiles = product.code, product.tiles
    (row, row_each, column, column_step, out, out_each), (rows, columns, output) = layout, buffers
    step = narrow_step(product)
    product_panels, strips = panels_of(product, step), ceildiv(product.m, constant(height))
    room = product_panels * product.k * tiles.width
    pieces = maximum(minimum(floordiv(room, constant(PACKED_PER_TASK)), product_panels), constant(1))
    packed = code.value(FlattenOp(code.alloc([room], product.what.element, "packed_columns")))
    n = code.dim(main_columns(product, step))
    panels, k, m = (code.dim(size) for size in (product_panels, product.k, product.m))
    packing = PackingRoutine(product.what.element, tiles.lanes, tiles.vectors)
    with shared_units(code, product_panels, minimum(threads, pieces), whole=True) as units:
        sizes = [*units, k, n, column, column_step]
        product.kernel.routines.call(code, packing, sizes, [columns, packed])
    routine, buffers = (
        TallRoutine(micro_kernel(product, height), masks_are_registers(product.kernel)),
        [rows, packed, output],
    )
    tasks = minimum(threads, floordiv(strips, constant(2)))  # each has two strips, as the routine needs
    with shared_units(code, strips, tasks, whole=True) as units:
        sizes = [*units, panels, k, m, n, row, row_each, out, out_each]
        product.kernel.routines.call(code, routine, sizes, buffers)
