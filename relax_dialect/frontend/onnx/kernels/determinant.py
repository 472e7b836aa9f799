"""Determinants."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.frontend.onnx.kernels.blocks import spatial
from tir_dialect import te


def determinant(x: te.Tensor) -> te.Tensor:
    """The determinants of a batch of matrices: elimination, with the greatest element of a column as pivot."""
    batch, size = x.shape[:-2], x.shape[-1]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("det", *spatial(batch)) as at:
            a = b.alloc((size, size), x.dtype, "a")
            pivot, found = b.alloc((), "i64", "pivot"), b.alloc((), x.dtype, "found")
            with b.for_range(0, size, "i") as i, b.for_range(0, size, "j") as j:
                b.store(a, (i, j), ins[0][(*at, i, j)])
            b.store(found, (), te.const(1, x.dtype))
            with b.for_range(0, size, "k") as k:
                _pivot(b, a, k, pivot)
                place = b.let(te.cast(pivot[()], "index"), "place")
                with b.if_(te.logical_not(te.cast(place, "i64") == te.cast(k, "i64"))):
                    b.store(found, (), te.const(0, x.dtype) - found[()])
                    with b.for_range(0, size, "j") as j:
                        swapped = b.let(a[(k, j)], "swapped")
                        b.store(a, (k, j), a[(place, j)])
                        b.store(a, (place, j), swapped)
                b.store(found, (), found[()] * a[(k, k)])
                with b.if_(te.logical_or(a[(k, k)] > 0, a[(k, k)] < 0)), b.for_range(k + 1, size, "i") as i:
                    factor = b.let(a[(i, k)] / a[(k, k)], "factor")
                    with b.for_range(k, size, "j") as j:
                        b.store(a, (i, j), a[(i, j)] - factor * a[(k, j)])
            b.store(outs[0], at, found[()])

    return te.extern([(batch, x.dtype)], [x], body, name="det")[0]


def _pivot(b: te.ExternBuilder, a: te.Tensor, k: te.Expr, pivot: te.Tensor) -> None:
    """Stores the row, from `k` on, with the greatest element in column `k`."""
    b.store(pivot, (), te.cast(k, "i64"))
    with b.for_range(k + 1, a.shape[-1], "i") as i:
        best = a[(te.cast(pivot[()], "index"), k)]
        with b.if_(te.abs(a[(i, k)]) > te.abs(best)):
            b.store(pivot, (), te.cast(i, "i64"))
