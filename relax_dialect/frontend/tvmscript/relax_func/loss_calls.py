"""Losses, by the operators that they are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.struct_info.types import TensorType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def _nll_loss(reader: ExpressionReader, node: ast.Call) -> object:
    """Minus what is predicted of the targets, weighted; the mean is that of the weights."""
    names = "predictions targets weights reduction ignore_index"
    given = Arguments(reader.source, node, "R.nn.nll_loss", names)
    predictions, targets = reader.read(given.require("predictions")), reader.read(given.require("targets"))
    weights_node, reduction_node, ignored_node = (given.get(name) for name in names.split()[2:])
    weights = None if weights_node is None else reader.value(weights_node)
    reduction = "mean" if reduction_node is None else reader.text(reduction_node)
    ignored = -100 if ignored_node is None else reader.integer(ignored_node)
    if reduction not in ("mean", "sum", "none"):
        reader.fail(reduction_node or node, f"expected mean, sum or none, got {reduction}")
    axis = _class_axis(reader, node, predictions)

    def build() -> Expr:
        counts = _op("not_equal")(targets, ignored)
        places = _op("where")(counts, targets, _op("zeros_like")(targets))
        picked = _op("squeeze")(
            _op("gather_elements")(predictions, _op("expand_dims")(places, [axis]), axis=axis), [axis]
        )
        ones = _op("ones_like")(picked) if weights is None else _op("take")(reader.expr(node, weights), places, axis=0)
        weight = _op("where")(counts, ones, _op("zeros_like")(ones))
        loss = _op("negative")(picked * weight)
        if reduction == "none":
            return loss
        total = _op("sum")(loss)
        return total if reduction == "sum" else total / _op("sum")(weight)

    return reader.emit(node, build)


def _class_axis(reader: ExpressionReader, node: ast.AST, predictions: Expr) -> int:
    """The dimension of the classes: the second, or the only one."""
    rank = predictions.type.rank if isinstance(predictions.type, TensorType) else None
    if not rank:
        reader.fail(node, f"expected predictions of known rank, at least 1, got {predictions.type}")
    return min(rank - 1, 1)


def _cross_entropy(reader: ExpressionReader, node: ast.Call) -> object:
    """Minus the sum of the products; of a matrix, the mean over rows."""
    given = Arguments(reader.source, node, "R.nn.cross_entropy_with_logits", "predictions labels")
    predictions, labels = reader.read(given.require("predictions")), reader.read(given.require("labels"))
    axis = _class_axis(reader, node, predictions)

    def build() -> Expr:
        loss = _op("negative")(_op("sum")(predictions * labels))
        rows = predictions.type.known_dims if isinstance(predictions.type, TensorType) else None
        if axis == 0 or rows is None:
            return loss
        count = reader.scalar_tensor(node, reader.expr(node, rows[0]))
        dtype = predictions.type.dtype if isinstance(predictions.type, TensorType) else None
        return loss / _op("astype")(count, dtype)

    return reader.emit(node, build)


LOSS_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "nn.nll_loss": _nll_loss,
    "nn.cross_entropy_with_logits": _cross_entropy,
}
