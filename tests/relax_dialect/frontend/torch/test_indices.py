"""Indices out of range are errors in every mode where they are errors in PyTorch, and only there."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

from relax_dialect.frontend.torch import from_exported_program
from relax_dialect.interpreter import run
from tests.relax_dialect.frontend.torch.programs import assert_same, export
from tests.support.programs import MODES, runner

Tensor = torch.Tensor
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


def test_reductions_at_indices():
    def function(x: Tensor, at: Tensor, values: Tensor) -> Any:
        kinds = [(how, inside) for how in ("sum", "prod", "mean", "amax", "amin") for inside in (True, False)]
        whole = [
            each.scatter_reduce(0, at, values.to(each.dtype), how, include_self=inside)
            for how, inside in kinds
            for each in (x, x.long())
        ]
        slices = [x.index_reduce(0, at[:, 0], values, how, include_self=inside) for how, inside in kinds[2:]]
        return [*whole, *slices]

    data = [(torch.randn(n, 3) * 4, torch.randint(0, n, (4, 3)), torch.randn(4, 3) * 4) for n in (5, 1)]
    assert_same(function, data[0], ({0: Dim.AUTO}, {}, {}), *data[1:])


def test_masks_and_runs():
    def function(x: Tensor, mask: Tensor, source: Tensor, edges: Tensor) -> Any:
        rows = edges.expand(x.shape[0], -1)
        return [
            *(x.masked_scatter(mask, source), torch.ops.aten._is_all_true(mask), torch.ops.aten._is_any_true(mask)),
            *(torch.searchsorted(rows, x), torch.searchsorted(rows, x, right=True, out_int32=True)),
            *(torch.searchsorted(edges.flip(0), x, sorter=torch.arange(edges.shape[0]).flip(0)),),
            torch.searchsorted(rows, torch.where(x > 0, x, torch.nan)),
            *torch.unique_consecutive(x > 0, return_inverse=True, return_counts=True),
            *torch.unique_consecutive((x * 2).long(), return_inverse=True, return_counts=True, dim=1),
            torch.pdist(x),
        ]

    data = [
        (torch.randn(n, 3), torch.rand(n, 3) > 0.5, torch.randn(n + 1, 4), torch.linspace(-1, 1, n + 2))
        for n in (4, 1, 7)
    ]
    module = assert_same(function, data[0], ({0: Dim.AUTO},) * 4, *data[1:])
    with pytest.raises(ValueError, match="'masked_scatter' needs as many elements as the mask has, the source"):
        run(module, "main", [np.zeros((4, 3), "f"), np.ones((4, 3), bool), np.ones((1, 4), "f"), np.ones(6, "f")])


def test_a_table_whose_rows_are_made_shorter():
    model = torch.nn.Embedding(5, 3, max_norm=1.0)
    index = torch.tensor([[0, 3], [3, 1]])
    before = model.weight.detach() * 2 + 1
    module = from_exported_program(export(model, (index,), ({0: Dim.AUTO},)))
    found, table = run(module, "main", [index.numpy(), before.numpy()])
    expected = before.clone()
    np.testing.assert_allclose(found, F.embedding(index, expected, max_norm=1.0), 1e-5)
    np.testing.assert_allclose(table, expected, 1e-5)
