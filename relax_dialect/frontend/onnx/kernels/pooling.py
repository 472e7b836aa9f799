"""Pooling that is no relax operator: places of greatest elements, and norms."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.frontend.onnx.kernels.blocks import spatial
from relax_dialect.frontend.onnx.windows import WindowAttributes
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_float


def _place(windows: WindowAttributes, at: Sequence[te.Expr], r: Sequence[te.Expr]) -> list[te.Expr]:
    """The place in the data, perhaps outside, of a place of a window."""
    return [
        i * windows.strides[axis] + r[axis] * windows.dilations[axis] - windows.pads[axis] for axis, i in enumerate(at)
    ]


def _inside(place: Sequence[te.Expr], lengths: Sequence[Dim]) -> te.Expr:
    tests = [test for each, length in zip(place, lengths, strict=True) for test in (each >= 0, each < length)]
    return te.logical_and(*tests)


def _clamped(place: Sequence[te.Expr], lengths: Sequence[Dim]) -> list[te.Expr]:
    return [te.maximum(te.minimum(each, length - 1), 0) for each, length in zip(place, lengths, strict=True)]


def power_pool(x: te.Tensor, windows: WindowAttributes, extents: Sequence[Dim], p: int) -> te.Tensor:
    """The `p`-norm of each window."""
    over = [te.reduce_axis(size, f"r{at}") for at, size in enumerate(windows.sizes)]
    lengths, wide = x.shape[2:], "f64" if str(x.dtype) == "f64" else "f32"

    def total(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
        place = _place(windows, at, over)
        element = te.abs(te.cast(x[(n, c, *_clamped(place, lengths))], wide))
        return te.sum(te.select(_inside(place, lengths), te.pow(element, te.const(p, wide)), te.const(0, wide)), over)

    shape = (*x.shape[:2], *extents)
    totals = te.compute(shape, total, name="totals")
    return te.compute(shape, lambda *i: te.cast(te.pow(totals[i], te.const(1 / p, wide)), x.dtype), name="lp_pool")


def max_pool_places(x: te.Tensor, windows: WindowAttributes, extents: Sequence[Dim], by_column: bool) -> te.Tensor:
    """The place of the greatest element of each window in the flattened data; `by_column` counts columns first."""
    shape = (*x.shape[:2], *extents)
    lowest = te.min_value(x.dtype) if not is_float(x.dtype) else te.const(float("-inf"), x.dtype)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("max_pool_places", *spatial(shape)) as index:
            best, found = b.alloc((), x.dtype, "best"), b.alloc((), "i64", "found")
            b.store(best, (), lowest)
            b.store(found, (), -1)
            _search(b, x, windows, index, (best, found), by_column)
            b.store(outs[0], index, found[()])

    return te.extern([(shape, "i64")], [x], body, name="max_pool_places")[0]


def _search(
    b: te.ExternBuilder,
    x: te.Tensor,
    windows: WindowAttributes,
    index: Sequence[te.Expr],
    state: tuple[te.Tensor, te.Tensor],
    by_column: bool,
) -> None:
    """Looks through one window; `state` are the greatest element and its place."""
    from contextlib import ExitStack

    (best, found), lengths = state, x.shape[2:]
    with ExitStack() as stack:
        r = [stack.enter_context(b.for_range(0, size, f"r{at}")) for at, size in enumerate(windows.sizes)]
        place = _place(windows, index[2:], r)
        stack.enter_context(b.if_(_inside(place, lengths)))
        element = x[(*index[:2], *_clamped(place, lengths))]
        stack.enter_context(b.if_(te.logical_or(element > best[()], found[()] < 0)))
        b.store(best, (), element)
        flat = index[0] * x.shape[1] + index[1]
        pairs = list(zip(place, lengths, strict=True))
        volume = te.cast(te.const(0, "i64"), "index")
        for each, length in reversed(pairs) if by_column else pairs:
            volume = volume * length + each
        for length in lengths:
            flat = flat * length
        b.store(found, (), te.cast(flat + volume, "i64"))
