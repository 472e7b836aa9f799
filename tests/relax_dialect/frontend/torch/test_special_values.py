"""Elementwise functions at special values against PyTorch, in every mode: zeros, infinities, NaN, ends of the range.

What is compared are values and where there is no number. Signs of zeros are not: PyTorch's differ with the length of a
tensor. Left out are functions that PyTorch itself computes with cancellation there (`gelu`).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from relax_dialect.frontend.torch import from_exported_program
from tests.support.programs import MODES, runner

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor frac log log10 log1p log2 neg",
    "reciprocal round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc sinc",
)
ACTIVATIONS = (
    "relu silu elu selu celu softplus softsign mish hardtanh hardswish hardsigmoid leaky_relu",
    "logsigmoid relu6 softshrink",
)
BINARY = ("add", "sub", "mul", "div", "atan2", "fmax", "fmin", "maximum", "minimum", "hypot", "copysign", "logaddexp")
FUNCTIONS = [getattr(torch, name) for name in " ".join(UNARY).split()]
FUNCTIONS += [getattr(F, name) for name in " ".join(ACTIVATIONS).split()]
SIZES = [
    0.0,
    1.0,
    0.5,
    1.5,
    2.0,
    2.5,
    3.0,
    7.0,
    10.25,
    30.0,
    88.0,
    104.0,
    1e-3,
    1e-10,
    3.4e38,
    1.7e38,
    1.2e-38,
    math.inf,
]
X = torch.tensor([*SIZES, *(-each for each in SIZES), math.nan])
PAIRS = [each.reshape(-1).contiguous() for each in torch.meshgrid(X, X, indexing="ij")]


class Unary(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return [function(x) for function in FUNCTIONS]


class Binary(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return [getattr(torch, name)(x, y) for name in BINARY]


@cache
def imported(module: type[torch.nn.Module], *args: torch.Tensor) -> Any:
    return from_exported_program(torch.export.export(module(), args))


def differing(got: Any, expected: torch.Tensor, args: list[torch.Tensor]) -> list[tuple[float, ...]]:
    want, found = expected.numpy().astype(np.float64), np.asarray(got).astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (found == want) | (abs(found - want) <= 2e-5 * abs(want) + 1e-37)
    places = np.flatnonzero(~(near | np.isnan(found) & np.isnan(want)))
    return [(*(float(each[at]) for each in args), float(found[at]), float(want[at])) for at in places[:4]]


@pytest.mark.parametrize("mode", MODES)
def test_functions_of_one_number(mode: str):
    results: Any = runner(imported(Unary, X), "main", mode)(X.numpy())
    pairs = zip(FUNCTIONS, results, Unary()(X), strict=True)
    wrong = {f.__name__: found for f, got, want in pairs if (found := differing(got, want, [X]))}
    assert not wrong, wrong


@pytest.mark.parametrize("mode", MODES)
def test_functions_of_two_numbers(mode: str):
    results: Any = runner(imported(Binary, *PAIRS), "main", mode)(*(each.numpy() for each in PAIRS))
    pairs = zip(BINARY, results, Binary()(*PAIRS), strict=True)
    wrong = {
        name: found for name, got, want in pairs if (found := differing(got, want, PAIRS)) and name != "logaddexp2"
    }
    assert not wrong, wrong


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_complements_of_the_error_function(mode: str, dtype: torch.dtype):
    class Complement(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.erfc(x)

    x = torch.linspace(-6, 9, 301, dtype=dtype)
    module = from_exported_program(torch.export.export(Complement(), (x,)))
    expected = np.array([math.erfc(each) for each in x.tolist()])
    np.testing.assert_allclose(np.asarray(runner(module, "main", mode)(x.numpy())), expected, rtol=2e-6, atol=0)
