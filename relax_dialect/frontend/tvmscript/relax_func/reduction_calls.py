"""Sums that undo broadcasting, and windows of signals: operators of TVM's that are a case of ours."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import f32

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.static import describe
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, constant

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def _collapse_like(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.collapse_sum_like(x, y)`."""
    given = Arguments(reader.source, node, "R.collapse_sum_like", "data collapse_target")
    return _collapse(reader, node, given, reader.read(given.require("collapse_target")))


def _collapse_to(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.collapse_sum_to(x, shape)`."""
    given = Arguments(reader.source, node, "R.collapse_sum_to", "data shape")
    return _collapse(reader, node, given, reader.value(given.require("shape")))


def _collapse(reader: ExpressionReader, node: ast.Call, given: Arguments, target: object) -> object:
    """The sum over the dimensions that broadcasting a tensor of the shape adds or widens."""
    x = reader.read(given.require("data"))
    old = x.type.known_dims if isinstance(x.type, TensorType) else None
    if isinstance(target, Expr):
        new = target.type.known_dims if isinstance(target.type, TensorType | ShapeType) else None
    else:
        new = [reader.to_dim(node, each) for each in items_of(target) or (target,)]
    if old is None or new is None or len(new) > len(old):
        reader.fail(node, "expected shapes that are known, the new one not longer")
    return reader.emit(node, lambda: _summed(x, old, new))


def _summed(x: Expr, old: Sequence[Dim], new: Sequence[Dim]) -> Expr:
    added = len(old) - len(new)
    inner = [added + at for at, dim in enumerate(new) if dim == constant(1) and old[added + at] != constant(1)]
    kept = _op("sum")(x, inner, keepdims=True) if inner else x
    result = _op("sum")(kept, list(range(added))) if added else kept
    return _op("reshape")(result, new)


def _hamming_window(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.hamming_window(length, periodic, alpha, beta, dtype)`."""
    names = "window_size periodic alpha beta dtype"
    given = Arguments(reader.source, node, "R.hamming_window", names)
    length = reader.dim(given.require("window_size"))
    periodic, alpha, beta = (_number(reader, given.require(name)) for name in names.split()[1:4])
    dtype = f32 if (written := given.get("dtype")) is None else reader.dtype(written)
    return reader.emit(node, lambda: _op("cosine_window")(length, [alpha, beta], periodic=bool(periodic), dtype=dtype))


def _number(reader: ExpressionReader, node: ast.expr) -> float:
    value = reader.value(node)
    if isinstance(value, Expr):
        value = reader.known(node, value)
    if not isinstance(value, bool | int | float):
        reader.fail(node, f"expected a number, got {describe(value)}")
    return float(value)


REDUCTION_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "collapse_sum_like": _collapse_like,
    "collapse_sum_to": _collapse_to,
    "hamming_window": _hamming_window,
}
