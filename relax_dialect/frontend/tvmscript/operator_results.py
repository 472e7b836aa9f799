"""Where TVM's operators have other results than ours: more of them, or another kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import i64

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.struct_info.types import TensorType

Adapter = Callable[[Any, Mapping[str, Any]], object]
"""From our result and the arguments to TVM's result."""


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def _scalar_tensor(result: Any, arguments: Mapping[str, Any]) -> object:
    """The number of elements is a tensor of rank 0 there, and a prim value here."""
    return _op("full")([], result, i64)


def _with_statistics(result: Any, arguments: Mapping[str, Any]) -> object:
    """Outside of training the statistics stay what they are."""
    return (result, arguments["mean"], arguments["variance"])


def _with_mask(result: Any, arguments: Mapping[str, Any]) -> object:
    """Outside of training nothing is masked."""
    return (result, _op("ones_like")(arguments["x"]))


def _with_places(result: Any, arguments: Mapping[str, Any]) -> object:
    """Along one axis, the place of the median comes with it."""
    axes: list[int] = arguments.get("axes") or []
    x: Expr = arguments["x"]
    info = x.type
    if len(axes) != 1 or not isinstance(info, TensorType) or info.known_dims is None:
        return result
    length = info.known_dims[axes[0]]
    first = (length - 1) // 2
    places = _op("argsort")(x, axis=axes[0], dtype=i64)
    middle = _op("strided_slice")(places, axes, [first], [first + 1])
    return (result, middle if arguments.get("keepdims") else _op("squeeze")(middle, axes))


def _alone(result: Any, arguments: Mapping[str, Any]) -> object:
    """One result is no tuple."""
    items = cast("tuple[object, ...]", result) if isinstance(result, tuple) else (result,)
    return items[0] if len(items) == 1 else items


RESULTS: Mapping[str, Adapter] = {
    "median": _with_places,
    "nn.batch_norm": _with_statistics,
    "nn.dropout": _with_mask,
    "size": _scalar_tensor,
    "topk": _alone,
    "unique": _alone,
}
"""What has to be done to our results to get TVM's, by operator."""
