"""Resizing of images against interpolation written out, in every mode."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, wide
from tests.support.sweeps import turns

METHODS = ("nearest_neighbor", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
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
            f"{method}_{how}": (PARAMS.format("f32"), _body(method, how, CROP if how.startswith("tf_crop") else ""))
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
        case "tf_half_pixel_for_nn":
            return half + 0.5
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


RESIZING_PARAMS = "%x: !relax.tensor<[n, m], f32>, %at: !relax.prim<i64, k>"
WHOLE = {
    "half_pixel": "round",
    "pytorch_half_pixel": "round_prefer_floor",
    "asymmetric": "floor",
    "half_pixel_symmetric": "round_prefer_ceil",
}
RESIZING_CROP = "roi = [-0.25, 0.9] extrapolation_value = 7.0"


def _resizing_body(method: str, coordinates: str, more: str = "", length: str = "k", axis: int = 1) -> str:
    text = f'relax.image.resize1d %x axis = {axis} length = {length} method = "{method}"'
    return f'{text} coordinates = "{coordinates}" {RESIZING_CROP if coordinates.startswith("tf_crop") else ""} {more}'


def _several_times(often: bool) -> dict[str, tuple[str, str]]:
    return {
        f"whole_{axis}_{times}_{how}": (
            RESIZING_PARAMS,
            _resizing_body("nearest_neighbor", how, f'rounding = "{WHOLE[how]}"', f"{times} * {'nm'[axis]}", axis),
        )
        for axis in (0, 1)
        for times, how, turn in turns("235", [*WHOLE], every=2)
        if (turn == axis) is often
    }


SELDOM = Programs(_several_times(often=False))
RESIZING_PROGRAMS = Programs(
    {
        **{f"{m}_{c}": (RESIZING_PARAMS, _resizing_body(m, c)) for m in ("linear", "cubic") for c in COORDINATES},
        **{
            f"nearest_{r}": (
                RESIZING_PARAMS,
                _resizing_body("nearest_neighbor", "asymmetric", f'rounding = "{r}"', axis=0),
            )
            for r in ROUNDINGS
        },
        **{f"{m}_smooth": (RESIZING_PARAMS, _resizing_body(m, "half_pixel", "antialias")) for m in ("linear", "cubic")},
        "cubic_inside": (RESIZING_PARAMS, _resizing_body("cubic", "half_pixel", "exclude_outside cubic_alpha = -0.5")),
        "cubic_both": (RESIZING_PARAMS, _resizing_body("cubic", "half_pixel", "exclude_outside antialias")),
        **{
            f"scaled_{m}_{c}": (
                RESIZING_PARAMS,
                _resizing_body(m, c, f"scale = 0.625 {'antialias' if m == 'cubic' else ''}"),
            )
            for m in ("linear", "cubic")
            for c in COORDINATES[m == "cubic" :: 2]
        },
        **_several_times(often=True),
        "doubled": ("%x: !relax.tensor<[n, m], f16>", _resizing_body("linear", "half_pixel", length="2 * n", axis=0)),
        "bytes": ("%x: !relax.tensor<[n, m], ui8>", _resizing_body("linear", "asymmetric", length="2 * n", axis=0)),
    }
)


def _resizing_place(how: str, at: int, length: int, count: int, scale: float | None) -> float:
    factor = scale or count / length
    total = factor * length if scale else count
    match how:
        case "align_corners":
            return at * (length - 1) / (total - 1) if count > 1 else 0
        case "asymmetric":
            return at / factor
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / factor
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
        place = _resizing_place(how, at, length, count, scale)
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


RESIZING_NEAR = Tolerance(2e-5, 2e-5)
RESIZING_SIZES = [
    ((2, 4), 8),
    ((3, 7), 3),
    ((1, 1), 3),
    ((2, 5), 1),
    ((0, 3), 2),
    ((2, 3), 0),
    ((2, 13), 2),
    ((1, 6), 6),
]


@pytest.mark.parametrize(("shape", "count"), RESIZING_SIZES)
def test_methods(shape: tuple[int, int], count: int):
    x = random("f32", *shape)
    for method in ("linear", "cubic"):
        for how in COORDINATES:
            RESIZING_PROGRAMS.check(
                f"{method}_{how}", [x, count], _expected(x, method, how, count, None), RESIZING_NEAR
            )
        smooth = _expected(x, method, "half_pixel", count, None, "antialias")
        RESIZING_PROGRAMS.check(f"{method}_smooth", [x, count], smooth, RESIZING_NEAR)
    inside = _expected(x, "cubic", "half_pixel", count, None, "inside", -0.5)
    RESIZING_PROGRAMS.check("cubic_inside", [x, count], inside, RESIZING_NEAR)
    both = _expected(x, "cubic", "half_pixel", count, None, "inside antialias")
    RESIZING_PROGRAMS.check("cubic_both", [x, count], both, RESIZING_NEAR)


@pytest.mark.parametrize("length", [1, 5, 9])
def test_a_length_that_was_rounded(length: int):
    x, count = random("f32", 2, length), int(0.625 * length)
    for at, how in enumerate(COORDINATES):
        if 0.625 * length == 1 or (count <= 1 and how == "align_corners"):
            continue
        method, flags = ("cubic", "antialias") if at % 2 else ("linear", "")
        expected = _expected(x, method, how, count, 0.625, flags)
        RESIZING_PROGRAMS.check(f"scaled_{method}_{how}", [x, count], expected, RESIZING_NEAR)


def _resizing_rounded(how: str, place: float) -> int:
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
        places = [min(max(_resizing_rounded(how, at * length / count), 0), length - 1) for at in range(count)]
        RESIZING_PROGRAMS.check(f"nearest_{how}", [x, count], x[places])


@pytest.mark.parametrize("length", [1, 7, 40])
@pytest.mark.parametrize("often", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_element_several_times(often: bool, length: int):
    x = random("f32", length, length)
    for name in _several_times(often):
        _, axis, times, *_ = name.split("_")
        (RESIZING_PROGRAMS if often else SELDOM).check(name, [x, 1], np.repeat(x, int(times), int(axis)))


def test_other_dtypes_of_resizing():
    x = random("f16", 5, 2)
    expected = np.array([_row(row, "linear", "half_pixel", 10, None) for row in x.T.astype(float)]).T
    RESIZING_PROGRAMS.check("doubled", [x], np.ascontiguousarray(expected).astype(np.float16))
    y = random("ui8", 5, 2, high=200)
    expected = np.array([_row(row, "linear", "asymmetric", 10, None) for row in y.T.astype(float)]).T
    RESIZING_PROGRAMS.check("bytes", [y], np.ascontiguousarray(expected).astype(np.uint8))


SAMPLING_METHODS, PADDING = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")
FLAT = "%x: !relax.tensor<[n, c, h, w], {}>, %g: !relax.tensor<[n, k, l, 2], f32>"


def _sampling_body(method: str, padding: str, corners: bool = False) -> str:
    flag = "align_corners" if corners else ""
    return f'relax.image.grid_sample %x, %g method = "{method}" padding_mode = "{padding}" {flag}'


CASES = [
    (m, p, bool((at + corners) % 2))
    for corners in (0, 1)
    for at, (m, p) in enumerate(product(SAMPLING_METHODS, PADDING))
]
"""Ways to sample: in the first half, corners are aligned in turn."""


def _programs(cases: list[tuple[str, str, bool]]) -> dict[str, tuple[str, str]]:
    return {f"{m}_{p}_{c}": (FLAT.format("f32"), _sampling_body(m, p, c)) for m, p, c in cases}


SAMPLING_SELDOM = Programs(_programs(CASES[9:]))
SAMPLING_PROGRAMS = Programs(
    {
        **_programs(CASES[:9]),
        "line": (
            "%x: !relax.tensor<[n, c, w], f32>, %g: !relax.tensor<[n, l, 1], f32>",
            _sampling_body("linear", "zeros"),
        ),
        "space": (
            "%x: !relax.tensor<[n, c, d, h, w], f32>, %g: !relax.tensor<[n, i, k, l, 3], f32>",
            _sampling_body("linear", "reflection"),
        ),
        "half": (FLAT.format("f16"), _sampling_body("linear", "border")),
        "bytes": (FLAT.format("ui8"), _sampling_body("nearest", "zeros")),
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


def _sampling_expected(x: np.ndarray, grid: np.ndarray, *how: Any) -> np.ndarray:
    result = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for n, *at in np.ndindex(grid.shape[:-1]):
        result[(n, slice(None), *at)] = _sample(x[n].astype(float), grid[(n, *at)].astype(float), *how)
    return result.astype(x.dtype)


SAMPLING_NEAR = Tolerance(1e-4, 1e-4)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 4, 5), (0, 1, 2, 2), (1, 2, 3, 1)])
@pytest.mark.parametrize("size", [(1, 1), (3, 4), (0, 2)])
@pytest.mark.parametrize("often", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_images(often: bool, shape: tuple[int, ...], size: tuple[int, int]):
    x, grid = random("f32", *shape), random("f32", shape[0], *size, 2, low=-2.5, high=2.5) * np.float32(0.97)
    for method, padding, corners in CASES[:9] if often else CASES[9:]:
        expected = _sampling_expected(x, grid, method, padding, corners)
        (SAMPLING_PROGRAMS if often else SAMPLING_SELDOM).check(
            f"{method}_{padding}_{corners}", [x, grid], expected, SAMPLING_NEAR
        )


def test_other_ranks_and_dtypes():
    x, grid = random("f32", 2, 3, 5), random("f32", 2, 4, 1, low=-1, high=1)
    SAMPLING_PROGRAMS.check("line", [x, grid], _sampling_expected(x, grid, "linear", "zeros", False), SAMPLING_NEAR)
    x, grid = random("f32", 1, 2, 3, 4, 2), random("f32", 1, 2, 3, 2, 3, low=-2, high=2)
    SAMPLING_PROGRAMS.check(
        "space", [x, grid], _sampling_expected(x, grid, "linear", "reflection", False), SAMPLING_NEAR
    )
    x, grid = random("f16", 1, 2, 3, 4), random("f32", 1, 2, 3, 2, low=-2, high=2)
    SAMPLING_PROGRAMS.check(
        "half", [x, grid], _sampling_expected(x, grid, "linear", "border", False), Tolerance(2e-3, 2e-3)
    )
    x = random("ui8", 1, 2, 3, 4)
    SAMPLING_PROGRAMS.check("bytes", [x, grid], _sampling_expected(x, grid, "nearest", "zeros", False))


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (0, 4)])
def test_affine_grid(size: tuple[int, int]):
    import tvm_ffi

    theta = random("f32", 2, 2, 3)
    rows, columns = ([(2 * i + 1) / n - 1 for i in range(n)] for n in size)
    expected = np.array([[[t @ [x, y, 1] for x in columns] for y in rows] for t in theta.astype(float)])
    shape = tvm_ffi.Shape(size)
    SAMPLING_PROGRAMS.check("grid", [theta, shape], expected.reshape(2, *size, 2).astype(np.float32), SAMPLING_NEAR)
    theta, shape = random("f32", 1, 3, 4), tvm_ffi.Shape((2, 3, 1))
    axes = [[-1 + 2 * i / (n - 1) if n > 1 else -1 for i in range(n)] for n in (2, 3, 1)]
    expected = np.array([[[theta[0].astype(float) @ [x, y, z, 1] for x in axes[2]] for y in axes[1]] for z in axes[0]])
    SAMPLING_PROGRAMS.check("grid_corners", [theta, shape], expected[None].astype(np.float32), SAMPLING_NEAR)
