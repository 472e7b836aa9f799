"""Reductions over axes that are data, and of no elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relax_dialect.frontend.onnx.manipulation import element_of
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv, product
from tir_dialect.dtypes import is_float

_REDUCERS: dict[str, Callable[..., te.Expr]] = {
    "max": te.max,
    "mean": te.sum,
    "min": te.min,
    "prod": te.prod,
    "sum": te.sum,
}


def marks(axes: te.Tensor, rank: int) -> te.Tensor:
    """1 for every axis that the tensor names, else 0."""
    r = te.reduce_axis(axes.shape[0], "r")

    def marked(i: te.Expr) -> te.Expr:
        named = te.floormod(te.cast(axes[r], "i64"), rank) == te.cast(i, "i64")
        return te.max(te.cast(named, "i64"), r)

    return te.compute((rank,), marked, name="marks")


def kept_shape(axes: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    """The shape with 1 at the axes."""
    marked = marks(axes, len(shape))
    return te.compute(
        (len(shape),),
        lambda *i: te.select(marked[i] == 1, te.const(1, "i64"), element_of(shape, i[0])),
        name="kept_shape",
    )


def shorter_shape(axes: te.Tensor, shape: Sequence[Dim], rank: int) -> te.Tensor:
    """The shape without the axes."""
    from relax_dialect.frontend.onnx.manipulation import without_marked

    sizes = te.compute((len(shape),), lambda *i: element_of(shape, i[0]), name="sizes")
    return te.extern([((rank,), "i64")], [marks(axes, len(shape)), sizes], without_marked, name="shorter_shape")[0]


def reduce_windows(x: te.Tensor, kept: Sequence[Dim], kind: str) -> te.Tensor:
    """A reduction to the dimensions `kept`, each of which is 1 or that of `x`."""
    extents = [floordiv(dim, new) if dim is not new else constant(1) for dim, new in zip(x.shape, kept, strict=True)]
    over = [te.reduce_axis(extent, f"r{at}") for at, extent in enumerate(extents)]
    narrow = str(x.dtype) in ("f16", "bf16")

    def reduced(*i: te.Expr) -> te.Expr:
        element = x[tuple(at + r for at, r in zip(i, over, strict=True))]
        return _REDUCERS[kind](te.cast(element, "f32") if narrow else element, over)

    totals = te.compute(kept, reduced, name="totals")

    def finished(*i: te.Expr) -> te.Expr:
        total = totals[i]
        if kind == "mean":
            count = te.cast(te.cast(product(extents), "index"), total.dtype)
            total = total / count if is_float(total.dtype) else te.truncdiv(total, count)
        return te.cast(total, x.dtype)

    return te.compute(kept, finished, name=f"reduce_{kind}")


def extreme_along(x: te.Tensor, axes: Sequence[int], kind: str) -> te.Tensor:
    """The greatest (`max`) or least element along axes, whose dimensions become 1; the identity where there is none."""
    over = {axis: te.reduce_axis(x.shape[axis], f"r{axis}") for axis in axes}
    shape = [constant(1) if axis in over else dim for axis, dim in enumerate(x.shape)]

    def extreme(*i: te.Expr) -> te.Expr:
        places = list(i)
        for axis, place in over.items():
            places[axis] = place
        return _REDUCERS[kind](x[tuple(places)], list(over.values()))

    return te.compute(shape, extreme, name=f"reduce_{kind}")
