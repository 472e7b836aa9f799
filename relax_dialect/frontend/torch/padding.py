"""Padding."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts


@converts("aten.constant_pad_nd.default")
def constant_pad(node: Node) -> Result:
    """More elements of one value; fewer where a number is negative."""
    return _pad(node, node.integers("pad"), "constant", node.exact_number("value"))


@converts("aten.pad.default")
def pad(node: Node) -> Result:
    """More elements of one value, mirrored, of the edge, or from the other end."""
    return _pad(node, node.integers("pad"), node.text("mode", "constant"), node.exact_number("value"))


@converts(*(f"aten.{mode}_pad{rank}d.default" for mode in ("reflection", "replication") for rank in (1, 2, 3)))
def edge_pad(node: Node) -> Result:
    """More elements, mirrored or of the edge."""
    return _pad(node, node.integers("padding"), "reflect" if "reflection" in node.name else "replicate", 0.0)


def _pad(node: Node, widths: list[int], mode: str, value: float) -> Expr:
    """PyTorch lists widths from the last dimension on."""
    x, pairs = node.tensor("self"), list(zip(widths[::2], widths[1::2], strict=True))
    if not any(widths):
        return x
    ordered = [(0, 0)] * (node.rank() - len(pairs)) + pairs[::-1]
    return op.nn.pad(x, [width for pair in ordered for width in pair], mode, value)
