"""Layers against PyTorch: products, normalisation, convolution, pooling, padding, images, attention, recurrence."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.relax_dialect.frontend.torch.programs import assert_same

torch.manual_seed(0)
X, Y = torch.randn(2, 3, 4), torch.randn(3, 4)
IMAGE, LINE, SPACE = torch.randn(2, 4, 7, 6), torch.randn(2, 4, 9), torch.randn(2, 4, 5, 5, 5)
Tensor = torch.Tensor


def products(x: Tensor, y: Tensor, w: Tensor, batch: Tensor, bias: Tensor) -> Any:
    return [
        *(F.linear(x, w.T, bias), F.linear(x, w.T), y @ w, torch.bmm(x, batch), x @ w, x @ y[0], y[0] @ w),
        *(
            torch.mv(y, y[0]),
            torch.dot(y[0], y[1]),
            torch.outer(y[0], y[1].double()),
            torch.addmm(bias, y, w, beta=0.5, alpha=2),
        ),
        torch.baddbmm(torch.zeros(2, 3, 5), x, batch, alpha=0.5),
        *(torch.addmm(bias / 0, y, w, beta=0), torch.baddbmm(bias / 0 - bias / 0, x, batch, beta=0, alpha=2)),
        *(torch.einsum("bij,jk->bik", x, w), torch.einsum("...ij,...jk", x, batch), torch.einsum("bij,bij->b", x, x)),
        *(torch.einsum("ij->i", (y * 5).int()), torch.einsum("ij,ij->ij", (y * 5).int(), y.int())),
        *(torch.inner(y, y), torch.tensordot(x, w, 1), torch.kron(y, y), F.bilinear(y, y, torch.ones(2, 4, 4))),
        *(F.cosine_similarity(y, y + 1), F.pairwise_distance(y, y + 0.5), F.mse_loss(x, x * 2)),
        F.cross_entropy(y, torch.tensor([0, 1, 3])),
    ]


def normalisation(image: Tensor, x: Tensor, g: Tensor, b: Tensor, v: Tensor) -> Any:
    return [
        *(F.layer_norm(x, (4,), g, b), F.layer_norm(x, (3, 4)), F.layer_norm(x, (4,), g)),
        *(F.group_norm(image, 2, g, b), F.group_norm(image, 4), F.instance_norm(image)),
        *(F.batch_norm(image, b, v, g, b), F.batch_norm(image, b, v), F.local_response_norm(image, 2)),
        *(F.rms_norm(x, (4,), g), F.rms_norm(x, (4,)), F.instance_norm(image, weight=g, bias=b)),
    ]


def convolutions(image: Tensor, line: Tensor, space: Tensor) -> Any:
    w, narrow, solid = torch.ones(6, 4, 3, 3).cumsum(2), torch.ones(5, 4, 3).cumsum(2), torch.ones(3, 4, 2, 2, 2)
    bias, back = torch.arange(6.0), torch.ones(4, 3, 3, 2).cumsum(2)
    return [
        *(F.conv2d(image, w, bias), F.conv2d(image, w, bias, 2, 1), F.conv2d(image, w, None, (1, 2), (2, 1), (2, 1))),
        *(F.conv2d(image, w[:4, :1], None, 1, 1, 1, 4), F.conv2d(image, w, padding="same")),
        *(F.conv2d(image, w, padding="valid"), F.conv1d(line, narrow, padding=1), F.conv1d(line[0], narrow)),
        *(F.conv3d(space, solid), F.conv_transpose2d(image, back, None, 2, 1, 1)),
        *(F.conv_transpose2d(image, back, bias[:3]), F.conv_transpose1d(line, narrow.transpose(0, 1), stride=2)),
        *(F.conv_transpose3d(space, solid.transpose(0, 1)), F.conv_transpose2d(image[0], back, dilation=2)),
        F.unfold(image, 2),
    ]


def pooling(image: Tensor, line: Tensor, space: Tensor) -> Any:
    return [
        *(F.max_pool2d(image, 2), F.max_pool2d(image, 3, 2, 1, ceil_mode=True), F.max_pool2d(image, 2, 1, 0, 2)),
        *(F.max_pool1d(line, 3), F.max_pool3d(space, 2), F.avg_pool2d(image, 3, 2, 1)),
        *(F.avg_pool2d(image, 3, 2, 1, count_include_pad=False), F.avg_pool2d(image, 3, 2, 1, ceil_mode=True)),
        *(F.avg_pool2d(image, 99, ceil_mode=True), F.avg_pool2d(image, 99, 99, 3, ceil_mode=True)),
        F.max_pool2d(image, (99, 3), ceil_mode=True),
        *(F.avg_pool2d(image, 2, divisor_override=3), F.avg_pool1d(line, 3, 2), F.avg_pool3d(space, 2)),
        *(F.adaptive_avg_pool2d(image, 1), F.adaptive_avg_pool2d(image, (3, 2)), F.adaptive_avg_pool1d(line, 4)),
        *(F.adaptive_max_pool2d(image, 1), F.adaptive_max_pool1d(line, 3), F.avg_pool2d(image[0], 2)),
    ]


def divided_and_spread(image: Tensor, integers: Tensor, samples: Tensor) -> Any:
    """Sums over a divisor, windows that samples move, and gradients of the greatest elements."""
    rows, columns = (image.shape[-2] + 1) // 2, (image.shape[-1] + 1) // 2
    gradients = torch.ones(*image.shape[:2], rows, columns)
    where = torch.arange(gradients.numel()).reshape(gradients.shape) % (image.shape[-1] * image.shape[-2])
    return [
        *(F.avg_pool2d(image, 3, 2, 1, ceil_mode=True, divisor_override=4), F.avg_pool2d(integers, 3, 2, 1)),
        *(F.avg_pool2d(image, (3, 2), 2, (1, 0), True, False, 5), F.avg_pool2d(integers, (3, 2), 2, 1, True, True, 4)),
        *F.fractional_max_pool2d(image, (3, 2), (3, 4), return_indices=True, _random_samples=samples),
        F.fractional_max_pool2d(image[0], (3, 2), (3, 1), _random_samples=samples[:1]),
        torch.ops.aten.max_pool2d_with_indices_backward(gradients, image, 3, 2, 1, 1, False, where),
    ]


def places_of_the_greatest(image: Tensor, line: Tensor, space: Tensor) -> Any:
    low = torch.full_like(image, float("-inf"))
    low[0, 0, 3, 2] = float("nan")
    pool, adaptive = (partial(each, return_indices=True) for each in (F.max_pool2d, F.adaptive_max_pool2d))
    line_pool, line_adaptive = (partial(each, return_indices=True) for each in (F.max_pool1d, F.adaptive_max_pool1d))
    found = [
        *(pool(image, 2), pool(image, 3, 2, 1, ceil_mode=True), pool(image, 3, 1, 1, 2), pool(image[0], (3, 2))),
        *(line_pool(line, 3, 2), F.max_pool3d(space, 2, return_indices=True), pool(low, 3, 2, 1, 1)),
        *(adaptive(image, (3, 4)), line_adaptive(line, 4), line_adaptive(line, 1)),
    ]
    return [
        *(*found, F.adaptive_max_pool2d(image, (4, 5)), F.adaptive_max_pool3d(space, (2, 3, 5))),
        *(F.max_unpool2d(*found[0], 2), F.max_unpool2d(*found[0], 2, output_size=(7, 6))),
        *(F.max_unpool1d(*found[4], 3, 2), F.max_unpool3d(*found[5], 2, output_size=(5, 5, 5))),
    ]


def distances(x: Tensor, y: Tensor) -> Any:
    return [
        *(torch.cdist(x, y, p) for p in (0, 1, 2, 2.5, float("inf"))),
        *(torch.cdist(x, y[:1]), torch.cdist(x[0], y[0]), torch.cdist(x[:, :0], y)),
    ]


def bags(i: Tensor, table: Tensor, weights: Tensor) -> Any:
    flat, starts = i.flatten(), torch.tensor([0, 0, 2, 6])
    return [
        *(F.embedding_bag(i, table, mode=mode) for mode in ("sum", "mean", "max")),
        *(F.embedding_bag(flat, table, starts, mode=mode) for mode in ("sum", "mean", "max")),
        *(F.embedding_bag(flat, table, starts, mode=mode, padding_idx=1) for mode in ("sum", "mean", "max")),
        F.embedding_bag(i, table, mode="sum", per_sample_weights=weights),
        F.embedding_bag(flat, table, torch.tensor([0, 3, 7]), mode="sum", include_last_offset=True),
    ]


def groups(x: Tensor, w: Tensor, ends: Tensor) -> Any:
    def grouped(*args: Tensor, **offs: Tensor) -> Tensor:
        return torch._grouped_mm(*(each.bfloat16() for each in args), **offs).float()

    return [
        *(grouped(x, w, offs=ends), grouped(w, w.mT), grouped(x.T, x, offs=ends), grouped(w.mT, x.T, offs=ends)),
        torch._int_mm((x * 5).to(torch.int8), (w[0] * 5).to(torch.int8)),
    ]


def padding(image: Tensor, line: Tensor) -> Any:
    n = line.shape[-1]
    return [
        *(F.pad(image, (1, 2)), F.pad(image, (1, 0, 2, 1), value=0.5), F.pad(image, (-1, -1))),
        *(F.pad(image, (1, 2, 2, 1), mode=mode) for mode in ("reflect", "replicate")),
        *(F.pad(line, (2, 1), mode=mode) for mode in ("circular", "reflect")),
        *(F.pad(line, pads, mode="replicate") for pads in ((-n, n), (n, -n), (-n - 1, n + 3), (1 - n, n))),
    ]


def images(image: Tensor, grid: Tensor, theta: Tensor) -> Any:
    return [
        *(F.interpolate(image, scale_factor=2), F.interpolate(image, (5, 9))),
        F.interpolate(image, scale_factor=1.7, mode="bilinear"),
        F.interpolate(image, (10, 11), mode="bilinear", align_corners=True),
        *(F.interpolate(image, (10, 11), mode="bicubic"), F.interpolate(image[:, :, 0], 8, mode="linear")),
        F.interpolate(image, (4, 3), mode="bilinear", antialias=True),
        F.interpolate(image, scale_factor=1.5, mode="nearest-exact"),
        F.grid_sample(image, grid, align_corners=False),
        F.grid_sample(image, grid, mode="nearest", padding_mode="border", align_corners=True),
        F.grid_sample(image, grid, mode="bicubic", padding_mode="reflection", align_corners=False),
        F.grid_sample(image, grid * 1.7, mode="bicubic", padding_mode="border", align_corners=True),
        *(F.affine_grid(theta, (2, 4, 5, 3), align_corners=False), F.pixel_shuffle(image, 2)),
        *(F.pixel_unshuffle(image[:, :, :6], 2), F.channel_shuffle(image, 2)),
    ]


def attention(q: Tensor, k: Tensor, few: Tensor, seen: Tensor) -> Any:
    sdpa = F.scaled_dot_product_attention
    return [
        *(sdpa(q, k, k), sdpa(q, q, q, is_causal=True), sdpa(q, few, few, enable_gqa=True), sdpa(q, k, k, scale=0.3)),
        *(
            sdpa(q, k, k, attn_mask=seen),
            sdpa(q, k, k, attn_mask=seen.float()),
            sdpa(q, k, k, attn_mask=(seen & False).float().log()),
            sdpa(q[0], k[0], k[0]),
            sdpa(q[0, 0], k[0, 0], k[0, 0]),
            sdpa(q[:1], k, k[:1]),
            sdpa(q[0, :1], k[0], k[0, 0]),
        ),
        *(sdpa(q, k, k, attn_mask=seen[None, None].expand(2, 1, 5, 6)), sdpa(q, k, k, attn_mask=seen & False)),
        F.embedding(torch.tensor([[1, 2], [0, 3]]), k[0, 0]),
    ]


def resized_by_factors(image: Tensor) -> Any:
    """Factors that are not those of the sizes, sizes that stay, and corners that are aligned whatever the factor."""
    two = [
        F.interpolate(image[:, :2], scale_factor=factor, mode=mode, align_corners=aligned, antialias=smooth)
        for factor in (1.1, (1.7, 0.6), 2.05)
        for mode, aligned, smooth in (
            ("nearest", None, False),
            ("nearest-exact", None, False),
            ("bilinear", True, False),
            ("bilinear", False, True),
            ("bilinear", True, True),
            ("bicubic", False, False),
        )
    ]
    line = image[:, :2, 0, :5]
    return [*two, *(F.interpolate(line, scale_factor=1.1, mode=mode) for mode in ("nearest", "linear"))]


def statistics(x: Tensor) -> Any:
    """Normalisations also say the mean and the inverse deviation."""
    channels = torch.ones(x.shape[1])
    return [
        *torch.native_layer_norm(x, x.shape[2:], None, None, 1e-5),
        *torch.native_group_norm(x, channels * 2, None, x.shape[0], x.shape[1], x.shape[2] * x.shape[3], 2, 1e-5),
        *torch._native_batch_norm_legit(x, channels, channels, True, 0.1, 1e-5),
        *torch.ops.aten._native_batch_norm_legit_no_training(x, channels, None, channels, channels, 0.1, 1e-5),
    ]


CASES = [
    (statistics, (IMAGE,)),
    (resized_by_factors, (IMAGE,)),
    (products, (X, Y, torch.randn(4, 5), torch.randn(2, 4, 5), torch.randn(5))),
    (normalisation, (IMAGE, X, torch.rand(4), torch.randn(4), torch.rand(4))),
    (convolutions, (IMAGE, LINE, SPACE)),
    (pooling, (IMAGE, LINE, SPACE)),
    (divided_and_spread, (IMAGE, (IMAGE * 9).long(), torch.rand(*IMAGE.shape[:2], 2))),
    (places_of_the_greatest, (IMAGE, LINE, SPACE)),
    (distances, (torch.randn(2, 5, 3), torch.randn(2, 4, 3))),
    (bags, (torch.randint(0, 4, (3, 3)), torch.randn(4, 5), torch.randn(3, 3))),
    (
        groups,
        (torch.randn(32, 16).round(), torch.randn(4, 16, 8).round(), torch.tensor([8, 8, 24, 32], dtype=torch.int32)),
    ),
    (padding, (IMAGE, LINE)),
    (images, (IMAGE, torch.rand(2, 5, 3, 2) * 2 - 1, torch.randn(2, 2, 3))),
    (
        attention,
        (torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8), torch.randn(5, 6) > 0),
    ),
]


@pytest.mark.parametrize(("function", "args"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_values(function: Any, args: Any):
    assert_same(function, args)
