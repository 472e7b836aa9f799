"""Reductions over axes, which may be data; running sums and products; search and order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import distinct_axes, extreme, indices_within
from relax_dialect.frontend.onnx.manipulation import element_of, without_marked
from relax_dialect.frontend.onnx.node import Node, Result, converts, from_front
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv, product
from tir_dialect.dtypes import is_bool, is_float

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


Reduce = Callable[[Expr, str], Expr]
"""Reduces a tensor, by the name of the function; the reduced dimensions become 1."""


@converts(
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)
def reduction(node: Node) -> Result:
    """A function of the elements along axes; all axes if none are named."""
    axes, keep = _Axes.of(node), bool(node.integer("keepdims", 1))
    if axes.static == () and node.integer("noop_with_empty_axes"):
        # The reduction over no axes: what happens to each element.
        return _reduced(node, node.op_type.removeprefix("Reduce"), node[0], lambda x, kind: x)
    x = node[0]
    kind = node.op_type.removeprefix("Reduce")
    if is_bool(node.dtype()):
        return op.not_equal(axes.finish(_reduced(node, kind, op.astype(x, "ui8"), axes.reduce), keep), 0)
    return axes.finish(_reduced(node, kind, x, axes.reduce), keep)


def _reduced(node: Node, kind: str, x: Expr, reduce: Reduce) -> Expr:
    if kind == "L1":
        return reduce(op.abs(x), "sum")
    if kind in ("L2", "SumSquare"):
        total = reduce(op.multiply(x, x), "sum")
        return total if kind == "SumSquare" else _in_floats(node, total, op.sqrt)
    if kind == "LogSum":
        return _in_floats(node, reduce(x, "sum"), op.log)
    if kind == "LogSumExp":
        # `log(sum(exp(x)))`, relative to the greatest element if that is finite.
        if not is_float(node.dtype()):
            return op.astype(op.log(reduce(op.exp(op.astype(x, "f64")), "sum")), node.dtype())
        top = reduce(x, "max")
        top = op.where(op.isfinite(top), top, node.like(0))
        return op.add(op.log(reduce(op.exp(op.subtract(x, top)), "sum")), top)
    return reduce(x, kind.lower())


def _in_floats(node: Node, x: Expr, function: Callable[[Expr], Expr]) -> Expr:
    """A function of floating-point numbers; integers are converted for it."""
    dtype = node.dtype()
    return function(x) if is_float(dtype) else op.astype(function(op.astype(x, "f64")), dtype)


@dataclass
class _Axes:
    """The axes of a reduction: known ones, or a tensor."""

    node: Node
    static: tuple[int, ...] | None
    """The known axes, counted from the front; none stands for all of them, `None` if they are data."""

    kept: Sequence[Dim] = ()
    """The dimensions of the result, 1 where they are reduced, if the axes are data."""

    @staticmethod
    def of(node: Node) -> _Axes:
        """The axes of a node; of a scalar, for which exporters of PyTorch say the axis 0 or -1, there are none."""
        if not node.has(1):
            found = node.integers("axes")
            if node.version >= 18 or (node.version >= 13 and node.op_type == "ReduceSum"):
                found = None
        elif node.shape(1)[0].constant_value == 0:
            found = ()
        else:
            found = node.ints(1)
            if found is None:
                node.length(1)
                hints = node.hinted_dims(node.rank()) if node.integer("keepdims", 1) else None
                axes = indices_within(node.bb, node[1], [constant(node.rank())], f"'{node.op_type}' axes", "the rank")
                shape = node.te(lambda axes: kept_shape(axes, node.shape()), axes, name="kept_shape")
                kept = node.run_time_dims(shape, hints)
                known = hints is not None and all(dim.is_constant for dim in (*node.shape(), *kept))
                if known:
                    pairs = enumerate(zip(node.shape(), kept, strict=True))
                    axes = tuple(at for at, (old, new) in pairs if old is not new)
                    return _Axes(node, axes) if axes else _Axes(node, None, kept)
                return _Axes(node, None, kept)
        if not node.rank() and set(found or ()) <= {0, -1}:
            return _Axes(node, ())
        return _Axes(node, tuple(from_front(axis, node.rank()) for axis in found or ()))

    def reduce(self, x: Expr, kind: str) -> Expr:
        """A reduction whose reduced dimensions become 1."""
        if self.static is None:
            return self.node.te(lambda x: reduce_windows(x, self.kept, kind), x, name=f"reduce_{kind}")
        axes = self.static or tuple(range(self.node.rank()))
        if kind == "max" or kind == "min":
            return extreme(self.node.bb, x, axes, kind, keepdims=True)
        if kind == "mean" and not is_float(self.node.dtype()):
            count = product([self.node.shape()[axis] for axis in axes])
            number = op.astype(op.reshape(op.shape_to_tensor([count]), []), self.node.dtype())
            return op.divide(op.sum(x, axes, keepdims=True), number)
        return getattr(op, kind)(x, axes, keepdims=True)

    def finish(self, reduced: Expr, keep: bool) -> Expr:
        """The result: without the reduced dimensions, unless they are kept."""
        if keep:
            return reduced
        if self.static is not None:
            return op.squeeze(reduced, self.static or tuple(range(self.node.rank())))
        node = self.node
        rank = node.rank() - node.length(1)
        axes = distinct_axes(node.bb, node[1], node.rank(), f"'{node.op_type}'")
        shape = node.te(lambda axes: shorter_shape(axes, node.shape(), rank), axes, name="reduced_shape")
        return op.reshape(reduced, node.run_time_dims(shape, node.hinted_dims(rank)))


@converts("CumSum", "CumProd")
def running(node: Node) -> Result:
    """Running sums or products along an axis, which may be data."""
    known = node.ints(1)
    if known is not None:
        return _running(node, from_front(known[0], node.rank()))
    axis = node[1] if node.rank(1) == 0 else op.reshape(node[1], [])
    return switch(node, op.astype(axis, "i64"), lambda at: _running(node, at))


def _running(node: Node, axis: int) -> Expr:
    x, reverse = node[0], bool(node.integer("reverse"))
    function = op.cumsum if node.op_type == "CumSum" else op.cumprod
    turned = op.flip(x, axis) if reverse else x
    made = function(turned, axis, dtype=node.dtype(), exclusive=bool(node.integer("exclusive")))
    return op.flip(made, axis) if reverse else made


def switch(node: Node, axis: Expr, make: Callable[[int], Expr]) -> Expr:
    """What `make` makes of the axis that a scalar names at run time; all have to be of one type."""
    node.graph.require_control_flow()
    rank = node.rank()
    axis = indices_within(node.bb, axis, [constant(rank)], f"'{node.op_type}' axis", "the rank")

    def choose(at: int) -> Expr:
        if at == rank - 1:
            return make(at)
        with node.bb.if_(op.logical_or(op.equal(axis, at), op.equal(axis, at - rank))) as branch:
            with branch.then():
                node.bb.yield_(make(at))
            with branch.otherwise():
                node.bb.yield_(choose(at + 1))
        return branch.result

    return choose(0)


@converts("ArgMax", "ArgMin")
def arg(node: Node) -> Result:
    """The index of the greatest or least element, the first or the last one."""
    function = op.argmax if node.op_type == "ArgMax" else op.argmin
    axis, keep = node.axis(), bool(node.integer("keepdims", 1))
    if not node.integer("select_last_index"):
        return function(node[0], axis, keepdims=keep)
    found = function(op.flip(node[0], axis), axis, keepdims=keep)
    return op.subtract(_last(node, axis), found)


def _last(node: Node, axis: int) -> Expr:
    """The last position along an axis."""
    length = node.shape()[axis]
    if length.constant_value is not None:
        return node.bb.const(length.constant_value - 1, "i64")
    return op.reshape(op.shape_to_tensor([length - 1]), [])


@converts("TopK")
def topk(node: Node) -> Result:
    """The first `k` elements along an axis in order, and their positions."""
    axis = node.axis(default=-1)
    if not node.has(1):
        k = constant(node.integer("k"))
    else:
        known = node.dims(1)
        if known is not None:
            k = known[0]
        else:
            tensor = node[1] if node.rank(1) == 1 else op.reshape(node[1], [1])
            k = node.run_time_dims(tensor, node.hinted_dims(node.rank())[axis : axis + 1])[0]
    return op.topk(node[0], k, axis, smallest=not node.integer("largest", 1), dtype="i64")


@converts("NonZero")
def nonzero(node: Node) -> Result:
    """The indices of elements that are not zero: one row per dimension."""
    return op.nonzero(node[0])


@converts("Unique")
def unique(node: Node) -> Result:
    """Different elements or slices, their first positions, and how often they occur; sorted, or in their order."""
    return unique_elements(node)


def unique_elements(node: Node) -> Sequence[Expr]:
    """The four results of `Unique`."""
    axis = node.attributes.get("axis")
    made = op.unique(
        node[0] if axis is not None or node.rank() == 1 else op.flatten(node[0]),
        node.axis() if axis is not None else None,
        sorted=bool(node.integer("sorted", 1)),
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    values, first, inverse, counts = (node.graph.settled(each, None) for each in made)
    return values, first, op.flatten(inverse) if inverse.ndim != 1 else inverse, counts
