"""Padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect import te
from tir_dialect.dims import Dim, to_dim


@converts("aten.constant_pad_nd.default")
def constant_pad(node: Node) -> Result:
    """More elements of one value; fewer where a number is negative."""
    return _pad(node, node.dims("pad"), "constant", node.exact_number("value"))


@converts("aten.pad.default")
def pad(node: Node) -> Result:
    """More elements of one value, mirrored, of the edge, or from the other end."""
    return _pad(node, node.dims("pad"), node.text("mode", "constant"), node.exact_number("value"))


@converts(*(f"aten.{mode}_pad{rank}d.default" for mode in ("reflection", "replication") for rank in (1, 2, 3)))
def edge_pad(node: Node) -> Result:
    """More elements, mirrored or of the edge."""
    return _pad(node, node.dims("padding"), "reflect" if "reflection" in node.name else "replicate", 0.0)


def _pad(node: Node, widths: list[Dim], mode: str, value: float) -> Expr:
    """PyTorch lists widths from the last dimension on."""
    x, pairs = node.tensor("self"), list(zip(widths[::2], widths[1::2], strict=True))
    ordered = [(to_dim(0), to_dim(0))] * (node.rank() - len(pairs)) + pairs[::-1]
    fixed = [width.constant_value for pair in ordered for width in pair]
    if None in fixed:
        return _pad_by_sizes(node, ordered, mode, value)
    return op.nn.pad(x, [each for each in fixed if each is not None], mode, value) if any(fixed) else x


def _pad_by_sizes(node: Node, widths: list[tuple[Dim, Dim]], mode: str, value: float) -> Expr:
    """With widths that depend on sizes."""
    shape, padded = node.shape(), [before != to_dim(0) or after != to_dim(0) for before, after in widths]

    def kernel(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            at = [each - te.cast(before, "index") for each, (before, _) in zip(i, widths, strict=True)]
            ends = [te.cast(length, "index") for length in shape]
            if mode == "constant":
                cases = [(here >= 0, here < end) for here, end, pads in zip(at, ends, padded, strict=True) if pads]
                inside = reduce(te.logical_and, [each for case in cases for each in case])
                return te.if_then_else(inside, x[tuple(at)], te.const(value, str(node.dtype())))
            fold = _FOLDED[mode]
            return x[tuple(fold(a, end) if pads else a for a, end, pads in zip(at, ends, padded, strict=True))]

        return te.compute(node.out_dims(), element, name="pad")

    return node.te(kernel, node.tensor("self"), name="pad")


def _mirrored(at: te.Expr, end: te.Expr) -> te.Expr:
    inner = te.if_then_else(at < 0, -at, at)
    return te.if_then_else(inner >= end, (end - 1) * 2 - inner, inner)


_FOLDED: Mapping[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    "reflect": _mirrored,
    "replicate": lambda at, end: te.maximum(te.minimum(at, end - 1), 0),
    "circular": lambda at, end: te.floormod(at + end, end),
}
"""The index of the element that an index out of range stands for."""
