"""Sorting against NumPy, in every mode. Sorts are stable; NaN is greater than every number."""

import numpy as np
import pytest

from tests.operators.support import DTYPES, MODES, Programs, random

DTYPE_NAMES = ("bf16", "f64", "i8", "i64", "ui8", "i1")
MATRIX = "%x: !relax.tensor<[n, m], f32>"
PROGRAMS = Programs(
    {
        **{
            f"{name}_{label}": (MATRIX, f"relax.{name} %x {options}")
            for name in ("sort", "argsort")
            for label, options in {"rows": "", "columns": "axis = 0", "down": "descending"}.items()
        },
        **{f"sort_{dtype}": (f"%x: !relax.tensor<[n], {dtype}>", "relax.sort %x") for dtype in DTYPE_NAMES},
        **{
            f"argsort_{dtype}": (f"%x: !relax.tensor<[n], {dtype}>", "relax.argsort %x descending dtype = i32")
            for dtype in DTYPE_NAMES
        },
        "ranked": ("%x: !relax.tensor<[_, _], f32>", "relax.sort %x axis = 0"),
        "cube": ("%x: !relax.tensor<[n, m, k], f32>", "relax.sort %x axis = 1"),
        "top": (MATRIX, "%a, %b = relax.topk %x k = 3"),
        "bottom": (MATRIX, "%a, %b = relax.topk %x k = 3 axis = 0 smallest dtype = i32"),
        "top_many": (f"{MATRIX}, %at: !relax.prim<i64, k>", "%a, %b = relax.topk %x k = k"),
        "top_values": (MATRIX, 'relax.topk %x k = 1 ret_type = "values"'),
        "top_indices": (MATRIX, 'relax.topk %x k = m ret_type = "indices"'),
        "top_none": (MATRIX, "%a, %b = relax.topk %x k = 0"),
    }
)
SHAPES = ((0, 3), (3, 0), (1, 1), (4, 7), (3, 100), (2, 16), (2, 17))


def _order(x: np.ndarray, axis: int, descending: bool = False) -> np.ndarray:
    """By insertion, which shares nothing with what is tested."""

    def before(a: float, b: float) -> bool:
        less, greater = (b, a) if descending else (a, b)
        return bool(less < greater) or bool(np.isnan(greater) and not np.isnan(less))

    def lane(values: np.ndarray) -> np.ndarray:
        places: list[int] = []
        for index, value in enumerate(values):
            at = len(places)
            while at and before(value, values[places[at - 1]]):
                at -= 1
            places.insert(at, index)
        return np.array(places, np.int64)

    w = x.astype(np.float64)
    return np.apply_along_axis(lane, axis, w) if x.size else np.zeros(x.shape, np.int64)


@pytest.mark.parametrize("shape", SHAPES)
def test_sort(shape: tuple[int, int]):
    x = random("f32", *shape, low=-2, high=2)
    for label, axis in {"rows": 1, "columns": 0, "down": 1}.items():
        places = _order(x, axis, label == "down")
        PROGRAMS.check(f"argsort_{label}", [x], places)
        PROGRAMS.check(f"sort_{label}", [x], np.take_along_axis(x, places, axis))
    PROGRAMS.check("ranked", [x], np.sort(x, 0))


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_other_dtypes(dtype: str):
    x = random(dtype, 70, low=-100, high=100)
    if dtype == "ui8":
        x[:4] = (0, 255, 128, 127)
    PROGRAMS.check(f"sort_{dtype}", [x], x[_order(x, 0)])
    PROGRAMS.check(f"argsort_{dtype}", [x], _order(x, 0, True).astype(np.int32))


def test_values_that_are_no_numbers():
    x = np.array([[3, np.nan, -np.inf, 0.0, np.inf, np.nan, -0.0, 1]], np.float32)
    PROGRAMS.check("argsort_rows", [x], _order(x, 1))
    PROGRAMS.check("argsort_down", [x], _order(x, 1, True))
    PROGRAMS.check("sort_rows", [x], np.sort(x, 1))


def test_a_long_lane_and_many_axes():
    x = random("f32", 1, 20_000, low=-999, high=999)
    PROGRAMS.check("sort_rows", [x], np.sort(x))
    PROGRAMS.check("argsort_rows", [x], np.argsort(x, kind="stable"))
    cube = random("f32", 3, 5, 4)
    PROGRAMS.check("cube", [cube], np.sort(cube, 1))


@pytest.mark.parametrize("shape", [(3, 3), (4, 7), (5, 100)])
def test_topk(shape: tuple[int, int]):
    x = random("f32", *shape, low=-2, high=2)
    down, up = _order(x, 1, True), _order(x, 0)
    PROGRAMS.check("top", [x], (np.take_along_axis(x, down[:, :3], 1), down[:, :3].copy()))
    PROGRAMS.check("bottom", [x], (np.take_along_axis(x, up[:3], 0), up[:3].astype(np.int32)))
    for count in (0, 1, shape[1]):
        places = down[:, :count].copy()
        PROGRAMS.check("top_many", [x, count], (np.take_along_axis(x, places, 1), places))
    PROGRAMS.check("top_values", [x], x.max(1, keepdims=True))
    PROGRAMS.check("top_indices", [x], down)
    PROGRAMS.check("top_none", [x], (x[:, :0], down[:, :0]))


def test_topk_of_values_that_are_no_numbers():
    x = np.array([[3, np.nan, -np.inf, 0.0], [-np.inf, -np.inf, -np.inf, -np.inf]], np.float32)
    places = np.array([[1, 0, 3], [0, 1, 2]])
    PROGRAMS.check("top", [x], (np.take_along_axis(x, places, 1), places))


@pytest.mark.parametrize("mode", MODES)
def test_more_than_there_are(mode: str):
    with pytest.raises(ValueError, match="a k that is at most the dimension"):
        PROGRAMS.runners[mode]("top_many")(random("f32", 2, 3), 4)
    with pytest.raises(ValueError, match="a k that is at most the dimension"):
        PROGRAMS.runners[mode]("top")(random("f32", 2, 2))


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_sorting_twice_changes_nothing(dtype: str):
    name = "sort_rows" if dtype == "f32" else "sort_i64"
    x = random(dtype, 64) if dtype == "i64" else random(dtype, 3, 64)
    once = np.sort(x)
    PROGRAMS.check(name, [once], once.astype(DTYPES[dtype]))
