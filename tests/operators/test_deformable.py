"""Convolution over moved windows, and columns folded into images, in every mode, in plain loops."""

import math
from itertools import product

import numpy as np
import pytest
import tvm_ffi

from tests.operators.support import Programs, Tolerance, random


def _params(kernel: tuple[int, int], parts: int, dtype: str = "f32") -> str:
    height, width = kernel
    places = parts * height * width
    return (
        f"%x: !relax.tensor<[n, c, h, w], {dtype}>, %k: !relax.tensor<[o, _, {height}, {width}], {dtype}>, "
        f"%off: !relax.tensor<[n, {2 * places}, _, _], {dtype}>, %mask: !relax.tensor<[n, {places}, _, _], {dtype}>"
    )


DEFORM = "relax.nn.deform_conv2d %x, %k, %off, %mask"
FOLD = "%x: !relax.tensor<[n, c, l], {}>, %s: !relax.shape<[h, w]>"
PROGRAMS = Programs(
    {
        "plain": (_params((2, 2), 1), DEFORM),
        "grouped": (
            _params((3, 2), 2),
            f"{DEFORM} strides = [2, 2] padding = [1, 1, 1, 1] dilation = [2, 2] groups = 2 offset_groups = 2",
        ),
        "half": (_params((1, 1), 1, "f16"), DEFORM),
        "fold": (FOLD.format("f32"), "relax.nn.col2im %x, %s window = [2, 3]"),
        "fold_all": (
            FOLD.format("i32"),
            "relax.nn.col2im %x, %s window = [2, 2] strides = [2, 1] padding = [1, 0, 0, 1] dilation = [1, 2]",
        ),
        "fold_line": (
            "%x: !relax.tensor<[n, c, l], f16>, %s: !relax.shape<[w]>",
            "relax.nn.col2im %x, %s window = [2]",
        ),
    }
)


def _at(image: np.ndarray, y: float, x: float) -> float:
    top, left = math.floor(y), math.floor(x)
    total = 0.0
    for row, column in product((top, top + 1), (left, left + 1)):
        if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
            total += float(image[row, column]) * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def _deform(x, k, offsets, mask, s: int, p: int, d: int, groups: int, parts: int) -> np.ndarray:
    (o, channels, height, width), (n, _, rows, columns) = k.shape, mask.shape
    result = np.zeros((n, o, rows, columns))
    for b, f, i, j in np.ndindex(result.shape):
        for c, ky, kx in product(range(channels), range(height), range(width)):
            channel = f // (o // groups) * channels + c
            place = (channel // (x.shape[1] // parts) * height + ky) * width + kx
            y = i * s + ky * d - p + float(offsets[b, 2 * place, i, j])
            across = j * s + kx * d - p + float(offsets[b, 2 * place + 1, i, j])
            value = _at(x[b, channel], y, across) * float(mask[b, place, i, j])
            result[b, f, i, j] += value * float(k[f, c, ky, kx])
    return result.astype(x.dtype)


def _operands(shape: tuple[int, ...], kernel: tuple[int, ...], s: int, p: int, d: int, parts: int, dtype: str = "f32"):
    rows, columns = ((a + 2 * p - d * (b - 1) - 1) // s + 1 for a, b in zip(shape[2:], kernel[2:], strict=True))
    places = parts * kernel[2] * kernel[3]
    return [
        random(dtype, *shape),
        random(dtype, *kernel, seed=1),
        random(dtype, shape[0], 2 * places, rows, columns, seed=2, low=-2, high=2),
        random(dtype, shape[0], places, rows, columns, seed=3, low=0, high=1),
    ]


NEAR = Tolerance(1e-4, 1e-3)


@pytest.mark.parametrize("shape", [(1, 1, 2, 2), (2, 3, 4, 5), (0, 1, 3, 3)])
def test_deform_conv(shape: tuple[int, ...]):
    args = _operands(shape, (2, shape[1], 2, 2), 1, 0, 1, 1)
    PROGRAMS.check("plain", args, _deform(*args, 1, 0, 1, 1, 1), NEAR)
    args = _operands((shape[0], 4, 6, 7), (6, 2, 3, 2), 2, 1, 2, 2)
    PROGRAMS.check("grouped", args, _deform(*args, 2, 1, 2, 2, 2), NEAR)
    args = _operands(shape, (2, shape[1], 1, 1), 1, 0, 1, 1, "f16")
    PROGRAMS.check("half", args, _deform(*args, 1, 0, 1, 1, 1), Tolerance(4e-3, 4e-3))


def _fold(x: np.ndarray, size, window, s, p, d, counts) -> np.ndarray:
    result = np.zeros((x.shape[0], x.shape[1] // math.prod(window), *size))
    columns = x.reshape(*result.shape[:2], *window, *counts)
    for at in np.ndindex(*window, *counts):
        k, i = at[: len(window)], at[len(window) :]
        place = [i[a] * s[a] + k[a] * d[a] - p[a] for a in range(len(window))]
        if all(0 <= place[a] < size[a] for a in range(len(window))):
            result[(..., *place)] += columns[(..., *at)]
    return result.astype(x.dtype)


@pytest.mark.parametrize(("batch", "size"), [(1, (2, 3)), (2, (5, 4)), (0, (3, 3))])
def test_col2im(batch: int, size: tuple[int, int]):
    h, w = size
    x, shape = random("f32", batch, 12, (h - 1) * (w - 2)), tvm_ffi.Shape(size)
    PROGRAMS.check("fold", [x, shape], _fold(x, size, (2, 3), (1, 1), (0, 0), (1, 1), (h - 1, w - 2)))
    counts = ((h + 1 - 2) // 2 + 1, w + 1 - 2 - 1 + 1)
    x = random("i32", batch, 8, math.prod(counts))
    PROGRAMS.check("fold_all", [x, shape], _fold(x, size, (2, 2), (2, 1), (1, 0), (1, 2), counts))
    x, shape = random("f16", batch, 2, w - 1), tvm_ffi.Shape((w,))
    PROGRAMS.check("fold_line", [x, shape], _fold(x, (w,), (2,), (1,), (0,), (1,), (w - 1,)))
