"""Random numbers: reproducible, the same in all modes, and of the distributions that PyTorch says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch._higher_order_ops.map import map as map_
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention

from lowering import build
from relax_dialect.frontend.torch import TorchImportError, from_exported_program
from relax_dialect.interpreter import run
from tests.relax_dialect.frontend.torch.programs import export
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

Tensor = torch.Tensor
COUNT = 4000
WEIGHTS = torch.tensor([0.1, 0.0, 0.3, 0.6])


def numbers(x: Tensor) -> Any:
    """Each row of `x` has the same distribution."""
    n = x.shape[0]
    weights = WEIGHTS.expand(n, 4)
    return {
        "uniform": torch.rand_like(x),
        "uniform again": torch.rand(n, 1),
        "between": torch.empty_like(x).uniform_(2, 3),
        "normal": torch.randn(n, 1),
        "moved": torch.normal(x + 1, 2.0),
        "exponential": torch.empty_like(x).exponential_(2.0),
        "log of normal": torch.empty_like(x).log_normal_(0.5, 0.25).log(),
        "angle of Cauchy": ((torch.empty_like(x).cauchy_(2, 3) - 2) / 3).atan(),
        "trials": torch.empty_like(x).geometric_(0.25),
        "integers": torch.randint(-2, 3, (n, 1)),
        "coin": torch.bernoulli(x + 0.25),
        "sample": torch.multinomial(weights, 1),
        "with replacement": torch.multinomial(weights, 3, True),
        "without replacement": torch.multinomial(weights, 3)[:, :1],
        "dropout": F.dropout(x + 1, 0.25, True),
        "slopes": F.rrelu(x - 1, 0.25, 0.75, True),
    }


MOMENTS = {
    "uniform": (0.5, 12**-0.5),
    "uniform again": (0.5, 12**-0.5),
    "between": (2.5, 12**-0.5),
    "normal": (0.0, 1.0),
    "moved": (1.0, 2.0),
    "exponential": (0.5, 0.5),
    "log of normal": (0.5, 0.25),
    "angle of Cauchy": (0.0, np.pi * 12**-0.5),
    "trials": (4.0, 12**0.5),
    "integers": (0.0, 2**0.5),
    "coin": (0.25, 0.1875**0.5),
    "sample": (2.4, 0.84**0.5),
    "with replacement": (2.4, 0.84**0.5),
    "without replacement": (2.4, 0.84**0.5),
    "dropout": (1.0, (1 / 3) ** 0.5),
    "slopes": (-0.5, 0.5 * 12**-0.5),
}
"""Means and standard deviations."""


def test_distributions_in_all_modes():
    module = from_exported_program(export(numbers, (torch.zeros(3, 1),), ({0: Dim.AUTO},)))
    assert "%seed: !relax.prim<i64>" in str(module)
    mains = [VirtualMachine(build(module.clone(), mode=mode))["main"] for mode in ("bytecode", "native")]
    x = torch.zeros(COUNT, 1)
    outcomes = [[to_numpy(each) for each in main(x, 7)] for main in (*mains, mains[0])]
    outcomes.append(list(run(module, "main", [x.numpy(), 7])))
    for other in outcomes[1:]:
        for one, two in zip(outcomes[0], other, strict=True):
            np.testing.assert_allclose(one, two, 1e-5, 1e-6)
    found = dict(zip(MOMENTS, outcomes[0], strict=True))
    for name, (mean, deviation) in MOMENTS.items():
        assert abs(found[name].mean() - mean) < 4 * deviation / COUNT**0.5, name
        assert abs(found[name].std() / deviation - 1) < 0.1, name
    assert abs(np.corrcoef(found["uniform"][:, 0], found["uniform again"][:, 0])[0, 1]) < 0.06
    assert any((one != to_numpy(two)).any() for one, two in zip(outcomes[0], mains[0](x, 8), strict=True))


def test_a_sample_without_replacement_has_each_index_once():
    def function(x: Tensor) -> Any:
        return torch.multinomial(x.expand(50, 4), 3), torch.randperm(x.shape[0] * 5)

    main = VirtualMachine(build(from_exported_program(export(function, (WEIGHTS,)), seed=3)))["main"]
    samples, order = map(to_numpy, main(WEIGHTS))
    assert (np.sort(samples, 1) == [0, 2, 3]).all()
    assert sorted(order) == list(range(20))


def test_layers_in_training():
    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 4, 2, dropout=0.5)

        def forward(self, x: Tensor) -> Any:
            q = x[None]
            values = torch.ones_like(q)
            return self.lstm(x)[0], F.scaled_dot_product_attention(q, q, values, None, 0.25, True)

    program = export(Layers().train(), (torch.randn(2000, 3, 4),))
    lstm, attention = map(
        to_numpy, VirtualMachine(build(from_exported_program(program)))["main"](torch.randn(2000, 3, 4), 1)
    )
    assert np.isfinite(lstm).all()
    assert abs(attention.mean() - 1) < 0.02
    assert abs((attention[0, :, 0] == 0).mean() - 0.25) < 0.04


def test_each_iteration_draws_numbers_of_its_own():
    def walk(x: Tensor) -> Tensor:
        step = lambda i, y: (i + 1, y + torch.rand_like(y))  # noqa: E731
        return while_loop(lambda i, y: i < 12, step, (torch.zeros((), dtype=torch.int64), torch.zeros_like(x)))[1]

    def loops(x: Tensor) -> Any:
        rows = scan(lambda c, r: (c + torch.rand_like(c), torch.rand_like(r)), torch.zeros_like(x[0]), x, dim=0)
        branch = torch.cond(x.sum() > 0, torch.rand_like, lambda x: -torch.rand_like(x), (x,))
        return walk(x), *rows, map_(torch.rand_like, x), map_(walk, x), branch

    x = torch.ones(12, 200)
    module = from_exported_program(export(loops, (x,), ({0: Dim.AUTO},)))
    mains = [VirtualMachine(build(module.clone(), mode=mode))["main"] for mode in ("bytecode", "native")]
    outcomes = [[to_numpy(each) for each in main(x, 7)] for main in (*mains, mains[0])]
    outcomes.append(list(run(module, "main", [x.numpy(), 7])))
    for other in outcomes[1:]:
        for one, two in zip(outcomes[0], other, strict=True):
            np.testing.assert_allclose(one, two, 1e-5, 1e-6)
    walked, summed, *drawn, nested, _ = outcomes[0]
    assert abs(np.std([walked, nested]) - 1) < 0.05  # of twelve independent numbers: of one number, 12 times, 3.5
    assert abs(summed.std() - 1) < 0.15
    for rows in (*drawn, nested):
        assert abs(np.corrcoef(rows) - np.eye(12)).max() < 0.35


def test_what_cannot_be_drawn_is_said():
    def tilted(score: Tensor, *_: Tensor) -> Tensor:
        return score + torch.rand_like(score)

    q = torch.ones(1, 1, 16, 16)
    with pytest.raises(TorchImportError, match="random numbers in functions of scores are not supported"):
        from_exported_program(export(lambda q: flex_attention(q, q, q, score_mod=tilted), (q,)))
