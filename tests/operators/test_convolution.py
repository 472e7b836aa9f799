"""Convolutions and their transposes against sums written out, in every mode."""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from relax_dialect.interpreter.operators import einsum
from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, slow_ones, wide


@dataclass(frozen=True)
class Case:
    """A convolution; sizes are those of the kernel, numbers are one per spatial dimension, padding two."""

    rank: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    transposed: bool = False
    output_padding: tuple[int, ...] = ()
    filters: int = 6
    channels: int = 4

    @property
    def body(self) -> str:
        lists = {"strides": self.strides, "padding": self.padding, "dilation": self.dilation}
        if any(self.output_padding):
            lists["output_padding"] = self.output_padding
        text = " ".join(f"{name} = [{', '.join(map(str, values))}]" for name, values in lists.items())
        suffix = "_transpose" if self.transposed else ""
        return f"relax.nn.conv{self.rank}d{suffix} %x, %w {text} groups = {self.groups}"

    @property
    def params(self) -> str:
        spatial = "pqr"[: self.rank]
        pair = (self.channels, self.filters)
        first, second = pair if self.transposed else pair[::-1]
        kernel = (first, second // self.groups, *self.sizes)
        shape = ", ".join(["n", str(self.channels), *spatial])
        return f"%x: !relax.tensor<[{shape}], f32>, %w: !relax.tensor<[{', '.join(map(str, kernel))}], f32>"


CASES: dict[str, Case] = {
    "line": Case(1, (3,), (1,), (0, 0), (1,)),
    "line_all": Case(1, (3,), (2,), (2, 1), (2,), 2),
    "plane": Case(2, (3, 2), (1, 1), (0, 0, 0, 0), (1, 1)),
    "plane_padded": Case(2, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "plane_all": Case(2, (2, 3), (2, 1), (1, 0, 2, 1), (1, 2), 2),
    "space": Case(3, (2, 1, 2), (1, 2, 1), (1, 0, 0, 0, 1, 1), (1, 1, 1)),
    "line_back": Case(1, (3,), (2,), (1, 0), (1,), 1, True, (1,)),
    "plane_back": Case(2, (3, 2), (1, 1), (0, 0, 0, 0), (1, 1), 1, True),
    "plane_back_all": Case(2, (2, 3), (2, 3), (1, 0, 1, 2), (1, 2), 2, True, (1, 2)),
    "plane_back_in_parts": Case(2, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1, True, (1, 1), filters=16),
    "plane_back_by_three": Case(2, (4, 5), (3, 3), (0, 2, 1, 0), (1, 1), 1, True, (0, 2), filters=16),
    "plane_back_cut": Case(2, (5, 3), (2, 2), (4, 2, 3, 0), (1, 1), 1, True, filters=16),
    "plane_back_reached": Case(2, (4, 3), (1, 2), (2, 1, 2, 2), (1, 1), 1, True),
    "line_back_few": Case(1, (7,), (2,), (3, 2), (1,), 1, True, (1,), filters=7, channels=64),
    "plane_back_few": Case(2, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1, True, (1, 1), filters=3, channels=32),
    "plane_back_few_cut": Case(2, (4, 5), (2, 3), (2, 3, 1, 0), (1, 1), 1, True, (0, 2), filters=2, channels=64),
    "space_back_few": Case(3, (3, 3, 3), (2, 2, 2), (0, 1, 2, 1, 0, 2), (1, 1, 1), 1, True, filters=1, channels=33),
    "space_back": Case(3, (2, 1, 2), (1, 2, 1), (1, 0, 0, 0, 0, 1), (1, 1, 1), 1, True),
}
SHAPES = {1: ((0, 7), (1, 5), (2, 9)), 2: ((0, 5, 6), (1, 4, 5), (2, 7, 8)), 3: ((1, 3, 2, 4), (2, 2, 3, 3))}
IMAGE = "%x: !relax.tensor<[n, p, q, c], f32>"
LINE = "%x: !relax.tensor<[n, c, p], {0}>, %w: !relax.tensor<[o, c, 3], {0}>"
RUNS = [(name, shape) for name, case in CASES.items() for shape in SHAPES[case.rank]]
RUNS += [("plane_back_reached", shape) for shape in ((1, 1, 1), (1, 2, 1), (2, 1, 3))]
RUNS += [("plane_back_few", shape) for shape in ((1, 1, 1), (2, 1, 33), (1, 17, 16))]
SELDOM = (
    *("line_all", "plane", "space", "plane_back", "plane_back_in_parts", "plane_back_by_three", "plane_back_reached"),
    *("plane_back_few_cut", "space_back", "line_f16", "line_bf16", "line_i32"),
)
PROGRAMS = Programs(
    {
        **{name: (case.params, case.body) for name, case in CASES.items()},
        "channels_last": (
            f"{IMAGE}, %w: !relax.tensor<[3, 3, c, o], f32>",
            'relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "HWIO" padding = [1, 1, 1, 1]',
        ),
        "other_layout": (
            f"{IMAGE}, %w: !relax.tensor<[o, c, k, l], f32>",
            'relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "OIHW" out_layout = "NCHW"',
        ),
        "depthwise": (
            "%x: !relax.tensor<[n, 3, p, q], f32>, %w: !relax.tensor<[3, 1, 2, 2], f32>",
            "relax.nn.conv2d %x, %w groups = 3",
        ),
        **{
            f"line_{d}": (
                LINE.format(d),
                "relax.nn.conv1d %x, %w",
            )
            for d in ("f16", "bf16", "f64", "i32")
        },
        "wider": (
            LINE.format("i8"),
            "relax.nn.conv1d %x, %w out_dtype = i32",
        ),
    },
    SELDOM,
)
NEAR = Tolerance(1e-5, 1e-4)


def _convolution(case: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Every product is added where it belongs."""
    lengths, inputs, outputs = x.shape[2:], case.channels // case.groups, case.filters // case.groups
    before, after = case.padding[: case.rank], case.padding[case.rank :]
    steps = list(zip(lengths, case.sizes, case.strides, case.dilation, before, after, strict=True))
    if case.transposed:
        extra = case.output_padding or (0,) * case.rank
        shape = [(n - 1) * s + d * (k - 1) + 1 - p - q + e for (n, k, s, d, p, q), e in zip(steps, extra, strict=True)]
    else:
        shape = [(n + p + q - d * (k - 1) - 1) // s + 1 for n, k, s, d, p, q in steps]
    result = np.zeros((x.shape[0], case.filters, *shape))
    source, target = (lengths, shape) if case.transposed else (shape, lengths)
    for at in np.ndindex(*source):
        for k in np.ndindex(*case.sizes):
            place = tuple(a * s + b * d - p for a, b, (_, _, s, d, p, _) in zip(at, k, steps, strict=True))
            if not all(0 <= each < length for each, length in zip(place, target, strict=True)):
                continue
            for g in range(case.groups):
                own, made = slice(g * inputs, (g + 1) * inputs), slice(g * outputs, (g + 1) * outputs)
                if case.transposed:
                    result[(slice(None), made, *place)] += x[(slice(None), own, *at)] @ w[(own, slice(None), *k)]
                else:
                    result[(slice(None), made, *at)] += x[(slice(None), own, *place)] @ w[(made, slice(None), *k)].T
    return result


@pytest.mark.parametrize(
    ("name", "shape"),
    [pytest.param(name, shape, marks=[pytest.mark.slow] * (name in SELDOM)) for name, shape in RUNS],
)
def test_convolution(name: str, shape: tuple[int, ...]):
    case = CASES[name]
    x = random("f32", shape[0], case.channels, *shape[1:], low=-1, high=1)
    second = (case.filters if case.transposed else case.channels) // case.groups
    kernel = (case.channels, second) if case.transposed else (case.filters, second)
    w = random("f32", *kernel, *case.sizes, seed=1, low=-1, high=1)
    PROGRAMS.check(name, [x, w], _convolution(case, wide(x), wide(w)).astype(np.float32), NEAR)


@pytest.mark.parametrize("size", [(1, 1, 1), (2, 5, 6)])
@pytest.mark.parametrize(("channels", "filters"), [(1, 1), (3, 2), (0, 2), (2, 0)])
def test_layouts(size: tuple[int, int, int], channels: int, filters: int):
    n, h, w = size
    x = random("f32", n, h, w, channels, low=-1, high=1)
    kernel = random("f32", 3, 3, channels, filters, seed=1, low=-1, high=1)
    padded = np.pad(wide(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = sum(padded[:, i : i + h, j : j + w] @ wide(kernel)[i, j] for i in range(3) for j in range(3))
    PROGRAMS.check("channels_last", [x, kernel], np.asarray(expected, np.float32), NEAR)
    point = random("f32", filters, channels, 1, 1, seed=2)
    expected = einsum("nhwc,oc->nohw", wide(x), wide(point)[..., 0, 0])
    PROGRAMS.check("other_layout", [x, point], expected.astype(np.float32), NEAR)


def test_a_filter_for_each_channel():
    x, w = random("f32", 2, 3, 4, 5), random("f32", 3, 1, 2, 2, seed=1)
    expected = sum(x[:, :, i : i + 3, j : j + 4] * w[:, 0, i, j].reshape(3, 1, 1) for i in range(2) for j in range(2))
    PROGRAMS.check("depthwise", [x, w], np.asarray(expected, np.float32), NEAR)


@pytest.mark.parametrize("name", slow_ones(["line_f16", "line_bf16", "line_f64", "line_i32", "wider"], SELDOM))
def test_other_dtypes(name: str):
    dtype, target = (name[5:], DTYPES[name[5:]]) if name != "wider" else ("i8", np.int32)
    x, w = random(dtype, 2, 5, 8), random(dtype, 3, 5, 3, seed=1)
    exact = wide(x).astype(np.float64 if dtype[0] in "fb" else np.int64)
    kernel = wide(w).astype(exact.dtype)
    expected = sum(np.einsum("ncw,oc->now", exact[..., k : k + 6], kernel[..., k]) for k in range(3))
    PROGRAMS.check(name, [x, w], np.asarray(expected).astype(target))


@pytest.mark.parametrize("mode", MODES)
def test_windows_that_do_not_fit(mode: str):
    runner: Any = PROGRAMS.runners[mode]
    with pytest.raises(ValueError, match="a window within the padded data"):
        runner("line")(random("f32", 1, 4, 2), random("f32", 6, 4, 3))
    for name in ("line_back", "line_back_few"):
        case = CASES[name]
        # The op says what it wants of the data, the convolution that it becomes what it wants of its window.
        with pytest.raises(ValueError, match=r"data in each spatial dimension|a window within the padded data"):
            runner(name)(random("f32", 1, case.channels, 0), random("f32", case.channels, case.filters, *case.sizes))
    with pytest.raises(ValueError, match="expected c = 3"):
        runner("line_f64")(random("f64", 1, 3, 5), random("f64", 2, 4, 3))


def _params(kernel: tuple[int, int], parts: int, dtype: str = "f32") -> str:
    height, width = kernel
    places = parts * height * width
    return (
        f"%x: !relax.tensor<[n, c, h, w], {dtype}>, %k: !relax.tensor<[o, _, {height}, {width}], {dtype}>, "
        f"%off: !relax.tensor<[n, {2 * places}, _, _], {dtype}>, %mask: !relax.tensor<[n, {places}, _, _], {dtype}>"
    )


DEFORM = "relax.nn.deform_conv2d %x, %k, %off, %mask"
FOLD = "%x: !relax.tensor<[n, c, l], {}>, %s: !relax.shape<[h, w]>"
DEFORMABLE_PROGRAMS = Programs(
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


DEFORMABLE_NEAR = Tolerance(1e-4, 1e-3)


@pytest.mark.parametrize("shape", [(1, 1, 2, 2), (2, 3, 4, 5), (0, 1, 3, 3)])
def test_deform_conv(shape: tuple[int, ...]):
    args = _operands(shape, (2, shape[1], 2, 2), 1, 0, 1, 1)
    DEFORMABLE_PROGRAMS.check("plain", args, _deform(*args, 1, 0, 1, 1, 1), DEFORMABLE_NEAR)
    args = _operands((shape[0], 4, 6, 7), (6, 2, 3, 2), 2, 1, 2, 2)
    DEFORMABLE_PROGRAMS.check("grouped", args, _deform(*args, 2, 1, 2, 2, 2), DEFORMABLE_NEAR)
    args = _operands(shape, (2, shape[1], 1, 1), 1, 0, 1, 1, "f16")
    DEFORMABLE_PROGRAMS.check("half", args, _deform(*args, 1, 0, 1, 1, 1), Tolerance(4e-3, 4e-3))


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
    DEFORMABLE_PROGRAMS.check("fold", [x, shape], _fold(x, size, (2, 3), (1, 1), (0, 0), (1, 1), (h - 1, w - 2)))
    counts = ((h + 1 - 2) // 2 + 1, w + 1 - 2 - 1 + 1)
    x = random("i32", batch, 8, math.prod(counts))
    DEFORMABLE_PROGRAMS.check("fold_all", [x, shape], _fold(x, size, (2, 2), (2, 1), (1, 0), (1, 2), counts))
    x, shape = random("f16", batch, 2, w - 1), tvm_ffi.Shape((w,))
    DEFORMABLE_PROGRAMS.check("fold_line", [x, shape], _fold(x, (w,), (2,), (1,), (0,), (1,), (w - 1,)))
