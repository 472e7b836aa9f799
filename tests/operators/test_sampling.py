"""Sampling of images, position by position in plain Python, in every mode."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.operators.support import Programs, Tolerance, random

METHODS, PADDING = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")
FLAT = "%x: !relax.tensor<[n, c, h, w], {}>, %g: !relax.tensor<[n, k, l, 2], f32>"


def _body(method: str, padding: str, corners: bool = False) -> str:
    flag = "align_corners" if corners else ""
    return f'relax.image.grid_sample %x, %g method = "{method}" padding_mode = "{padding}" {flag}'


CASES = [(m, p, bool((at + corners) % 2)) for corners in (0, 1) for at, (m, p) in enumerate(product(METHODS, PADDING))]
"""Ways to sample: in the first half, corners are aligned in turn."""


def _programs(cases: list[tuple[str, str, bool]]) -> dict[str, tuple[str, str]]:
    return {f"{m}_{p}_{c}": (FLAT.format("f32"), _body(m, p, c)) for m, p, c in cases}


SELDOM = Programs(_programs(CASES[9:]))
PROGRAMS = Programs(
    {
        **_programs(CASES[:9]),
        "line": ("%x: !relax.tensor<[n, c, w], f32>, %g: !relax.tensor<[n, l, 1], f32>", _body("linear", "zeros")),
        "space": (
            "%x: !relax.tensor<[n, c, d, h, w], f32>, %g: !relax.tensor<[n, i, k, l, 3], f32>",
            _body("linear", "reflection"),
        ),
        "half": (FLAT.format("f16"), _body("linear", "border")),
        "bytes": (FLAT.format("ui8"), _body("nearest", "zeros")),
        "grid": (
            "%t: !relax.tensor<[n, 2, 3], f32>, %s: !relax.shape<[h, w]>",
            "relax.image.affine_grid %t, %s",
        ),
        "grid_corners": (
            "%t: !relax.tensor<[n, 3, 4], f32>, %s: !relax.shape<[d, h, w]>",
            "relax.image.affine_grid %t, %s align_corners",
        ),
    }
)


def _reflect(x: float, low: float, high: float) -> float:
    if high <= low:
        return low
    while x < low or x > high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


def _weights(method: str, rest: float) -> list[tuple[int, float]]:
    if method == "linear":
        return [(0, 1 - rest), (1, rest)]
    a = -0.75

    def cubic(t: float) -> float:
        t = abs(t)
        return (a + 2) * t**3 - (a + 3) * t**2 + 1 if t <= 1 else a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a

    return [(offset, cubic(rest - offset)) for offset in (-1, 0, 1, 2)]


def _sample(image: np.ndarray, place: Any, method: str, padding: str, corners: bool) -> np.ndarray:
    """One position of one image with the channels first."""
    taps: list[list[tuple[int, float]]] = []
    for length, coordinate in zip(image.shape[1:], reversed(place), strict=True):
        at = (coordinate + 1) / 2 * (length - 1) if corners else ((coordinate + 1) * length - 1) / 2
        low, high = (0, length - 1) if corners else (-0.5, length - 0.5)
        at = round(at) if method == "nearest" else at
        if padding == "border" and method != "cubic":
            at = min(max(at, 0), length - 1)
        if padding == "reflection":
            at = _reflect(at, low, high)
        pairs = [(0, 1.0)] if method == "nearest" else _weights(method, at - math.floor(at))
        each: list[tuple[int, float]] = []
        for offset, weight in pairs:
            index = (at if method == "nearest" else math.floor(at)) + offset
            if padding == "zeros" and not 0 <= index < length:
                continue
            index = _reflect(index, low, high) if padding == "reflection" else index
            each.append((int(min(max(index, 0), length - 1)), weight))
        taps.append(each)
    total = np.zeros(image.shape[0])
    for chosen in product(*taps):
        total += image[(slice(None), *(i for i, _ in chosen))] * math.prod(w for _, w in chosen)
    return total


def _expected(x: np.ndarray, grid: np.ndarray, *how: Any) -> np.ndarray:
    result = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for n, *at in np.ndindex(grid.shape[:-1]):
        result[(n, slice(None), *at)] = _sample(x[n].astype(float), grid[(n, *at)].astype(float), *how)
    return result.astype(x.dtype)


NEAR = Tolerance(1e-4, 1e-4)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 4, 5), (0, 1, 2, 2), (1, 2, 3, 1)])
@pytest.mark.parametrize("size", [(1, 1), (3, 4), (0, 2)])
@pytest.mark.parametrize("often", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_images(often: bool, shape: tuple[int, ...], size: tuple[int, int]):
    x, grid = random("f32", *shape), random("f32", shape[0], *size, 2, low=-2.5, high=2.5) * np.float32(0.97)
    for method, padding, corners in CASES[:9] if often else CASES[9:]:
        expected = _expected(x, grid, method, padding, corners)
        (PROGRAMS if often else SELDOM).check(f"{method}_{padding}_{corners}", [x, grid], expected, NEAR)


def test_other_ranks_and_dtypes():
    x, grid = random("f32", 2, 3, 5), random("f32", 2, 4, 1, low=-1, high=1)
    PROGRAMS.check("line", [x, grid], _expected(x, grid, "linear", "zeros", False), NEAR)
    x, grid = random("f32", 1, 2, 3, 4, 2), random("f32", 1, 2, 3, 2, 3, low=-2, high=2)
    PROGRAMS.check("space", [x, grid], _expected(x, grid, "linear", "reflection", False), NEAR)
    x, grid = random("f16", 1, 2, 3, 4), random("f32", 1, 2, 3, 2, low=-2, high=2)
    PROGRAMS.check("half", [x, grid], _expected(x, grid, "linear", "border", False), Tolerance(2e-3, 2e-3))
    x = random("ui8", 1, 2, 3, 4)
    PROGRAMS.check("bytes", [x, grid], _expected(x, grid, "nearest", "zeros", False))


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (0, 4)])
def test_affine_grid(size: tuple[int, int]):
    import tvm_ffi

    theta = random("f32", 2, 2, 3)
    rows, columns = ([(2 * i + 1) / n - 1 for i in range(n)] for n in size)
    expected = np.array([[[t @ [x, y, 1] for x in columns] for y in rows] for t in theta.astype(float)])
    shape = tvm_ffi.Shape(size)
    PROGRAMS.check("grid", [theta, shape], expected.reshape(2, *size, 2).astype(np.float32), NEAR)
    theta, shape = random("f32", 1, 3, 4), tvm_ffi.Shape((2, 3, 1))
    axes = [[-1 + 2 * i / (n - 1) if n > 1 else -1 for i in range(n)] for n in (2, 3, 1)]
    expected = np.array([[[theta[0].astype(float) @ [x, y, z, 1] for x in axes[2]] for y in axes[1]] for z in axes[0]])
    PROGRAMS.check("grid_corners", [theta, shape], expected[None].astype(np.float32), NEAR)
