"""Tiles with fewer columns than a panel, for the last one, which may have few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.last_columns import main_columns, narrow_step
from lowering.kernels.cpu.gemm.micro_kernel import MicroKernel
from lowering.kernels.cpu.gemm.product import Product
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

Emit = Callable[[MicroKernel, SSAValue], None]
"""What is done with a tile, whose first column in the panel is the value."""


def has_narrow_panels(product: Product) -> bool:
    """Whether the last panel may have fewer columns."""
    known = main_columns(product, narrow_step(product)).constant_value
    return known is None or known % product.tiles.width != 0


def in_narrow_tiles(code: Code, kind: MicroKernel, count: SSAValue, emit: Emit) -> None:
    """What is done with `count` columns of a panel, or all of them if there are more: in a tile with fewer vectors if
    that has them, and in halves of a vector where the processor multiplies two at a time.

    Behind a narrow tile there are no columns, of which prefetches would take as long as loads.
    """
    half, zero = _half(kind), code.index(0)
    if kind.vectors > 1:
        fewer = replace(kind, vectors=kind.vectors - 1, prefetches=())
        last = half.lanes if half is not None and fewer.vectors == 1 else 0
        with code.when(code.compare("sle", count, fewer.vectors * fewer.lanes + last)) as branch:
            if last:
                _in_two(code, fewer, count, emit)
            else:
                in_narrow_tiles(code, fewer, count, emit)
        with code.otherwise(branch):
            emit(kind, zero)
    elif half is None:
        emit(kind, zero)
    else:
        with code.when(code.compare("sle", count, half.lanes)) as branch:
            emit(half, zero)
        with code.otherwise(branch):
            emit(kind, zero)


def _in_two(code: Code, kind: MicroKernel, count: SSAValue, emit: Emit) -> None:
    """The same for a vector and half of one, if there are columns for more than a vector."""
    pieces = code.select(code.compare("sgt", count, kind.lanes), code.index(2), code.index(1))
    with code.loop(pieces, "piece", vectorize=False) as piece:
        first = code.mul(piece, kind.lanes)
        in_narrow_tiles(code, kind, code.sub(count, first), lambda kind, at: emit(kind, code.add(first, at)))


def _half(kind: MicroKernel) -> MicroKernel | None:
    """A tile of half a vector, where a whole one is a cache line, so that both halves are multiplied in turn."""
    if kind.lanes * byte_size(kind.dtype) < LINE_BYTES:
        return None
    return replace(kind, vectors=1, lanes=kind.lanes // 2, prefetches=())
