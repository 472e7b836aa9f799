"""`torch.compile` with our backend against PyTorch itself."""

from __future__ import annotations

import copy
import warnings
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.testing import CompileCounterWithBackend

from lowering.compiler.build import build
from xdsl_relax import dynamo
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


class Windows(torch.nn.Module):
    """Convolutions of both kinds with strides, dilation and groups, and each kind of pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.steps = torch.nn.Conv2d(4, 8, (3, 2), stride=2, padding=1, bias=False)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
        self.up = torch.nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1, groups=2)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        x = F.avg_pool2d(self.up(F.gelu(self.depthwise(self.steps(x)))), 3, 2, 1)
        return F.adaptive_max_pool2d(x, 2).sum((2, 3)) + F.adaptive_avg_pool2d(x, (2, 3)).amax((2, 3))


class Lines(torch.nn.Module):
    """Convolutions over one dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv1d(3, 8, 5, stride=3, padding=2)
        self.second = torch.nn.Conv1d(8, 6, 3, groups=2, padding="same")
        self.up = torch.nn.ConvTranspose1d(6, 4, 3, stride=2)

    def forward(self, x: Any) -> Any:
        return self.up(self.second(torch.tanh(self.first(x)))).amax(2)


class Attention(torch.nn.Module):
    """An encoder layer of a transformer behind an embedding, and attention that sees what came before."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(20, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, x: Any) -> Any:
        x = self.layer(self.tokens(x)).unflatten(-1, (2, 8)).transpose(1, 2)
        return F.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True).mean((1, 2))


class Recurrent(torch.nn.Module):
    """Cells, since `torch.compile` leaves whole recurrent layers to PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.long, self.gated = torch.nn.LSTMCell(3, 5), torch.nn.GRUCell(5, 4)

    def forward(self, x: Any) -> Any:
        state, found = None, None
        for step in x.unbind(1):
            state = self.long(step, state)
            found = self.gated(state[0], found)
        return found


@pytest.mark.parametrize(
    ("network", "data"),
    [
        (Windows, lambda: torch.randn(2, 3, 12, 10)),
        (Lines, lambda: torch.randn(2, 3, 20)),
        (Attention, lambda: torch.randint(0, 20, (2, 5))),
        (Recurrent, lambda: torch.randn(2, 4, 3)),
    ],
)
def test_steps_of_training(network: Any, data: Any):
    model = network()
    twin = copy.deepcopy(model)
    fast = compiled(model, dynamic=None)
    for _ in range(2):
        x = data()
        for forward, owner in ((fast, model), (twin, twin)):
            owner.zero_grad()
            forward(x).square().mean().backward()
            with torch.no_grad():
                for parameter in owner.parameters():
                    parameter.sub_(0.1 * parameter.grad)
        for one, other in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad)
        for one, other in zip(model.buffers(), twin.buffers(), strict=True):
            torch.testing.assert_close(one, other)


def _pools(volume: Any, image: Any) -> list[Any]:
    """Each kind of mean whose gradient is a product with a matrix along each dimension."""
    return [
        *(
            F.avg_pool3d(volume, 2),
            F.avg_pool3d(volume, 2, divisor_override=3),
            F.adaptive_avg_pool3d(volume, (2, 3, 4)),
        ),
        F.avg_pool3d(volume, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        F.avg_pool3d(volume[0], (3, 2, 2), 2, 1, ceil_mode=True),
        *(F.avg_pool2d(image, 2, divisor_override=3), F.adaptive_avg_pool2d(image, (3, 2))),
        *(F.adaptive_avg_pool2d(image[0], (image.shape[-1], 2)), F.adaptive_avg_pool2d(image, (1, 1))),
    ]


def test_gradients_of_means_over_windows():
    """Also where sizes are not known when it is compiled."""

    def loss(*data: Any) -> Any:
        return sum(each.square().sum() for each in _pools(*data))

    fast = compiled(loss)
    for size in ((5, 6, 7), (7, 5, 9)):
        data = torch.randn(2, 3, *size), torch.randn(2, 3, *size[:2])
        found, expected = ([each.clone().requires_grad_() for each in data] for _ in range(2))
        fast(*found).backward()
        loss(*expected).backward()
        for one, other in zip(found, expected, strict=True):
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
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_transformer_layer(norm_first: bool):
    """PyTorch computes it by one operator, with and without masks."""
    activation = "gelu" if norm_first else "relu"
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, 0.1, activation, batch_first=True, norm_first=norm_first).eval()
    fast = compiled(layer)
    for batch, length in ((2, 5), (3, 17)):
        x = torch.randn(batch, length, 16)
        torch.testing.assert_close(fast(x), layer(x), rtol=1e-4, atol=1e-5)
    hidden = torch.arange(17) >= torch.tensor([[17], [9], [2]])
    later = torch.ones(17, 17, dtype=torch.bool).triu(1)
    for masks in ({"src_key_padding_mask": hidden}, {"src_key_padding_mask": hidden, "src_mask": later}):
        torch.testing.assert_close(fast(x, **masks), layer(x, **masks), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_attention_and_its_weights():
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    fast = compiled(layer)
    x, y = torch.randn(2, 5, 16), torch.randn(2, 9, 16)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for operands, options in (
        ((x, x, x), {}),
        ((x, x, x), {"attn_mask": later, "average_attn_weights": False}),
        ((x, y, y), {"need_weights": False}),
    ):
        for found, expected in zip(fast(*operands, **options), layer(*operands, **options), strict=True):
            torch.testing.assert_close(found, expected)


class _Broken(torch.nn.Module):
    """A layer of two graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        x = self.linear(x)
        torch._dynamo.graph_break()
        return x.relu()


@torch.no_grad()
def test_layers_that_share_a_graph_have_their_own_weights():
    layers = [_Broken() for _ in range(3)]
    graphs = CompileCounterWithBackend(backend)
    fast = [torch.compile(layer, backend=graphs) for layer in layers]
    x = torch.randn(2, 4)
    for _ in range(2):
        for one, layer in zip(fast, layers, strict=True):
            torch.testing.assert_close(one(x), layer(x))
    assert graphs.frame_count == 2  # before the break, and after it


@torch.no_grad()
def test_parameters_that_are_replaced_are_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dynamo, "MOST_PROGRAMS", 3)
    model = mlp()
    fast = compiled(model)
    x = torch.randn(3, 4)
    for _ in range(5):
        model[0].weight = torch.nn.Parameter(torch.randn(8, 4))
        torch.testing.assert_close(fast(x), model(x))
    model[0].bias.data = torch.randn(8)
    torch.testing.assert_close(fast(x), model(x))


@torch.no_grad()
def test_tensors_that_change_at_each_call_are_passed(monkeypatch: pytest.MonkeyPatch):
    built = list[Any]()

    def counted(module: Any, **options: Any) -> Any:
        built.append(module)
        return build(module, **options)

    monkeypatch.setattr(dynamo, "build", counted)
    norm = torch.nn.BatchNorm1d(4)
    twin = copy.deepcopy(norm)
    fast = compiled(norm)
    for _ in range(5):
        x = torch.randn(6, 4)
        torch.testing.assert_close(fast(x), twin(x))  # which writes the running statistics
        norm.weight.add_(1)
        twin.weight.add_(1)
    torch.testing.assert_close(norm.running_mean, twin.running_mean)
    assert len(built) == 2 + dynamo.MOST_CHANGES


def test_random_numbers_follow_the_seed_of_pytorch():
    fast = compiled(torch.nn.Dropout(0.5))
    x = torch.ones(1000)
    first, second = fast(x), fast(x)
    assert set(first.tolist()) == {0.0, 2.0}
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(fast(x), first)


@torch.no_grad()
def test_complex_numbers():
    scale = torch.nn.Parameter(torch.randn(5, dtype=torch.complex64))

    def function(x: Any, z: Any) -> Any:
        return torch.fft.rfft(x) * scale, z.conj() + 1, z.abs()

    fast = compiled(function)
    z = torch.randn(2, 3, dtype=torch.complex64)
    for given in (z, z.conj()):
        x = torch.randn(3, 8)
        for found, expected in zip(fast(x, given), function(x, given), strict=True):
            torch.testing.assert_close(found, expected)


@torch.no_grad()
def test_checks_of_decompositions():
    """They are effects, whose order PyTorch keeps by tokens."""
    layer = torch.nn.Linear(3, 3)

    def function(x: Any) -> Any:
        return layer(torch.linalg.solve(x, torch.eye(3)))

    x = torch.randn(3, 3) + 3 * torch.eye(3)
    torch.testing.assert_close(compiled(function)(x), function(x), rtol=1e-4, atol=1e-5)


def test_results_have_the_strides_of_pytorch():
    def function(x: Any) -> Any:
        y = x * 2
        return y, y.transpose(0, 1), y.sum(0)

    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for found, expected in zip(compiled(function)(x), function(x), strict=True):
        torch.testing.assert_close(found, expected)
        assert found.stride() == expected.stride()


def test_what_is_not_supported_runs_in_pytorch_with_a_warning():
    def function(x: Any) -> Any:
        return x + torch.hash_tensor(x).to(torch.float32)

    x = torch.randn(5)
    with pytest.warns(FallbackWarning, match=r"(?s)a graph runs in PyTorch: .*hash_tensor"):
        found = torch.compile(function, backend=backend)(x)
    torch.testing.assert_close(found, function(x))
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match="hash_tensor"):
        compiled(function)(x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tile": 4}, "expected options among target, fallback, freeze, got tile"),
        ({"target": "cuda", "fallback": True}, 'unknown target "cuda": programs are compiled for CPUs'),
        ({"target": 3}, "the option target of the backend xdsl_relax is a text or a Target, got 3"),
        ({"fallback": "no"}, "the option fallback of the backend xdsl_relax is True or False, got 'no'"),
    ],
)
def test_options_that_there_are_not_are_named(options: dict[str, Any], message: str):
    with pytest.raises(BackendCompilerFailed, match=message):
        compiled(lambda x: x + 1, **options)(torch.ones(2))


def test_there_are_no_modes():
    with pytest.raises(BackendCompilerFailed, match="has no modes, got mode='max-autotune': leave it out"):
        torch.compile(lambda x: x + 1, backend="xdsl_relax", mode="max-autotune")(torch.ones(2))


def test_nothing_is_said_of_what_is_compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        torch.testing.assert_close(compiled(lambda x: x * 2)(torch.ones(3)), torch.full((3,), 2.0))
