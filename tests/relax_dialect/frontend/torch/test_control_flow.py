"""Operators that take graphs: loops, scans, and attention whose scores a graph changes."""

from __future__ import annotations

from typing import Any

import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tests.relax_dialect.frontend.torch.programs import assert_same

Tensor = torch.Tensor
AUTO = Dim.AUTO


class Scans(torch.nn.Module):
    def forward(self, x: Tensor, h: Tensor) -> Any:
        last, states = scan(lambda c, r: (c * 0.5 + r, c * r), h, x, dim=0)
        _, behind = scan(lambda c, r: (c + r, c + 1), h, x, dim=0, reverse=True)
        products = associative_scan(lambda a, b: a * b, x, dim=0, combine_mode="pointwise")
        return last, states, behind, products, map_(lambda r, w: (r * 2 + w, r.sum()), x, h)


def test_scans():
    sizes = [(torch.randn(n, 4), torch.randn(4)) for n in (5, 2, 1)]
    assert_same(Scans(), sizes[0], ({0: AUTO}, {}), *sizes[1:])


class Counting(torch.nn.Module):
    """A loop that carries a number, which is also a size of what it does."""

    def forward(self, x: Tensor) -> Any:
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2 + i), (0, x))


def test_a_loop_that_carries_a_number():
    class Tensors(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            count, y = Counting()(x)
            return y * count

    assert_same(Tensors(), (torch.randn(4),), ({0: AUTO},), (torch.randn(1),))


class Flexible(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", torch.randn(4))

    def forward(self, q: Tensor, k: Tensor, few: Tensor) -> Any:
        def tilted(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + self.slopes[h] * (i - j) + torch.where(b > 0, 0.5, 0.0)

        mask = create_block_mask(lambda b, h, i, j: i > j, None, None, q.shape[2], k.shape[2], "cpu")
        return [
            *(flex_attention(q, k, k, score_mod=tilted), flex_attention(q, k, k, block_mask=mask)),
            flex_attention(q, few, few, scale=0.3, enable_gqa=True),
        ]


def test_flex_attention():
    sizes = [[torch.randn(n, h, t, 8) for h, t in ((4, 5), (4, 6), (2, 6))] for n in (3, 1)]
    assert_same(Flexible(), sizes[0], ({0: AUTO}, {0: AUTO}, {0: AUTO}), *sizes[1:])


def test_truth_values_that_are_data():
    def function(x: Tensor) -> Any:
        torch._check((x < 100).all().item())
        return torch.cond((x > 0).all().item(), lambda x: x * 2, lambda x: x - 1, (x,))

    assert_same(function, (torch.ones(3),), ({0: AUTO},), (-torch.ones(2),), (torch.ones(1),))
