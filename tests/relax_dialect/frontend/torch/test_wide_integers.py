"""Integers of 64 bits that `f64` has not, in programs of PyTorch."""

from collections.abc import Callable

import numpy as np
import torch

from relax_dialect.frontend.torch import from_exported_program
from tests.support.programs import IDENTICAL, run_in_turn

ODD = 2**53 + 1
I64 = np.array([0, 1, -1, 2**63 - 1, -(2**63), ODD, -ODD, 2**63 - 2])

TORCH: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "clamp": lambda x: torch.clamp(x, -ODD, ODD),
    "pad": lambda x: torch.nn.functional.pad(x, (1, 1), value=ODD),
    "add": lambda x: x + ODD,
}


def test_torch():
    class All(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return tuple(function(x) for function in TORCH.values())

    module = from_exported_program(torch.export.export(All(), (torch.from_numpy(I64),)))
    results = run_in_turn(module, "main", [I64], IDENTICAL)
    for result, function in zip(results, TORCH.values(), strict=True):
        np.testing.assert_array_equal(result, function(torch.from_numpy(I64)).numpy())
