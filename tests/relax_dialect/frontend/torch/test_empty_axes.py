"""Dimensions of 0 and 1 at run time, where operators look for the greatest element or divide by a dimension."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from relax_dialect.frontend.torch import from_exported_program
from tests.support.programs import MODES, runner

SIZES = ((0, 5), (4, 0), (1, 1), (3, 4))


class Reductions(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        positive = x > 0
        truths = [getattr(positive, name)(axis) for name in ("any", "all") for axis in (0, 1)]
        sums = [x.logsumexp(1), x.logsumexp((0, 1)), x.logsumexp(0, keepdim=True)]
        bytes_ = (positive.to(torch.uint8).any(1), positive.to(torch.uint8).all(0, keepdim=True))
        return [*truths, positive.any(), positive.all(), *sums, *bytes_, torch.ops.aten._safe_softmax(x, 1)]


class Rolls(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return [x.roll((1, -2), (0, 1)), x.roll(3), x.roll(-9, 1)]


class Attention(torch.nn.Module):
    """Queries that see no key."""

    def forward(self, x: torch.Tensor) -> Any:
        keys = x.T[None, None]
        mask = torch.zeros(x.shape[1]).expand(x.shape[0], -1)
        queries = torch.ones(1, 1, x.shape[0], x.shape[0])
        return [F.scaled_dot_product_attention(queries, keys, keys, bias) for bias in (mask, None)]


@cache
def imported(module: type[torch.nn.Module]) -> Any:
    free = torch.export.Dim.AUTO
    program = torch.export.export(module(), (torch.randn(4, 6),), dynamic_shapes=({0: free, 1: free},))
    return from_exported_program(program)


@pytest.mark.parametrize("module", [Reductions, Rolls, Attention])
@pytest.mark.parametrize("mode", MODES)
def test_any_sizes(module: type[torch.nn.Module], mode: str):
    function = runner(imported(module), "main", mode)
    for size in SIZES:
        x = torch.from_numpy(np.random.default_rng(0).standard_normal(size).astype(np.float32))
        found: Any = function(x.numpy())
        for number, (made, expected) in enumerate(zip(found, module()(x), strict=True)):
            said = f"result {number} at {size}"
            np.testing.assert_allclose(made, expected.numpy(), rtol=1e-5, atol=1e-6, err_msg=said)
            assert made.dtype == expected.numpy().dtype, said
