"""`torch.compile` with our backend against PyTorch itself."""

from __future__ import annotations

import copy
import warnings
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.testing import CompileCounterWithBackend

from xdsl_relax.dynamo import FallbackWarning, backend


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(model: Any, *, dynamic: bool | None = True, **options: Any) -> Any:
    """A model that may not fall back."""
    return torch.compile(model, backend=backend, dynamic=dynamic, options={"fallback": False} | options)


def mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)).eval()


def test_pytorch_finds_the_backend():
    (found,) = entry_points(group="torch_dynamo_backends", name="xdsl_relax")
    assert found.load() is backend


@torch.no_grad()
def test_one_program_serves_all_sizes():
    model, graphs = mlp(), CompileCounterWithBackend(backend)
    fast = torch.compile(model, backend=graphs, dynamic=True)
    for size in (5, 2, 7, 33):
        x = torch.randn(size, 4)
        torch.testing.assert_close(fast(x), model(x))
    assert graphs.frame_count == 1
    one = torch.randn(1, 4)  # for which PyTorch traces again
    torch.testing.assert_close(fast(one), model(one))


@torch.no_grad()
def test_arguments_need_not_be_contiguous():
    model = mlp()
    fast = compiled(model)
    for x in (torch.randn(4, 6).T, torch.randn(12, 8)[::2, ::2], torch.randn(1, 4).expand(5, 4)):
        torch.testing.assert_close(fast(x), model(x))


@pytest.mark.parametrize("freeze", [True, False])
def test_weights_that_change_are_seen(freeze: bool):
    model = mlp()
    fast = compiled(model, freeze=freeze)
    x = torch.randn(3, 4)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x))
        model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})
        torch.testing.assert_close(fast(x), model(x))
        model[0].bias.mul_(-2)
        torch.testing.assert_close(fast(x), model(x))


def test_gradients_are_those_of_pytorch():
    model = mlp()
    twin = copy.deepcopy(model)
    fast = compiled(model)
    for size in (16, 9):
        x, y = torch.randn(size, 4), torch.randn(size, 3)
        for forward, owner in ((fast, model), (twin, twin)):
            ((forward(x) - y) ** 2).mean().backward()
            with torch.no_grad():
                for parameter in owner.parameters():
                    parameter.sub_(0.1 * parameter.grad)
        for one, other in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(one, other)
            torch.testing.assert_close(one.grad, other.grad)


def test_arguments_that_are_written_and_branches_on_data():
    def step(cache: Any, x: Any) -> Any:
        cache[1:3].add_(x)
        if x.sum() > 0:
            return cache * 2, cache.shape[0], None
        return (cache - 1,)

    fast = compiled(step, dynamic=None)
    for sign in (1.0, -1.0):
        mine, theirs = torch.zeros(4, 5), torch.zeros(4, 5)
        x = torch.full((2, 5), sign)
        found, expected = fast(mine, x), step(theirs, x)
        torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(found[0], expected[0])
        assert found[1:] == expected[1:]


@torch.no_grad()
def test_sizes_are_arguments_of_operators():
    """PyTorch passes a size of one graph, of two inputs, or of a later call as a number."""
    table = torch.arange(40).reshape(1, 40)

    def function(x: Any) -> Any:
        return table[:, : x.shape[1]] + x, x.new_ones(x.shape[1]), table.narrow(1, 0, x.shape[1] - 1)

    fast = compiled(function, dynamic=None)
    for size in (7, 5, 16):
        x = torch.randn(2, size)
        torch.testing.assert_close(fast(x), function(x))


@torch.no_grad()
def test_a_convolution_network():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 4),
    ).eval()
    fast = compiled(model)
    for size in (2, 5):
        x = torch.randn(size, 3, 9, 11)
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_transformer_layer():
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    torch.backends.mha.set_fastpath_enabled(False)
    fast = compiled(layer)
    for batch, length in ((2, 5), (3, 17)):
        x = torch.randn(batch, length, 16)
        torch.testing.assert_close(fast(x), layer(x), rtol=1e-4, atol=1e-5)


def test_what_is_not_supported_runs_in_pytorch_with_a_warning():
    def function(x: Any) -> Any:
        return torch.special.bessel_j0(x) + 1

    x = torch.randn(5)
    with pytest.warns(FallbackWarning, match=r"(?s)a graph runs in PyTorch: .*bessel_j0"):
        found = torch.compile(function, backend=backend)(x)
    torch.testing.assert_close(found, function(x))
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match="bessel_j0"):
        compiled(function)(x)


def test_options_that_there_are_not_are_named():
    with pytest.raises(BackendCompilerFailed, match=r"expected options among target, fallback, freeze, got tile"):
        compiled(lambda x: x + 1, tile=4)(torch.ones(2))


def test_nothing_is_said_of_what_is_compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        torch.testing.assert_close(compiled(lambda x: x * 2)(torch.ones(3)), torch.full((3,), 2.0))
