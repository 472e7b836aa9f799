"""Indices out of range are errors in every mode where they are errors in PyTorch, and only there."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from relax_dialect.frontend.torch import from_exported_program
from tests.support.programs import MODES, runner

X = torch.arange(12.0).reshape(4, 3)
INDICES = ([0, 2], [1, -1], [3, -4], [1, -5], [1, 4], [0, 3], [2**62, 0], [-(2**63), 0])
CASES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "index_select": lambda x, i: torch.index_select(x, 0, i),
    "gather": lambda x, i: torch.gather(x, 0, i[:, None]),
    "scatter": lambda x, i: torch.scatter(x, 0, i[:, None], 1.0),
    "scatter_add": lambda x, i: torch.scatter_add(x, 0, i[:, None], x[:2, :1]),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "index": lambda x, i: x[i],
    "index of the second axis": lambda x, i: x[:, i],
    "index_put": lambda x, i: torch.index_put(x, (i,), x[0]),
    "index_add": lambda x, i: torch.index_add(x, 0, i, x[:2]),
    "index_copy": lambda x, i: torch.index_copy(x, 0, i, x[:2]),
    "index_fill": lambda x, i: torch.index_fill(x, 0, i, 2.0),
    "take": lambda x, i: torch.take(x, i),
}
QUICK = ("gather", "index", "scatter")
"""Those that are compiled in a quick run."""


@cache
def _imported(name: str) -> Any:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            return CASES[name](x, i)

    return from_exported_program(torch.export.export(Module(), (X, torch.tensor([0, 2]))))


def check(name: str, mode: str) -> None:
    main = runner(_imported(name), "main", mode)
    for places in INDICES:
        i = torch.tensor(places)
        try:
            expected = CASES[name](X, i).numpy()
        except (IndexError, RuntimeError):
            with pytest.raises(ValueError, match=r"expected each within its axis, got the place"):
                main(X.numpy(), i.numpy())
        else:
            np.testing.assert_array_equal(np.asarray(main(X.numpy(), i.numpy())), expected)


@pytest.mark.parametrize("name", CASES)
def test_in_the_interpreter(name: str):
    check(name, "interpret")


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_compiled(name: str, mode: str):
    check(name, mode)
