"""`R.grad.*`: what gradients of losses and lookups are made of. Marks for checkpoints are their operand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.relax_func.loss_calls import Picked, read_picked
from relax_dialect.frontend.tvmscript.relax_func.values import same
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.struct_info.types import TensorType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def _nll_loss_backward(reader: ExpressionReader, node: ast.Call) -> object:
    """Minus the weight where the target stands, by the mean's divisor; elsewhere 0."""
    names = "output_grad predictions targets weights reduction ignore_index"
    given = Arguments(reader.source, node, "R.grad.nll_loss_backward", names)
    gradient = reader.read(given.require("output_grad"))
    picked = read_picked(reader, given)

    def build() -> Expr:
        weight = picked.weight()
        share = gradient / _op("sum")(weight) if picked.reduction == "mean" else gradient
        return _placed(picked, _op("negative")(weight * share))

    return reader.emit(node, build)


def _placed(picked: Picked, values: Expr) -> Expr:
    """Zeros with a value at the class of each target."""
    axis = picked.axis
    places, updates = (_op("expand_dims")(each, [axis]) for each in (picked.places(), values))
    return _op("scatter_elements")(_op("zeros_like")(picked.predictions), places, updates, axis=axis)


def _take_backward(reader: ExpressionReader, node: ast.Call) -> object:
    """The sum of the gradients of all places where a slice was taken to."""
    given = Arguments(reader.source, node, "R.grad.take_backward", "output_grad x indices axis mode")
    gradient, x, indices = (reader.read(given.require(name)) for name in ("output_grad", "x", "indices"))
    rank, count = (_rank(reader, node, each) for each in (x, indices))
    axis = 0 if (at := given.get("axis")) is None or _is_none(at) else reader.integer(at) % max(rank, 1)
    # the slices of the data first, then everything around them
    of_data = [axis, *(each for each in range(rank) if each != axis)]
    around = rank + count - 1
    of_gradient = [*range(axis, axis + count), *range(axis), *range(axis + count, around)]

    def build() -> Expr:
        zeros = _op("zeros_like")(_op("permute_dims")(x, of_data))
        places = _op("expand_dims")(indices, [count])
        summed = _op("scatter_nd")(zeros, places, _op("permute_dims")(gradient, of_gradient), reduction="add")
        return _op("permute_dims")(summed, _inverse(of_data))

    return reader.emit(node, build)


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(place) for place in range(len(order))]


def _rank(reader: ExpressionReader, node: ast.AST, value: Expr) -> int:
    rank = value.type.rank if isinstance(value.type, TensorType) else None
    if rank is None:
        reader.fail(node, f"expected a tensor of known rank, got {value.type}")
    return rank


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


GRADIENT_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    **{f"grad.{name}": same for name in ("no_grad", "start_checkpoint", "end_checkpoint")},
    "grad.nll_loss_backward": _nll_loss_backward,
    "grad.take_backward": _take_backward,
}
