"""Elementwise operators of three operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import i1

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.binary import greater_of, lesser_of
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.promotion import promoted
from relax_dialect.frontend.torch.registry import Result, converts


@converts("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(node: Node) -> Result:
    """Elements of one or the other tensor."""
    dtype = promoted([node.value("self"), node.value("other")])
    made = op.where(node.tensor("condition", i1), node.tensor("self", dtype), node.tensor("other", dtype))
    return node.matched(made, node.out_dtype())


@converts("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(node: Node) -> Result:
    """A value where a mask is true."""
    dtype = node.out_dtype()
    return op.where(node.tensor("mask", i1), node.tensor("value", dtype), node.tensor("self", dtype))


@converts("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default", "aten.clip.Tensor")
def clamp(node: Node) -> Result:
    """Elements no smaller and no larger than given ones; the least is applied first."""
    low, high, dtype = node.value("min"), node.value("max"), node.out_dtype()
    x = node.tensor("self", dtype)
    if isinstance(low, int | float) and isinstance(high, int | float) and low <= high:
        return op.clip(x, low, high)
    return _bounded(node, x, ("min", greater_of), ("max", lesser_of))


@converts("aten.clamp_min.default", "aten.clamp_min.Tensor", "aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_one(node: Node) -> Result:
    """Elements no smaller, or no larger, than given ones."""
    x = node.tensor("self", node.out_dtype())
    return _bounded(node, x, ("min", greater_of), ("max", lesser_of))


def _bounded(node: Node, x: Expr, *bounds: tuple[str, Callable[[Expr, Any], Expr]]) -> Expr:
    for name, function in bounds:
        if node.has(name):
            x = function(x, node.tensor(name, node.out_dtype()))
    return x


@converts("aten.lerp.Tensor", "aten.lerp.Scalar")
def lerp(node: Node) -> Result:
    """`x + weight * (end - x)`."""
    dtype = node.out_dtype()
    x = node.tensor("self", dtype)
    return op.add(x, op.multiply(node.tensor("weight", dtype), op.subtract(node.tensor("end", dtype), x)))


@converts("aten.addcmul.default", "aten.addcdiv.default")
def added_product(node: Node) -> Result:
    """`x + value * a * b`, or `x + value * a / b`."""
    dtype = node.out_dtype()
    function = op.multiply if node.name == "addcmul" else op.divide
    part = function(node.tensor("tensor1", dtype), node.tensor("tensor2", dtype))
    if node.value("value") not in (None, 1):
        part = op.multiply(part, node.tensor("value", dtype))
    return op.add(node.tensor("self", dtype), part)
