"""Where TVM's operators have other results than ours: more of them, or another kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import i64

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, product

Adapter = Callable[[Any, Mapping[str, Any]], object]
"""From our result and the arguments to TVM's result."""


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def _scalar_tensor(result: Any, arguments: Mapping[str, Any]) -> object:
    """The number of elements is a tensor of rank 0 there, and a prim value here."""
    return _op("full")([], result, i64)


def _with_mask(result: Any, arguments: Mapping[str, Any]) -> object:
    """Outside of training nothing is masked."""
    return (result, _op("ones_like")(arguments["x"]))


def _alone(result: Any, arguments: Mapping[str, Any]) -> object:
    """One result is no tuple."""
    items = cast("tuple[object, ...]", result) if isinstance(result, tuple) else (result,)
    return items[0] if len(items) == 1 else items


def _batch_norm(
    x: Expr,
    gamma: Expr,
    beta: Expr,
    mean: Expr,
    variance: Expr,
    *,
    momentum: float = 0.1,
    training: Any = True,
    **rest: Any,
) -> tuple[Expr, Expr, Expr]:
    """With the statistics of the batch in training, and what the running statistics become; else with those given."""
    normalize = _op("nn.batch_norm")
    if not training:
        return normalize(x, gamma, beta, mean, variance, **rest), mean, variance
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if rank is None:
        raise ValueError("R.nn.batch_norm in training expected data of known rank; write training=False for inference")
    axes = [axis for axis in range(rank) if axis != rest.get("axis", 1) % rank]
    found = [_op(name)(x, axes) for name in ("mean", "variance")]
    running = [(1 - momentum) * old + momentum * new for old, new in zip((mean, variance), found, strict=True)]
    return normalize(x, gamma, beta, *found, **rest), running[0], running[1]


def _median(x: Expr, axes: Sequence[int] | None = None, *, keepdims: bool = False) -> object:
    """The lower of two middle elements; along an axis its place comes with it."""
    dims = x.type.known_dims if isinstance(x.type, TensorType) else None
    if dims is None or len(axes or ()) > 1:
        raise ValueError("R.median expected data of known dimensions, and one axis or none")
    if not axes:
        value, _ = _middle(_op("flatten")(x), product(dims), 0)
        return _op("reshape")(value, [1] * len(dims) if keepdims else [])
    found = _middle(x, dims[axes[0]], axes[0])
    return found if keepdims else tuple(_op("squeeze")(each, axes) for each in found)


def _middle(x: Expr, length: Dim, axis: int) -> tuple[Expr, Expr]:
    """The middle of an ordering along an axis, and its place."""
    first = (length - 1) // 2
    places = _op("strided_slice")(_op("argsort")(x, axis=axis, dtype=i64), [axis], [first], [first + 1])
    return _op("gather_elements")(x, places, axis=axis), places


FUNCTIONS: Mapping[str, Callable[..., object]] = {"median": _median, "nn.batch_norm": _batch_norm}
"""What stands for an operator that takes other arguments than ours."""

RESULTS: Mapping[str, Adapter] = {
    "nn.dropout": _with_mask,
    "size": _scalar_tensor,
    "topk": _alone,
    "unique": _alone,
}
"""What has to be done to our results to get TVM's, by operator."""
