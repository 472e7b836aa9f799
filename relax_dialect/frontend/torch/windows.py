"""Windows that slide over the last dimensions: what convolutions and pooling have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node


def each(node: Node, name: str, rank: int, default: int | None = None) -> list[int]:
    """One number per spatial dimension; PyTorch writes one for all, and nothing for the default."""
    found = node.integers(name)
    if not found:
        return [0 if default is None else default] * rank
    return found * rank if len(found) == 1 else found


def padding(node: Node, rank: int) -> list[int]:
    """What is before each dimension, then what is behind each."""
    return each(node, "padding", rank) * 2


def batched(x: Expr, rank: int, function: Callable[[Expr], Expr]) -> Expr:
    """A function of data with a batch dimension, applied to data with or without one."""
    if x.ndim == rank + 2:
        return function(x)
    if x.ndim != rank + 1:
        raise Refusal(f"expected data of rank {rank + 1} or {rank + 2}, got rank {x.ndim}")
    return op.squeeze(function(op.expand_dims(x, [0])), [0])


def with_bias(x: Expr, bias: Expr | None, spatial: int) -> Expr:
    """`x` with a bias for each channel, behind which there are spatial dimensions."""
    if bias is None:
        return x
    return op.add(x, op.expand_dims(bias, list(range(1, spatial + 1))) if spatial else bias)


def same_padding(kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """The padding with which the size stays: the larger half behind."""
    totals = [by * (size - 1) for size, by in zip(kernel, dilation, strict=True)]
    return [total // 2 for total in totals] + [total - total // 2 for total in totals]
