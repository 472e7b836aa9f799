"""Operators that move elements, make tensors, and find places, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.relax_dialect.frontend.torch.programs import assert_same

torch.manual_seed(0)
X, Y = torch.randn(2, 3, 4), torch.randn(3, 4)
INTS = torch.arange(-6, 6).reshape(3, 4)
MASK = X > 0
PLACES = torch.tensor([[0, 2], [1, 0]])
ALONG = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 2]])[:, None].expand(2, 3, 4).contiguous()
Tensor = torch.Tensor


def manipulation(x: Tensor, i: Tensor) -> Any:
    return [
        *(x.reshape(6, 4), x.view(2, -1), x.flatten(1), x.unflatten(2, (2, 2)), x.ravel(), x.view_as(x)),
        *(x.permute(2, 0, 1), x.transpose(1, 2), i.t(), i.T, x.mT, x.movedim(0, 2), x.swapaxes(0, 1)),
        *(x[:, :1].squeeze(1), x[:, :1].squeeze(), x.squeeze(0), x.unsqueeze(-1), torch.squeeze(x[:1, :1], (0, 1))),
        *(i.expand(2, 3, 4), i.expand(2, -1, -1), torch.broadcast_to(i, (2, 3, 4)), i.expand_as(x)),
        *(
            x.flip(0, 2),
            torch.fliplr(x),
            x.roll(1, 1),
            x.roll((1, -2), (0, 2)),
            x.roll(5),
            x[:0].roll(2, 0),
            torch.rot90(x, 1, (1, 2)),
        ),
        *(x.diagonal(0, 1, 2), x.diagonal(-1, 0, 2), torch.diag_embed(i), x.unfold(2, 2, 1)),
        torch.as_strided(x.contiguous(), (2, 2), (12, 1), 1),
        *(x.clone().resize_(2, 5), x.clone().resize_as_(i), x.sum().resize_(1, 1), x[:0].clone().resize_(0, 3)),
        torch.as_strided_scatter(x.contiguous(), x[:2, 0, :2], (2, 2), (12, 1), 1),
    ]


def joining(x: Tensor, i: Tensor, a: Tensor, b: Tensor) -> Any:
    return [
        *(torch.cat([x, x], 1), torch.cat([i, i.float()]), torch.stack([x, x], -1), torch.hstack([i, i])),
        *(x.split(2, 1), x.split([1, 3], 2), x.chunk(2, 2), x.chunk(3, 0), x.unbind(1), torch.tensor_split(x, 3, 2)),
        *(torch.meshgrid(a, b, indexing="ij"), torch.meshgrid(a, b, indexing="xy"), torch.block_diag(i, i)),
        *(torch.tile(i, (2, 1)), i.repeat(2, 1, 1), i.repeat_interleave(2, 1), i.repeat_interleave(2)),
    ]


def slices(x: Tensor, i: Tensor) -> Any:
    return [
        *(x[1], x[:, 1], x[..., -1], x[:, 1:], x[:, :-1], x[::2, :, ::3], x[:, -2:], x[0, 1], x[-1, -2], x[:, None]),
        *(x.narrow(1, 1, 2), x.select(2, 3), x.index_select(1, torch.tensor([2, 0]))),
        *(torch.take(x, torch.tensor([0, 5, 7])), torch.slice_scatter(x, x[:, :2] * 2, 1, 0, 2)),
        *(torch.select_scatter(x, i.float(), 0, 1), torch.select_scatter(x, x[:, 0], 1, -1)),
        torch.diagonal_scatter(i.float(), torch.ones(3)),
    ]


def index_tensors(x: Tensor, k: Tensor, b: Tensor, y: Tensor) -> Any:
    rows = torch.tensor([0, 1])
    return [
        *(x[:, k], x[k % 2], x[k % 2, k], x[:, k, k], x[k % 2, :, k], x[:, :, k[0]], x[[0, 1], [1, 2]], x[-1:, [-1]]),
        *(
            x[b],
            x[:, b[0, :, 0]],
            x[b[:, :, 0]],
            x.masked_select(b),
            x.masked_select(b[:, :1]),
            x[:1, :1].masked_select(b),
            b.nonzero(),
            torch.argwhere(b),
        ),
        *(torch.nonzero_static(b, size=7), torch.nonzero_static(b, size=99, fill_value=5)),
        x.index_put((rows,), y, accumulate=True),
        x.index_put((rows * 0,), y, accumulate=True),
    ]


def assignments(x: Tensor, i: Tensor, k: Tensor, b: Tensor, y: Tensor) -> Any:
    """Assignments in place of copies."""
    copies = [x.clone() for _ in range(5)]
    copies[0][:, 1] = 5.0
    copies[1][:, :, 1:3] = i[:, 1:3].float()
    copies[2][b] = 0.0
    copies[3][k[0] % 2, k[1]] = y[:2]
    copies[4][:, k[0]] = 7.0
    return copies


def gathering(x: Tensor, k: Tensor) -> Any:
    return [
        *(x.gather(1, k), x.gather(2, k[:, :, :2]), torch.take_along_dim(x, k, 1)),
        *(x.scatter(1, k[:, :1], x), x.scatter(1, k[:, :1], 5.0), x.scatter_add(1, k, x)),
        *(x.scatter_reduce(1, k, x, "amax"), x.scatter_reduce(1, k, x, "prod")),
        x.index_add(1, torch.tensor([0, 2]), x[:, :2], alpha=2),
        x.index_copy(2, torch.tensor([3, 0]), x[:, :, :2]),
        x.index_fill(1, torch.tensor([1]), 9.0),
    ]


def segments(x: Tensor, lengths: Tensor, starts: Tensor) -> Any:
    """Segments that do not cover the data, some of which are empty."""
    kinds = ("sum", "mean", "max", "min", "prod")
    by_lengths = [torch.segment_reduce(x, kind, lengths=lengths, axis=0, unsafe=True) for kind in kinds]
    return by_lengths + [torch.segment_reduce(x, kind, offsets=starts, axis=0, initial=3) for kind in kinds]


def boxes(x: Tensor, edges: Tensor) -> Any:
    """Histograms of all elements, and of several columns."""
    return [
        *(*torch.histogram(x, 5), *torch.histogram(x, 3, range=(-1.0, 2.0)), *torch.histogram(x * 0, 2)),
        *torch.histogram(x, edges, weight=x.exp(), density=True),
        *(torch.histogramdd(x, [2, 3]).hist, *torch.histogramdd(x, [2, 3], range=[0.0, 1, -1, 2]).bin_edges),
        torch.histogramdd(x, [edges, edges + 1], weight=x[:, 0].exp(), density=True).hist,
    ]


def sorting(x: Tensor, i: Tensor) -> Any:
    ends = torch.tensor([-1.0, 0.0, 1.0])
    return [
        *(*x.sort(1), x.sort(-1, descending=True).values, x.argsort(2), torch.msort(x), *x.topk(2, 1)),
        *(*x.topk(2, largest=False), *x.kthvalue(2, 1), x.median(), *x.median(1), *x.median(2, keepdim=True)),
        *(torch.bucketize(x, ends), torch.bucketize(x, ends, right=True), torch.searchsorted(ends, x)),
        *(torch.isin(i, torch.tensor([1, 2])), torch.unique(i % 3), i.nonzero()),
        *torch.unique(i % 3, return_inverse=True, return_counts=True),
    ]


def scalars(x: Tensor, i: Tensor) -> Any:
    """Along an axis a scalar is a vector of one element."""
    s, n = x.sum(), i.sum()
    zero = n * 0
    return [
        *(s.gather(0, zero), s.gather(0, zero[None]), x[0, 0].gather(0, zero + 1), x.gather(0, zero.new_zeros(0))),
        *(s.index_select(0, zero[None]), s.index_fill(0, zero[None], 2), s.index_copy(0, zero[None], x[0, 0, 0])),
        *(s.index_add(0, zero[None], x[0, 0, 0]), s.index_reduce(0, zero[None], x[0, 0, 0], "amax")),
        *(*s.max(0), *s.min(-1), *n.max(0), *s.median(0), *s.nanmedian(0), *s.kthvalue(1), *s.mode(0)),
        *(*s.sort(), *s.topk(1), s.argsort(0), s.argmax(0), s.msort(), s.cumsum(0), s.flip(0)),
        *(s.unfold(0, 1, 1), x[:1].squeeze(()), s.squeeze(0), s.unsqueeze(0)),
        *torch.meshgrid(s, x[0, 0], n.float(), indexing="ij"),
    ]


def flattened(x: Tensor, i: Tensor) -> Any:
    index, source = torch.tensor([3, -1, 3]), torch.tensor([5.0, 6.0, 7.0])
    return [
        x.put(index, source, accumulate=True),
        x.put(index[1:], source[1:]),
        x.take(index),
        i.put(index[:1], i[0, :1]),
    ]


def modes(x: Tensor, i: Tensor) -> Any:
    rounded = (x * 2).round()
    return [*i.mode(0), *i.mode(1, keepdim=True), *rounded.mode(-1), *rounded.mode(0)]


def creation(x: Tensor, i: Tensor) -> Any:
    return [
        *(torch.full((2, 3), 1.5), torch.full_like(x, 2), torch.ones(3), torch.zeros_like(i), x.new_ones(2)),
        *(x.new_full((2,), 3.0), x.new_zeros(3, 2), torch.arange(5), torch.arange(2, 9, 3)),
        *(torch.arange(1.0, 2.0, 0.3), torch.arange(5, 0, -2), torch.linspace(0, 1, 5), torch.eye(3), torch.eye(2, 3)),
        *(x.tril(), x.triu(1), i.tril(-1), F.one_hot(i.abs(), 7), torch.scalar_tensor(3.0), torch.tensor(4.0) + x),
        *(x.clone().fill_(2.0), torch.tril_indices(3, 3), torch.hann_window(8), torch.hamming_window(6)),
        *(torch.logspace(0, 2, 3), torch.tensor([1, 2, 3]) * i[:, :3]),
    ]


CASES = [
    (manipulation, (X, INTS)),
    (joining, (X, INTS, torch.arange(3.0), torch.arange(2.0))),
    (slices, (X, INTS)),
    (index_tensors, (X, PLACES, MASK, Y)),
    (assignments, (X, INTS, PLACES, MASK, Y)),
    (gathering, (X, ALONG)),
    (sorting, (X, INTS)),
    (segments, (torch.randn(6, 2), torch.tensor([2, 0, 3]), torch.tensor([1, 3, 3, 6]))),
    (boxes, (torch.randn(20, 2), torch.tensor([-1.0, 0.0, 0.2, 1.0]))),
    (scalars, (X, INTS)),
    (flattened, (X, INTS)),
    (modes, (X, INTS)),
    (creation, (X, INTS)),
]


@pytest.mark.parametrize(("function", "args"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_values(function: Any, args: Any):
    assert_same(function, args)
