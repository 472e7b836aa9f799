"""Whole models against PyTorch, with sizes that are symbols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from lowering import build
from relax_dialect.frontend.torch import import_file, whole_recurrent_layers
from tests.relax_dialect.frontend.torch.programs import assert_close, assert_same, export
from vm_dialect import VirtualMachine

Tensor = torch.Tensor
BATCH, TIME = Dim("batch", min=0, max=64), Dim("time", min=1, max=32)
WIDTH, HEADS, WORDS = 16, 4, 50


class Residual(nn.Module):
    """A block of a residual network."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)
        )
        self.shortcut = nn.Sequential(nn.Conv2d(4, 8, 1, 2, bias=False), nn.BatchNorm2d(8))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


class Recurrent(nn.Module):
    """Layers and cells with states, and outputs in a nest of containers."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.gru, self.rnn = nn.GRU(10, 4), nn.RNN(4, 3, nonlinearity="relu")
        self.cell, self.gated = nn.LSTMCell(3, 3), nn.GRUCell(3, 3)

    def forward(self, x: Tensor) -> Any:
        y, (h, c) = self.lstm(x)
        z, last = self.gru(y.transpose(0, 1))
        w, _ = self.rnn(z)
        state = self.cell(w[-1])
        return {"y": y, "states": [h, c, (z, last)], "cell": state, "gated": self.gated(state[0])}


class Projected(nn.Module):
    """LSTM layers whose hidden states are projected."""

    def __init__(self):
        super().__init__()
        self.both = nn.LSTM(6, 5, 2, proj_size=3, bidirectional=True, batch_first=True)
        self.one = nn.LSTM(6, 4, proj_size=2, bias=False, batch_first=True)

    def forward(self, x: Tensor) -> Any:
        y, states = self.both(x)
        return self.one(y), states


class Block(nn.Module):
    """A block of a decoder: causal attention, and a gated layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.gate, self.down = nn.Linear(WIDTH, 32), nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (part.view(batch, time, HEADS, width // HEADS).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, width))
        z = self.second(x)
        return x + self.down(F.silu(self.gate(z)) * self.up(z))


class Decoder(nn.Module):
    """A language model; the weights of the embedding are those of the output."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(32, WIDTH)
        self.blocks, self.norm = nn.Sequential(Block(), Block()), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class Rotary(nn.Module):
    """Attention that is written out, with rotary embeddings and a mask of minus infinity."""

    def forward(self, x: Tensor) -> Tensor:
        time = x.shape[1]
        angles = torch.arange(time, dtype=torch.float32)[:, None] * (10000 ** (-torch.arange(0, 8, 2) / 8.0))[None]
        cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
        q = x * cos + torch.cat([-x[..., 4:], x[..., :4]], -1) * sin
        mask = torch.full((time, time), float("-inf")).triu(1)
        return (q @ q.transpose(1, 2) / 8**0.5 + mask).softmax(-1) @ x


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Conv2d(3, 8, 4, 2, 1), nn.ConvTranspose2d(8, 3, 4, 2, 1)
        self.enlarge = nn.Upsample(scale_factor=2, mode="bilinear")

    def forward(self, x: Tensor) -> Any:
        return torch.sigmoid(self.decode(F.leaky_relu(self.encode(x), 0.2))), self.enlarge(x)


class Patches(nn.Module):
    """A vision transformer of one layer."""

    def __init__(self):
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, WIDTH, 4, 4), nn.LayerNorm(WIDTH)
        self.label, self.places = nn.Parameter(torch.randn(1, 1, WIDTH)), nn.Parameter(torch.randn(1, 5, WIDTH))
        self.attention, self.head = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.label.expand(x.shape[0], -1, -1), x], 1) + self.places
        y = self.norm(x)
        z, weights = self.attention(y, y, y)
        return self.head((x + z)[:, 0]), weights


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4), nn.Softmax(-1))


def convolutional() -> nn.Module:
    pooled = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(pooled, nn.Conv2d(8, 16, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def _words(*shape: int) -> Tensor:
    return torch.randint(0, WORDS, shape)


MODELS: dict[str, tuple[Any, Any, list[Tensor]]] = {
    "perceptron": (perceptron, {0: BATCH}, [torch.randn(n, 8) for n in (3, 1, 0)]),
    "convolutional": (convolutional, {0: BATCH}, [torch.randn(n, 3, 12, 12) for n in (2, 1, 0)]),
    "residual": (Residual, {0: BATCH}, [torch.randn(n, 4, 8, 8) for n in (2, 1)]),
    "recurrent": (Recurrent, {0: Dim.AUTO}, [torch.randn(n, 7, 6) for n in (3, 1)]),
    "projected": (Projected, {0: Dim.AUTO}, [torch.randn(n, 4, 6) for n in (3, 1)]),
    "encoder": (encoder, {0: BATCH, 1: TIME}, [torch.randn(*size, WIDTH) for size in ((2, 5), (1, 3))]),
    "decoder": (Decoder, {0: BATCH, 1: TIME}, [_words(2, 5), _words(1, 1), _words(3, 2)]),
    "rotary": (Rotary, {0: BATCH, 1: TIME}, [torch.randn(2, 5, 8), torch.randn(1, 7, 8)]),
    "autoencoder": (
        Autoencoder,
        dict.fromkeys((0, 2, 3), Dim.AUTO),
        [torch.randn(2, 3, 8, 12), torch.randn(1, 3, 6, 10)],
    ),
    "patches": (Patches, {0: BATCH}, [torch.randn(2, 3, 8, 8), torch.randn(3, 3, 8, 8)]),
}


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str):
    torch.manual_seed(0)
    make, dynamic, inputs = MODELS[name]
    assert_same(make().eval(), [inputs[0]], (dynamic,), *([each] for each in inputs[1:]))


@pytest.mark.parametrize("make", [Recurrent, Projected])
def test_the_length_of_recurrent_layers_stays_open(make: type[nn.Module]):
    torch.manual_seed(0)
    inputs = [torch.randn(*size, 6) for size in ((3, 7), (1, 2), (2, 1))]
    with whole_recurrent_layers():
        assert_same(make().eval(), [inputs[0]], ({0: Dim.AUTO, 1: Dim.AUTO},), *([each] for each in inputs[1:]))


def test_a_file_with_whole_recurrent_layers(tmp_path: Path):
    model, path = nn.GRU(3, 4, batch_first=True).eval(), tmp_path / "gru.pt2"
    with whole_recurrent_layers():
        program = export(model, (torch.randn(2, 7, 3),), ({0: BATCH, 1: TIME},))
    torch.export.save(program, path)
    main = VirtualMachine(build(import_file(path), mode="bytecode"))["main"]
    x = torch.randn(1, 3, 3)
    assert_close(main(x), list(model(x)))
