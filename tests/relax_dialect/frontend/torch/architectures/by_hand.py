"""Architectures that are in none of the packages, by their definitions."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from tests.relax_dialect.frontend.torch.architectures.model import Architecture

AUTO = Dim.AUTO
Tensor = torch.Tensor


class FourierOperator(nn.Module):
    """A Fourier neural operator of two layers (Li et al., 2021)."""

    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Linear(3, 8), nn.Linear(8, 1)
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(8, 8, 4, dtype=torch.cfloat) / 8) for _ in range(2))
        self.around = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x).transpose(1, 2)
        for weight, around in zip(self.weights, self.around, strict=True):
            spectrum = torch.fft.rfft(x)
            low = torch.einsum("bix,iox->box", spectrum[:, :, :4], weight)
            x = F.gelu(torch.fft.irfft(F.pad(low, (0, spectrum.shape[2] - 4)), x.shape[2]) + around(x))
        return self.leave(x.transpose(1, 2))


class Recommender(nn.Module):
    """A deep learning recommendation model (Naumov et al., 2019)."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
        self.bottom, self.top = nn.Sequential(nn.Linear(5, 8), nn.ReLU()), nn.Linear(8 + 6, 1)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        x = self.bottom(dense)
        parts = torch.stack([x, *(table(sparse[:, at]) for at, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(parts, parts.transpose(1, 2))
        rows, columns = torch.tril_indices(4, 4, -1)
        return torch.sigmoid(self.top(torch.cat([x, pairs[:, rows, columns]], 1)))


class Spectral(nn.Module):
    """A diagonal state space layer, whose convolution is made by Fourier transforms (Gu et al., 2022)."""

    def __init__(self):
        super().__init__()
        self.decay, self.turn = nn.Parameter(torch.rand(6, 4)), nn.Parameter(torch.rand(6, 4))
        self.out = nn.Parameter(torch.randn(6, 4, dtype=torch.cfloat))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[2]
        step = torch.complex(-self.decay.exp(), self.turn)
        powers = torch.exp(step[:, :, None] * torch.arange(length))
        kernel = 2 * torch.einsum("hn,hnl->hl", self.out, powers).real
        spectrum = torch.fft.rfft(x, n=2 * length) * torch.fft.rfft(kernel, n=2 * length)
        return torch.fft.irfft(spectrum, n=2 * length)[..., :length]


class RotaryPairs(nn.Module):
    """Rotary embeddings by complex numbers, as in the first code of Llama."""

    def forward(self, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[1]), 10000 ** (-torch.arange(0, 8, 2) / 8))
        turns = torch.polar(torch.ones_like(angles), angles)
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(z * turns).flatten(2)


class Points(nn.Module):
    """Nearest neighbours of points, and features of them (a layer of a dynamic graph network)."""

    def __init__(self):
        super().__init__()
        self.edge = nn.Linear(6, 8)

    def forward(self, x: Tensor) -> Tensor:
        near = torch.cdist(x, x).topk(3, largest=False).indices
        batch = torch.arange(x.shape[0])[:, None, None]
        edges = torch.cat([x[batch, near] - x[:, :, None], x[:, :, None].expand(-1, -1, 3, -1)], -1)
        return self.edge(edges).amax(2)


class Unpooling(nn.Module):
    """An encoder and a decoder that puts elements back where they were (SegNet)."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Any:
        small, where = F.max_pool2d(F.relu(self.down(x)), 2, return_indices=True)
        return self.up(F.max_unpool2d(small, where, 2))


def architectures() -> list[Architecture]:
    """All of them."""
    rows, both, sizes = {0: AUTO}, {0: AUTO, 1: AUTO}, ((2, 16), (1, 9), (3, 12))
    made = [
        ("fno", FourierOperator, lambda b, n: [torch.randn(b, n, 3)], (both,), sizes),
        ("dlrm", Recommender, lambda b: [torch.randn(b, 5), torch.randint(0, 50, (b, 3, 4))], (rows, rows), None),
        ("s4d", Spectral, lambda b, n: [torch.randn(b, 6, n)], ({0: AUTO, 2: AUTO},), sizes),
        ("rotary", RotaryPairs, lambda b, n: [torch.randn(b, n, 8)], (both,), sizes),
        ("dgcnn", Points, lambda b, n: [torch.randn(b, n, 3)], (both,), sizes),
        ("segnet", Unpooling, lambda b: [torch.randn(b, 3, 8, 8)], (rows,), None),
    ]
    return [
        Architecture(f"by-hand/{name}", make, inputs, dynamic, sizes or ((2,), (1,), (3,)))
        for name, make, inputs, dynamic, sizes in made
    ]
