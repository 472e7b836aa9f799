"""Resizing of images against interpolation written out, in every mode."""

import math
from itertools import product

import numpy as np
import pytest
import tvm_ffi

from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, wide

METHODS = ("nearest_neighbor", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
PARAMS = "%x: !relax.tensor<[n, c, h, w], {}>, %s: !relax.shape<[k, l]>"
CROP = "roi = [0.1, -0.2, 0.8, 1.3] extrapolation_value = 7.0"
NEAREST = 'method = "nearest_neighbor" coordinates = "asymmetric"'


def _body(method: str, coordinates: str, more: str = "") -> str:
    return f'relax.image.resize2d %x, %s method = "{method}" coordinates = "{coordinates}" {more}'


PROGRAMS = Programs(
    {
        **{
            f"{method}_{how}": (PARAMS.format("f32"), _body(method, how, CROP if how.startswith("tf") else ""))
            for method, how in product(METHODS, COORDINATES)
        },
        **{
            how: (PARAMS.format("f32"), _body("nearest_neighbor", "half_pixel", f'rounding = "{how}"'))
            for how in ROUNDINGS
        },
        "excluded": (PARAMS.format("f32"), _body("cubic", "half_pixel", "cubic_exclude cubic_alpha = -0.75")),
        **{f"linear_{d}": (PARAMS.format(d), _body("linear", "half_pixel")) for d in ("f16", "f64", "ui8")},
        "nearest_i8": (PARAMS.format("i8"), f"relax.image.resize2d %x, %s {NEAREST}"),
        "last": (
            "%x: !relax.tensor<[n, h, w, c], f32>, %s: !relax.shape<[_, _]>",
            'relax.image.resize2d %x, %s layout = "NHWC" out_dtype = f64',
        ),
    }
)
NEAR = Tolerance(1e-4, 1e-5)
SIZES = (((3, 4), (6, 8)), ((5, 7), (2, 3)), ((1, 1), (3, 2)), ((4, 3), (1, 1)), ((2, 2), (0, 5)), ((3, 3), (3, 3)))


def _place(how: str, at: int, length: int, count: int, axis: int) -> float:
    half = (at + 0.5) * length / count - 0.5
    match how:
        case "align_corners":
            return at * (length - 1) / (count - 1) if count > 1 else 0
        case "asymmetric":
            return at * length / count
        case "pytorch_half_pixel":
            return half if count > 1 else 0
        case "tf_crop_and_resize":
            start, end = ((0.1, 0.8), (-0.2, 1.3))[axis]
            if count > 1:
                return start * (length - 1) + at * (end - start) * (length - 1) / (count - 1)
            return 0.5 * (start + end) * (length - 1)
        case _:
            return half


def _rounded(how: str, place: float) -> int:
    match how:
        case "floor":
            return math.floor(place)
        case "ceil":
            return math.ceil(place)
        case "round_prefer_floor":
            return math.ceil(place - 0.5)
        case "round_prefer_ceil":
            return math.floor(place + 0.5)
        case _:
            return math.floor(abs(place) + 0.5) * (1 if place >= 0 else -1)


def _kernel(alpha: float, distance: float) -> float:
    t = abs(distance)
    if t <= 1:
        return (alpha + 2) * t**3 - (alpha + 3) * t**2 + 1
    return alpha * t**3 - 5 * alpha * t**2 + 8 * alpha * t - 4 * alpha if t < 2 else 0


def _taps(method: str, place: float, length: int, rounding: str, alpha: float, exclude: bool) -> dict[int, float]:
    if method == "nearest_neighbor":
        return {_rounded(rounding, place): 1}
    first = math.floor(place)
    if method == "linear":
        return {first: 1 - (place - first), first + 1: place - first}
    weights = {at: _kernel(alpha, place - at) for at in range(first - 1, first + 3)}
    if exclude:
        weights = {at: weight for at, weight in weights.items() if 0 <= at < length}
        weights = {at: weight / sum(weights.values()) for at, weight in weights.items()}
    return weights


def _resize(
    x: np.ndarray,
    size: tuple[int, int],
    method: str,
    how: str,
    rounding: str = "round",
    alpha: float = -0.5,
    exclude: bool = False,
) -> np.ndarray:
    result = np.zeros((*x.shape[:2], *size))
    for at in np.ndindex(*size):
        places = [_place(how, at[axis], x.shape[axis + 2], size[axis], axis) for axis in (0, 1)]
        rows, columns = (_taps(method, p, x.shape[axis + 2], rounding, alpha, exclude) for axis, p in enumerate(places))
        value = sum(
            a * b * x[:, :, min(max(r, 0), x.shape[2] - 1), min(max(c, 0), x.shape[3] - 1)]
            for (r, a), (c, b) in product(rows.items(), columns.items())
        )
        outside = any(not 0 <= p <= x.shape[axis + 2] - 1 for axis, p in enumerate(places))
        result[:, :, at[0], at[1]] = 7 if how == "tf_crop_and_resize" and outside else value
    return result


@pytest.mark.parametrize(("length", "size"), SIZES)
@pytest.mark.parametrize("how", COORDINATES)
@pytest.mark.parametrize("method", METHODS)
def test_resize(method: str, how: str, length: tuple[int, int], size: tuple[int, int]):
    x = random("f32", 1, 2, *length)
    expected = _resize(wide(x), size, method, how)
    PROGRAMS.check(f"{method}_{how}", [x, tvm_ffi.Shape(size)], expected.astype(np.float32), NEAR)


@pytest.mark.parametrize("how", ROUNDINGS)
def test_rounding(how: str):
    x = random("f32", 1, 1, 4, 6)
    for size in ((8, 3), (2, 4), (3, 9)):
        expected = _resize(x, size, "nearest_neighbor", "half_pixel", how)
        PROGRAMS.check(how, [x, tvm_ffi.Shape(size)], expected.astype(np.float32))


def test_cubic_without_places_outside():
    x = random("f32", 1, 1, 4, 5)
    expected = _resize(wide(x), (7, 3), "cubic", "half_pixel", alpha=-0.75, exclude=True)
    PROGRAMS.check("excluded", [x, tvm_ffi.Shape((7, 3))], expected.astype(np.float32), NEAR)


@pytest.mark.parametrize("dtype", ["f16", "f64", "ui8", "i8"])
def test_other_dtypes(dtype: str):
    x = random(dtype, 2, 1, 3, 4, high=100)
    method, how = ("nearest_neighbor", "asymmetric") if dtype == "i8" else ("linear", "half_pixel")
    expected = _resize(x.astype(np.float64), (6, 8), method, how).astype(DTYPES[dtype])
    PROGRAMS.check(f"nearest_{dtype}" if dtype == "i8" else f"linear_{dtype}", [x, tvm_ffi.Shape((6, 8))], expected)


def test_layout():
    x = random("f32", 2, 3, 4, 5)
    expected = _resize(wide(x).transpose(0, 3, 1, 2), (5, 2), "linear", "half_pixel").transpose(0, 2, 3, 1)
    PROGRAMS.check("last", [x, tvm_ffi.Shape((5, 2))], np.ascontiguousarray(expected), NEAR)


@pytest.mark.parametrize("mode", MODES)
def test_images_without_rows(mode: str):
    with pytest.raises(ValueError, match="images with at least one row and column"):
        PROGRAMS.runners[mode]("linear_half_pixel")(random("f32", 1, 1, 0, 3), tvm_ffi.Shape((2, 2)))
