"""Resizing along one axis, written out position by position, in every mode."""

import math
from typing import Any

import numpy as np
import pytest

from tests.operators.support import Programs, Tolerance, random
from tests.support.sweeps import turns

COORDINATES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
PARAMS = "%x: !relax.tensor<[n, m], f32>, %at: !relax.prim<i64, k>"
WHOLE = {
    "half_pixel": "round",
    "pytorch_half_pixel": "round_prefer_floor",
    "asymmetric": "floor",
    "half_pixel_symmetric": "round_prefer_ceil",
}
CROP = "roi = [-0.25, 0.9] extrapolation_value = 7.0"


def _body(method: str, coordinates: str, more: str = "", length: str = "k", axis: int = 1) -> str:
    text = f'relax.image.resize1d %x axis = {axis} length = {length} method = "{method}"'
    return f'{text} coordinates = "{coordinates}" {CROP if coordinates.startswith("tf") else ""} {more}'


def _several_times(often: bool) -> dict[str, tuple[str, str]]:
    return {
        f"whole_{axis}_{times}_{how}": (
            PARAMS,
            _body("nearest_neighbor", how, f'rounding = "{WHOLE[how]}"', f"{times} * {'nm'[axis]}", axis),
        )
        for axis in (0, 1)
        for times, how, turn in turns("235", [*WHOLE], every=2)
        if (turn == axis) is often
    }


SELDOM = Programs(_several_times(often=False))
PROGRAMS = Programs(
    {
        **{f"{m}_{c}": (PARAMS, _body(m, c)) for m in ("linear", "cubic") for c in COORDINATES},
        **{
            f"nearest_{r}": (PARAMS, _body("nearest_neighbor", "asymmetric", f'rounding = "{r}"', axis=0))
            for r in ROUNDINGS
        },
        **{f"{m}_smooth": (PARAMS, _body(m, "half_pixel", "antialias")) for m in ("linear", "cubic")},
        "cubic_inside": (PARAMS, _body("cubic", "half_pixel", "exclude_outside cubic_alpha = -0.5")),
        "cubic_both": (PARAMS, _body("cubic", "half_pixel", "exclude_outside antialias")),
        **{
            f"scaled_{m}_{c}": (PARAMS, _body(m, c, f"scale = 0.625 {'antialias' if m == 'cubic' else ''}"))
            for m in ("linear", "cubic")
            for c in COORDINATES[m == "cubic" :: 2]
        },
        **_several_times(often=True),
        "doubled": ("%x: !relax.tensor<[n, m], f16>", _body("linear", "half_pixel", length="2 * n", axis=0)),
        "bytes": ("%x: !relax.tensor<[n, m], ui8>", _body("linear", "asymmetric", length="2 * n", axis=0)),
    }
)


def _place(how: str, at: int, length: int, count: int, scale: float | None) -> float:
    factor = scale or count / length
    total = factor * length if scale else count
    match how:
        case "align_corners":
            return at * (length - 1) / (total - 1) if count > 1 else 0
        case "asymmetric":
            return at / factor
        case "half_pixel_symmetric":
            return length / 2 * (1 - count / total) + (at + 0.5) / factor - 0.5
        case "tf_crop_and_resize":
            start, end = -0.25, 0.9
            step = (end - start) * (length - 1) / (total - 1) if count > 1 else 0
            return start * (length - 1) + at * step if count > 1 else 0.5 * (start + end) * (length - 1)
        case "pytorch_half_pixel" if count == 1:
            return 0
        case _:
            return (at + 0.5) / factor - 0.5


def _weight(method: str, t: float, a: float) -> float:
    t = abs(t)
    if method == "linear":
        return max(0, 1 - t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0


def _row(
    row: np.ndarray, method: str, how: str, count: int, scale: float | None, flags: str = "", a: float = -0.75
) -> list[float]:
    """Every element of the row is asked for its weight."""
    length, result = len(row), []
    for at in range(count):
        place = _place(how, at, length, count, scale)
        if how == "tf_crop_and_resize" and not 0 <= place <= length - 1:
            result.append(7.0)
            continue
        squeeze = min(1, scale or count / length) if "antialias" in flags else 1
        total = value = 0.0
        reach = math.ceil(2 / squeeze) + 1
        for source in range(math.floor(place) - reach, math.floor(place) + reach + 1):
            outside = not 0 <= source < length
            weight = 0 if outside and "inside" in flags else _weight(method, (source - place) * squeeze, a)
            total += weight
            value += weight * float(row[min(max(source, 0), length - 1)])
        result.append(value / total if flags else value)
    return result


def _expected(x: np.ndarray, *how: Any) -> np.ndarray:
    rows = [_row(row, *how) for row in x.astype(np.float64)]
    return np.array(rows, x.dtype).reshape(x.shape[0], how[2])


NEAR = Tolerance(2e-5, 2e-5)
SIZES = [((2, 4), 8), ((3, 7), 3), ((1, 1), 3), ((2, 5), 1), ((0, 3), 2), ((2, 3), 0), ((2, 13), 2), ((1, 6), 6)]


@pytest.mark.parametrize(("shape", "count"), SIZES)
def test_methods(shape: tuple[int, int], count: int):
    x = random("f32", *shape)
    for method in ("linear", "cubic"):
        for how in COORDINATES:
            PROGRAMS.check(f"{method}_{how}", [x, count], _expected(x, method, how, count, None), NEAR)
        smooth = _expected(x, method, "half_pixel", count, None, "antialias")
        PROGRAMS.check(f"{method}_smooth", [x, count], smooth, NEAR)
    inside = _expected(x, "cubic", "half_pixel", count, None, "inside", -0.5)
    PROGRAMS.check("cubic_inside", [x, count], inside, NEAR)
    both = _expected(x, "cubic", "half_pixel", count, None, "inside antialias")
    PROGRAMS.check("cubic_both", [x, count], both, NEAR)


@pytest.mark.parametrize("length", [1, 5, 9])
def test_a_length_that_was_rounded(length: int):
    x, count = random("f32", 2, length), int(0.625 * length)
    for at, how in enumerate(COORDINATES):
        if 0.625 * length == 1 or (count <= 1 and how == "align_corners"):
            continue
        method, flags = ("cubic", "antialias") if at % 2 else ("linear", "")
        expected = _expected(x, method, how, count, 0.625, flags)
        PROGRAMS.check(f"scaled_{method}_{how}", [x, count], expected, NEAR)


def _rounded(how: str, place: float) -> int:
    match how:
        case "floor":
            return math.floor(place)
        case "ceil":
            return math.ceil(place)
        case "round_prefer_floor":
            return math.ceil(place - 0.5)
        case _:
            return math.floor(place + 0.5)


@pytest.mark.parametrize(("length", "count"), [(1, 1), (4, 8), (7, 3), (2, 5)])
def test_nearest(length: int, count: int):
    x = random("f32", length, 2)
    for how in ROUNDINGS:
        places = [min(max(_rounded(how, at * length / count), 0), length - 1) for at in range(count)]
        PROGRAMS.check(f"nearest_{how}", [x, count], x[places])


@pytest.mark.parametrize("length", [1, 7, 40])
@pytest.mark.parametrize("often", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_element_several_times(often: bool, length: int):
    x = random("f32", length, length)
    for name in _several_times(often):
        _, axis, times, *_ = name.split("_")
        (PROGRAMS if often else SELDOM).check(name, [x, 1], np.repeat(x, int(times), int(axis)))


def test_other_dtypes():
    x = random("f16", 5, 2)
    expected = np.array([_row(row, "linear", "half_pixel", 10, None) for row in x.T.astype(float)]).T
    PROGRAMS.check("doubled", [x], np.ascontiguousarray(expected).astype(np.float16))
    y = random("ui8", 5, 2, high=200)
    expected = np.array([_row(row, "linear", "asymmetric", 10, None) for row in y.T.astype(float)]).T
    PROGRAMS.check("bytes", [y], np.ascontiguousarray(expected).astype(np.uint8))
