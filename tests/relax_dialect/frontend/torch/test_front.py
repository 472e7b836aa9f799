"""Models of PyTorch through the one package: tensors in, tensors out, names of inputs and outputs."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import xdsl_relax as xr


class Named(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, token_1: torch.Tensor, token_0: torch.Tensor) -> dict[str, torch.Tensor]:
        self.count += 1
        return {"sum": token_1 + token_0, "difference": token_1 - token_0}


X, Y = torch.full((2, 3), 10.0), torch.ones((2, 3))


def test_a_module_is_exported_and_compiled():
    batch = torch.export.Dim("batch")
    model = xr.compile(torch.nn.Linear(3, 2), (X,), dynamic_shapes=({0: batch},))
    assert re.fullmatch(r"<Model main\(input: f32\[(\w+), 3\]\) -> f32\[\1, 2\], native>", repr(model))
    result = model(torch.ones(5, 3))
    assert isinstance(result, torch.Tensor)
    assert type(model(np.ones((5, 3), np.float32))) is np.ndarray
    with pytest.raises(TypeError, match=r"a module of PyTorch is traced with an example: load\(module, \(x,\)\)"):
        xr.load(torch.nn.Linear(3, 2))


def test_names_of_inputs_and_of_a_dictionary():
    model = xr.compile(Named(), (X, Y))
    results = model(token_0=Y, token_1=X, b_count=torch.zeros(()))
    assert results.names == ("sum", "difference", "b_count")
    torch.testing.assert_close(results["difference"], X - Y)
    torch.testing.assert_close(results["b_count"], torch.ones(()))
    assert [each.name for each in xr.Session(model).get_inputs()] == ["token_1", "token_0", "b_count"]


def test_a_tuple_has_no_names():
    class Pair(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x + 1, x - 1

    assert "result_names" not in str(xr.load(Pair(), (X,)))
