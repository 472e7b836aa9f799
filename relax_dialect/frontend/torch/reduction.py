"""Reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import extreme
from relax_dialect.frontend.torch.binary import ordered, truth
from relax_dialect.frontend.torch.manipulation import scalar_as_vector
from relax_dialect.frontend.torch.node import Node, Result, converts
from tir_dialect import te
from tir_dialect.dims import product
from tir_dialect.dtypes import is_bool, is_float

Reduction = Callable[..., Expr]

_SAME: dict[str, Reduction] = {
    "amax": op.max,
    "amin": op.min,
    "mean": op.mean,
    "prod": op.prod,
    "sum": op.sum,
}


@converts(
    "aten.amax.default",
    "aten.amin.default",
    "aten.mean.default",
    "aten.mean.dim",
    "aten.prod.default",
    "aten.prod.dim_int",
    "aten.sum.default",
    "aten.sum.dim_IntList",
)
def reduce(node: Node) -> Result:
    """The relax operator of the same meaning, in the dtype of the result; of truth values those are 0 and 1."""
    if is_bool(node.out_dtype()):
        bits = op.astype(truth(node, node.tensor("self")), "ui8")
        return truth(node, over(node, op.min if node.name in ("amin", "prod") else op.max, bits))
    return over(node, _SAME[node.name], node.tensor("self", node.out_dtype()))


def over(node: Node, function: Reduction, x: Expr) -> Expr:
    """A reduction of a tensor over the axes of a node."""
    return function(x, node.axes(), keepdims=node.flag("keepdim")) if node.rank() else x


@converts("aten.max.default", "aten.min.default")
def extreme_of_all(node: Node) -> Result:
    """The greatest or least of all elements."""
    return _extreme(node, op.max if node.name == "max" else op.min)


def _extreme(node: Node, function: Reduction) -> Expr:
    made = over(node, function, ordered(node.tensor("self")))
    return truth(node, made) if is_bool(node.out_dtype()) else made


@converts("aten.max.dim", "aten.min.dim")
@scalar_as_vector
def extreme_and_index(node: Node) -> Result:
    """The greatest or least elements along an axis, and where they are."""
    axis, keep = node.axis(), node.flag("keepdim")
    values, positions = (op.max, op.argmax) if node.name == "max" else (op.min, op.argmin)
    where = positions(ordered(node.tensor("self")), axis, keepdims=keep) if node.wants(1) else None
    return _extreme(node, values), where


@converts(
    *(f"aten.{name}.{overload}" for name in ("any", "all") for overload in ("default", "dim", "dims")),
    "aten._is_any_true.default",
    "aten._is_all_true.default",
)
def any_(node: Node) -> Result:
    """Whether some, or all, elements are not zero."""
    x = truth(node, node.tensor("self"))
    if not node.rank():
        return node.matched(x, node.out_dtype())
    kind = "max" if "any" in node.name else "min"  # of none 0, and 255
    whole = extreme(node.bb, op.astype(x, "ui8"), node.axes(), kind, keepdims=node.flag("keepdim"))
    return node.matched(truth(node, whole), node.out_dtype())


@converts(*(f"aten.{name}.{overload}" for name in ("var", "std") for overload in ("correction", "dim", "default")))
def variance(node: Node) -> Result:
    """The variance, or its root."""
    made = _variance(node)
    return op.sqrt(made) if node.name == "std" else made


@converts("aten.var_mean.correction", "aten.std_mean.correction")
def variance_and_mean(node: Node) -> Result:
    """The variance or its root, and the mean."""
    made = _variance(node)
    return op.sqrt(made) if node.name == "std_mean" else made, over(node, op.mean, node.tensor("self"))


def _variance(node: Node) -> Expr:
    """The sum of squared distances to the mean, divided by the count less the correction."""
    x = node.tensor("self")
    made = over(node, op.variance, x)
    correction = float(node.flag("unbiased")) if "unbiased" in node.arguments else node.number("correction", 1.0)
    if correction == 0:
        return made
    dims = [node.shape()[axis] for axis in node.axes()]
    count = node.graph.dimension(product(dims), node.dtype())
    rest = op.maximum(op.subtract(count, node.like(correction, x)), node.like(0, x))
    return op.multiply(made, op.divide(count, rest))


@converts("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def norm(node: Node) -> Result:
    """The `p`-norm of vectors."""
    name = "ord" if "ord" in node.arguments else "p"
    x = op.abs(node.tensor("self", node.out_dtype()))
    return _p_norm(node, node.number(name, 2.0), x, lambda function, x: over(node, function, x))


def _p_norm(node: Node, p: float, x: Expr, reduced: Callable[[Reduction, Expr], Expr]) -> Expr:
    """The `p`-norm of magnitudes, which `reduced` reduces; of short floats in `f32`, as their powers are large."""
    if math.isinf(p):
        return reduced(op.max if p > 0 else op.min, x)
    if str(x.dtype) in ("f16", "bf16"):
        return op.astype(_p_norm(node, p, op.astype(x, f32), reduced), x.dtype or node.out_dtype())
    if p == 0:
        return reduced(op.sum, op.astype(op.not_equal(x, node.like(0, x)), x.dtype or node.out_dtype()))
    if p == 1:
        return reduced(op.sum, x)
    if p == 2:
        return op.sqrt(reduced(op.sum, op.multiply(x, x)))
    return op.power(reduced(op.sum, op.power(x, node.like(p, x))), node.like(1 / p, x))


@converts("aten.dist.default")
def dist(node: Node) -> Result:
    """The `p`-norm of a difference."""
    x, y = node.tensor("self", node.out_dtype()), node.tensor("other", node.out_dtype())
    return _p_norm(node, node.number("p", 2.0), op.abs(op.subtract(x, y)), lambda function, x: function(x))


@converts("aten.logsumexp.default")
def logsumexp(node: Node) -> Result:
    """`log(sum(exp(x)))`, without overflow."""
    x, axes = node.tensor("self", node.out_dtype()), node.axes()
    if not node.rank():
        return x
    most = extreme(node.bb, x, axes, "max", keepdims=True)
    most = op.where(op.isfinite(most), most, node.like(0, x))
    total = op.log(op.sum(op.exp(op.subtract(x, most)), axes, keepdims=node.flag("keepdim")))
    return op.add(total, most if node.flag("keepdim") else op.squeeze(most, axes))


@converts("aten.cumsum.default", "aten.cumprod.default")
def cumulative(node: Node) -> Result:
    """Running sums or products along an axis."""
    x = node.tensor("self", node.out_dtype())
    return (op.cumsum if node.name == "cumsum" else op.cumprod)(x, node.axis()) if node.rank() else x


@converts("aten.cummax.default", "aten.cummin.default")
def running_extreme(node: Node) -> Result:
    """The greatest or least element so far along an axis, and where the last such is; after one that is NaN all are."""
    if not node.rank():
        return [node.tensor("self"), op.zeros([], i64)]
    greatest = node.name == "cummax"

    def kernel(x: te.Tensor) -> tuple[te.Tensor, ...]:
        values, positions = te.placeholder(x.shape, x.dtype), te.placeholder(x.shape, "i64")
        taken = te.compute(x.shape, lambda *i: _is_taken(x[i], values[_before(i)], greatest), name="taken")
        firsts = [1, *x.shape[1:]]
        made = te.scan(
            [te.compute(firsts, lambda *i: x[i]), te.compute(firsts, lambda *_: te.const(0, "i64"))],
            [
                te.compute(x.shape, lambda *i: te.select(taken[i], x[i], values[_before(i)])),
                te.compute(x.shape, lambda *i: te.select(taken[i], te.cast(i[0], "i64"), positions[_before(i)])),
            ],
            [values, positions],
        )
        assert isinstance(made, tuple)
        return made

    return along_first(node, kernel, node.tensor("self"))


def _before(index: Sequence[te.Expr]) -> tuple[te.Expr, ...]:
    """The index of the element before along the first axis."""
    return index[0] - 1, *index[1:]


def _is_taken(value: te.Expr, before: te.Expr, greatest: bool) -> te.Expr:
    """Whether an element is the extreme one of all so far."""
    is_beyond = value >= before if greatest else value <= before
    if not is_float(value.dtype):
        return is_beyond
    return te.any(te.isnan(value), te.all(te.logical_not(te.isnan(before)), is_beyond))


@converts("aten.logcumsumexp.default")
def logcumsumexp(node: Node) -> Result:
    """`log(cumsum(exp(x)))`, without overflow."""
    if not node.rank():
        return node.tensor("self")

    def kernel(x: te.Tensor) -> te.Tensor:
        state = te.placeholder(x.shape, x.dtype)
        first = te.compute([1, *x.shape[1:]], lambda *i: x[i])
        update = te.compute(x.shape, lambda *i: te.logaddexp(state[_before(i)], x[i]))
        made = te.scan(first, update, state)
        assert isinstance(made, te.Tensor)
        return made

    return along_first(node, kernel, node.tensor("self"))[0]


def along_first(node: Node, kernel: Callable[[te.Tensor], te.Tensor | tuple[te.Tensor, ...]], x: Expr) -> list[Expr]:
    """The results of a kernel that works along the first axis, for which that of the node is put."""
    rank, axis = node.rank(), node.axis()
    order = [axis, *(each for each in range(rank) if each != axis)]
    back = [order.index(each) for each in range(rank)]
    made = node.bb.emit_te(kernel, op.permute_dims(x, order) if axis else x, name_hint=node.name)
    results = [made] if isinstance(made, Expr) else list(made)
    return [op.permute_dims(each, back) if axis else each for each in results]
