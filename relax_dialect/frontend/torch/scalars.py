"""Numbers of a program, and what it says of them."""

from __future__ import annotations

from xdsl.dialects.builtin import f64, i64

from relax_dialect.builder import op
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.struct_info.types import ShapeType


@converts(
    "aten._assert_async.default",
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
)
def known(_: Node) -> Result:
    """What PyTorch was told, or has checked: bounds of symbols say it."""
    return None


@converts("aten.item.default", "aten._local_scalar_dense.default")
def item(node: Node) -> Result:
    """The only element of a tensor: a symbol is bound to an integer or truth value, a floating-point number stays a
    tensor.
    """
    said, x = node.results[0], op.reshape(node.tensor("self"), [])
    expression = getattr(getattr(said, "node", None), "expr", None)
    if expression is None:
        return None
    if type(expression).__name__ == "Equality":  # a truth value: its symbol is 1
        expression = expression.args[0]
    if not expression.is_Symbol:
        raise Refusal(f"an element that is {expression} cannot be a number of the program")
    if type(said).__name__ == "SymFloat":
        node.graph.floats[str(expression)] = op.astype(x, f64)
    else:
        length = op.tensor_to_shape(op.reshape(node.matched(x, i64), [1]))
        node.graph.match(length, ShapeType([str(expression)]))
    return None


@converts("aten.scalar_tensor.default")
def scalar_tensor(node: Node) -> Result:
    """A number as a tensor of rank 0."""
    return node.tensor("s", node.out_dtype())
