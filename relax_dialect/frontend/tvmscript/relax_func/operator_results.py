"""Where TVM's operators have other results than ours: more of them, or another kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.relax_func.blocked_layouts import resize2d, windowed
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


def _of_truth(name: str) -> Callable[..., object]:
    """A sum or product, also of truth values: those are counted, and what comes out is a truth value again."""

    def make(x: Expr, *, dtype: Attribute | None = None, **rest: Any) -> object:
        given = {} if dtype is None else {"dtype": dtype}
        if not isinstance(x.type, TensorType) or x.type.dtype != i1:
            return _op(name)(x, **rest, **given)
        counted = _op(name)(_op("astype")(x, dtype or i32), **rest)
        return counted if dtype is not None else _op("astype")(counted, i1)

    return make


def _multiply(x: object, y: object) -> object:
    """The product of truth values is whether both hold."""
    types = [each.type if isinstance(each, Expr) else None for each in (x, y)]
    truths = [isinstance(each, TensorType) and each.dtype == i1 for each in types]
    return _op("logical_and" if all(truths) else "multiply")(x, y)


def _affine(name: str) -> Callable[..., object]:
    """A normalisation; without `scale` the factors count as 1, without `center` what is added as 0."""

    def make(x: Expr, gamma: Expr, beta: Expr, *, center: bool = True, scale: bool = True, **rest: Any) -> object:
        factors = gamma if scale else _op("ones_like")(gamma)
        added = beta if center else _op("zeros_like")(beta)
        return _op(name)(x, factors, added, **rest)

    return make


def _take(x: Expr, indices: Any, *rest: Any, **named: Any) -> object:
    """A number as the place of one slice."""
    places = _op("full")([], indices, i64) if isinstance(indices, int) else indices
    return _op("take")(x, places, *rest, **named)


def _concat(inputs: Sequence[Expr], axis: int | None = 0) -> object:
    """Without an axis, vectors one behind the other."""
    return _op("concat")(inputs, axis or 0)


def _split(x: Expr, *, axis: int = 0, indices: Sequence[object] | None = None, **rest: Any) -> object:
    """Parts from one index to the next; they are empty where an index is behind the next, or before the beginning."""
    known = [each for each in indices or () if isinstance(each, int)]
    if indices is None or len(known) != len(indices):
        return _op("split")(x, axis=axis, **rest, **({} if indices is None else {"indices": indices}))
    starts = [0, *(max(each, 0) for each in known)]
    if starts == sorted(starts) and min(known, default=0) >= 0:
        return _op("split")(x, axis=axis, indices=indices, **rest)
    ends = [max(start, end) for start, end in pairwise([*starts, _END])]
    return tuple(_op("strided_slice")(x, [axis], [at], [end]) for at, end in zip(starts, ends, strict=True))


_END = (1 << 63) - 1
"""Behind every element."""


def _squeeze(x: Expr, axes: Sequence[int] | None = None) -> Expr:
    """Dimensions that are known not to be 1 stay, as in PyTorch."""
    dims = x.type.dims if isinstance(x.type, TensorType) else None
    if axes is None or dims is None:
        return _op("squeeze")(x, axes)
    ones = [axis for axis in axes if not -len(dims) <= axis < len(dims) or _may_be_one(dims[axis])]
    return _op("squeeze")(x, ones) if ones or not axes else x


def _may_be_one(dim: Dim | None) -> bool:
    return dim is None or dim.constant_value in (None, 1)


def _adaptive_pool(name: str) -> Callable[..., object]:
    """Without a size of its own the result has the data's: each window is one element."""

    def make(x: Expr, output_size: Sequence[int] | None = None, **rest: Any) -> object:
        return x if output_size is None else windowed(name, "layout")(x, output_size=output_size, **rest)

    return make


_RANKS = (1, 2, 3)
_ADAPTIVE = [f"nn.adaptive_avg_pool{count}d" for count in _RANKS]
_POOLS = [f"nn.{kind}_pool{count}d" for kind in ("avg", "max") for count in _RANKS]
_CONVOLUTIONS = [f"nn.conv{count}d{kind}" for kind in ("", "_transpose") for count in _RANKS]

FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "concat": _concat,
    "image.resize2d": resize2d,
    "median": _median,
    "multiply": _multiply,
    "nn.batch_norm": _batch_norm,
    **{name: _affine(name) for name in ("nn.group_norm", "nn.instance_norm")},
    "split": _split,
    "squeeze": _squeeze,
    "take": _take,
    **{name: _of_truth(name) for name in ("cumprod", "cumsum", "prod", "sum")},
    **{name: _adaptive_pool(name) for name in _ADAPTIVE},
    **{name: windowed(name, "layout") for name in _POOLS},
    **{name: windowed(name, "data_layout") for name in _CONVOLUTIONS},
}
"""What stands for an operator that takes other arguments than ours."""

RESULTS: Mapping[str, Adapter] = {
    "nn.dropout": _with_mask,
    "size": _scalar_tensor,
    "topk": _alone,
    "unique": _alone,
}
"""What has to be done to our results to get TVM's, by operator."""
