"""Losses, by the operators that they are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.struct_info.types import TensorType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


@dataclass(frozen=True)
class Picked:
    """The arguments that a negative log likelihood and its gradient share."""

    predictions: Expr
    targets: Expr
    weights: Expr | None
    reduction: str
    ignored: int
    axis: int
    """The dimension of the classes."""

    def counts(self) -> Expr:
        """Which targets are not ignored."""
        return _op("not_equal")(self.targets, self.ignored)

    def places(self) -> Expr:
        """The targets, with 0 for those that are ignored."""
        return _op("where")(self.counts(), self.targets, _op("zeros_like")(self.targets))

    def weight(self) -> Expr:
        """The weight of each target, 0 for those that are ignored."""
        dtype = self.predictions.type.dtype if isinstance(self.predictions.type, TensorType) else None
        if self.weights is None:
            return _op("astype")(self.counts(), dtype)
        weight = _op("take")(self.weights, self.places(), axis=0)
        return _op("where")(self.counts(), weight, _op("zeros_like")(weight))


def read_picked(reader: ExpressionReader, given: Arguments) -> Picked:
    """The arguments `predictions targets weights reduction ignore_index`."""
    node = given.node
    predictions, targets = reader.read(given.require("predictions")), reader.read(given.require("targets"))
    weights_node, reduction_node, ignored_node = map(given.get, ("weights", "reduction", "ignore_index"))
    weights = None if weights_node is None else reader.value(weights_node)
    reduction = "mean" if reduction_node is None else reader.text(reduction_node)
    ignored = -100 if ignored_node is None else reader.integer(ignored_node)
    if reduction not in ("mean", "sum", "none"):
        reader.fail(reduction_node or node, f"expected mean, sum or none, got {reduction}")
    known = None if weights is None else reader.expr(node, weights)
    return Picked(predictions, targets, known, reduction, ignored, _class_axis(reader, node, predictions))


def _nll_loss(reader: ExpressionReader, node: ast.Call) -> object:
    """Minus what is predicted of the targets, weighted; the mean is that of the weights."""
    names = "predictions targets weights reduction ignore_index"
    picked = read_picked(reader, Arguments(reader.source, node, "R.nn.nll_loss", names))

    def build() -> Expr:
        places = _op("expand_dims")(picked.places(), [picked.axis])
        values = _op("squeeze")(_op("gather_elements")(picked.predictions, places, axis=picked.axis), [picked.axis])
        weight = picked.weight()
        loss = _op("negative")(values * weight)
        if picked.reduction == "none":
            return loss
        total = _op("sum")(loss)
        return total if picked.reduction == "sum" else total / _op("sum")(weight)

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
