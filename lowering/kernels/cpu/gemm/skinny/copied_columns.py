"""Columns that lie along the sums, copied side by side: then they are streamed like others."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.shuffles import is_power_of_two
from lowering.kernels.cpu.gemm.operands import Matrix, lies_evenly
from lowering.kernels.cpu.gemm.product import Product
from lowering.kernels.cpu.gemm.results import can_store_tiles
from lowering.kernels.cpu.gemm.transposing import TransposingRoutine
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum, mod

COPIED_PER_TASK = 1 << 14
"""Elements: to copy so many takes longer than to wake a thread."""


def can_copy_columns(product: Product) -> bool:
    """Whether columns lie along the sums, and nothing but a product is computed from both operands as they lie."""
    what = product.what
    evenly = all(lies_evenly(product, *each) for each in ((what.rows, what.row), (what.columns, what.column)))
    along = product.is_contiguous(what.columns, what.reduced) and what.columns.panels is None and not what.outer
    return evenly and along and can_store_tiles(product) and is_power_of_two(product.tiles.lanes)


def copied_columns(product: Product, columns: Matrix, threads: Dim) -> Matrix:
    """Their copy `[depth, pitch]`: as many vectors as they need, an odd number, so that lines go to different sets."""
    code, lanes = product.code, product.tiles.lanes
    vectors = ceildiv(product.n, constant(lanes))
    pitch = constant(lanes) * (vectors + 1 - mod(vectors, constant(2)))
    room = pitch * constant(lanes) * ceildiv(product.k, constant(lanes))
    buffer = code.alloc([room], product.what.element, "copied_columns")
    pieces = maximum(minimum(floordiv(product.n * product.k, constant(COPIED_PER_TASK)), vectors), constant(1))
    each = columns.each if isinstance(columns.each, SSAValue) else code.index(columns.each)
    with shared_units(code, vectors, minimum(threads, pieces), whole=True) as units:
        sizes = [*units, *map(code.dim, (product.n, product.k)), columns.first, each, code.index(0), code.dim(pitch)]
        routine = TransposingRoutine(product.what.element, lanes)
        product.kernel.routines.call(code, routine, sizes, [columns.buffer, buffer])
    return Matrix(buffer, code.index(0), 1, code.dim(pitch), lanes)
