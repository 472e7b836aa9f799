"""Sorting against NumPy, in every mode. Sorts are stable; NaN is greater than every number."""

from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import parse
from tests.operators.support import DTYPES, MODES, Programs, random
from tests.support.programs import IDENTICAL, run_everywhere

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


CONDITION = "%c: !relax.tensor<[n, m], i1>"


def _search(dtype: str) -> str:
    return f"%x: !relax.tensor<[n], {dtype}>, %b: !relax.tensor<[k], {dtype}>"


SEARCH_PROGRAMS = Programs(
    {
        "where": (f"{CONDITION}, {MATRIX}, %y: !relax.tensor<[m], f32>", "relax.where %c, %x, %y"),
        "where_unknown": (f"{CONDITION}, %x: !relax.tensor<[k, m], i8>", "relax.where %c, %x, %x"),
        "where_ranked": (
            "%c: !relax.tensor<[_], i1>, %x: !relax.tensor<[_, _], f32>, %y: !relax.tensor<[], f32>",
            "relax.where %c, %x, %y",
        ),
        **{
            f"{name}_{label}": (MATRIX, f"relax.{name} %x {options}")
            for name in ("argmax", "argmin")
            for label, options in {
                "rows": "axis = 1",
                "columns": "axis = 0 keepdims",
                "all": "",
                "kept": "keepdims",
            }.items()
        },
        **{
            f"{name}_i32": ("%x: !relax.tensor<[n, m], i32>", f"relax.{name} %x axis = 1")
            for name in ("argmax", "argmin")
        },
        "argmax_bf16": ("%x: !relax.tensor<[n, m], bf16>", "relax.argmax %x axis = 1"),
        "argmax_ui8": ("%x: !relax.tensor<[n, m], ui8>", "relax.argmax %x axis = 1"),
        **{f"bucketize_{dtype}": (_search(dtype), "relax.bucketize %x, %b") for dtype in ("f32", "i64", "bf16", "ui8")},
        "bucketize_right": (_search("f32"), "relax.bucketize %x, %b right out_int32"),
    }
)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 7)])
def test_where(shape: tuple[int, int]):
    condition, x, y = random("i1", *shape), random("f32", *shape, seed=1), random("f32", shape[1], seed=2)
    SEARCH_PROGRAMS.check("where", [condition, x, y], np.where(condition, x, y))
    row = random("i8", 1, shape[1], seed=3)
    if shape[0] > 1:
        SEARCH_PROGRAMS.check("where_unknown", [condition, row], np.broadcast_to(row, shape).copy())
    scalar = random("f32", seed=4)
    if shape[0]:
        SEARCH_PROGRAMS.check("where_ranked", [condition[0], x, scalar], np.where(condition[0], x, scalar))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4), (2, 50)])
def test_argument(name: str, shape: tuple[int, int]):
    """Of equal elements the first counts."""
    x, function = random("f32", *shape, low=-1, high=1), getattr(np, name)
    SEARCH_PROGRAMS.check(f"{name}_rows", [x], function(x, 1))
    SEARCH_PROGRAMS.check(f"{name}_columns", [x], function(x, 0, keepdims=True))
    SEARCH_PROGRAMS.check(f"{name}_all", [x], np.asarray(function(x)))
    SEARCH_PROGRAMS.check(f"{name}_kept", [x], function(x, keepdims=True))
    y = random("i32", *shape)
    SEARCH_PROGRAMS.check(f"{name}_i32", [y], function(y, 1))


def test_extreme_arguments():
    x = np.array([[-np.inf, -np.inf, -np.inf], [1, np.nan, np.nan], [np.inf, 2, np.inf], [-0.0, 0.0, -0.0]], np.float32)
    SEARCH_PROGRAMS.check("argmax_rows", [x], x.argmax(1))
    SEARCH_PROGRAMS.check("argmin_rows", [x], x.argmin(1))
    SEARCH_PROGRAMS.check("argmax_rows", [x[:0]], x[:0].argmax(1))
    y = np.array([[-(2**31), -(2**31)], [5, 2**31 - 1]], np.int32)
    SEARCH_PROGRAMS.check("argmax_i32", [y], y.argmax(1))
    SEARCH_PROGRAMS.check("argmin_i32", [y], y.argmin(1))
    SEARCH_PROGRAMS.check("argmax_ui8", [np.array([[0, 0], [3, 200]], np.uint8)], np.array([0, 1]))
    z = random("bf16", 3, 9)
    SEARCH_PROGRAMS.check("argmax_bf16", [z], z.astype(np.float32).argmax(1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["argmax_rows", "argmin_all"])
def test_no_argument_of_no_elements(mode: str, name: str):
    with pytest.raises(ValueError, match="at least one element"):
        SEARCH_PROGRAMS.runners[mode](name)(random("f32", 3, 0))


@pytest.mark.parametrize("count", [0, 1, 2, 9])
@pytest.mark.parametrize("dtype", ["f32", "i64", "bf16", "ui8"])
def test_bucketize(dtype: str, count: int):
    x, boundaries = (
        random(dtype, 40),
        np.sort(random(dtype, count, seed=1).astype(np.float32)).astype(random(dtype, 0).dtype),
    )
    expected = np.searchsorted(boundaries.astype(np.float32), x.astype(np.float32))
    SEARCH_PROGRAMS.check(f"bucketize_{dtype}", [x, boundaries], expected)
    if dtype == "f32":
        SEARCH_PROGRAMS.check(
            "bucketize_right", [x, boundaries], np.searchsorted(boundaries, x, "right").astype(np.int32)
        )


def test_bucketize_values_that_are_no_numbers():
    x = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    boundaries = np.array([-np.inf, 0, np.inf, np.nan], np.float32)
    SEARCH_PROGRAMS.check("bucketize_f32", [x, boundaries], np.searchsorted(boundaries, x))
    SEARCH_PROGRAMS.check("bucketize_right", [x, boundaries], np.searchsorted(boundaries, x, "right").astype(np.int32))


ALL = "return_index return_inverse return_counts"
SET_PROGRAMS = Programs(
    {
        "unique": (MATRIX, "relax.unique %x"),
        "unique_all": (MATRIX, f"%a, %b, %c, %d = relax.unique %x {ALL}"),
        "unique_counts": ("%x: !relax.tensor<[_], i64>", "%a, %b = relax.unique %x return_counts"),
        "unique_rows": (MATRIX, f"%a, %b, %c, %d = relax.unique %x axis = 0 {ALL}"),
        "unique_columns": ("%x: !relax.tensor<[n, m], i8>", "%a, %b = relax.unique %x axis = 1 return_inverse"),
        "unsorted": ("%x: !relax.tensor<[_], i64>", f"%a, %b, %c, %d = relax.unique %x unsorted {ALL}"),
        "unsorted_alone": ("%x: !relax.tensor<[n], f32>", "relax.unique %x unsorted"),
        "unsorted_rows": (MATRIX, f"%a, %b, %c, %d = relax.unique %x axis = 0 unsorted {ALL}"),
        "unique_then": ("%x: !relax.tensor<[n], f32>", "%a = relax.unique %x; %b = relax.exp %a; relax.sum %b"),
        "nonzero": (MATRIX, "relax.nonzero %x"),
        "nonzero_i1": ("%x: !relax.tensor<[_], i1>", "relax.nonzero %x"),
        "nonzero_scalar": ("%x: !relax.tensor<[], i32>", "relax.nonzero %x"),
    }
)
SET_SHAPES = ((0, 3), (3, 0), (1, 1), (4, 7), (9, 5))


def _unique(x: np.ndarray, axis: int | None = None) -> tuple[Any, ...]:
    values, *rest = np.unique(x, True, True, True, axis=axis)
    return values, *(part.reshape(-1) for part in rest)


@pytest.mark.parametrize("shape", SET_SHAPES)
def test_unique(shape: tuple[int, int]):
    x = np.round(random("f32", *shape, low=-1, high=1) * 2) / 2
    SET_PROGRAMS.check("unique", [x], np.unique(x))
    SET_PROGRAMS.check("unique_all", [x], _unique(x))
    integers = random("i64", shape[0] * 3)
    SET_PROGRAMS.check("unique_counts", [integers], np.unique(integers, return_counts=True))


@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (9, 1), (20, 3), (3, 20)])
def test_unique_slices(shape: tuple[int, int]):
    x = random("f32", *shape, low=-0.2, high=0.2)
    SET_PROGRAMS.check("unique_rows", [x], _unique(x, 0))
    y = random("i8", *shape, low=0, high=1)
    SET_PROGRAMS.check("unique_columns", [y], (_unique(y, 1)[0].copy(), _unique(y, 1)[2]))


def test_unique_values_that_are_no_numbers():
    """All NaN are one, and the greatest."""
    x = np.array([[np.nan, 1, np.inf, np.nan, -np.inf, 1]], np.float32)
    SET_PROGRAMS.check("unique_all", [x], _unique(x))


@pytest.mark.parametrize("size", [0, 1, 6, 40])
def test_order_of_first_occurrences(size: int):
    x = random("i64", size)
    distinct = list(dict.fromkeys(x.tolist()))
    places = {value: place for place, value in enumerate(distinct)}
    expected = (
        np.array(distinct, np.int64),
        np.array([x.tolist().index(value) for value in distinct], np.int64),
        np.array([places[value] for value in x.tolist()], np.int64),
        np.array([x.tolist().count(value) for value in distinct], np.int64),
    )
    SET_PROGRAMS.check("unsorted", [x], expected)
    SET_PROGRAMS.check("unsorted_alone", [x.astype(np.float32)], expected[0].astype(np.float32))
    rows = np.repeat(x.astype(np.float32)[:, None], 2, 1)
    SET_PROGRAMS.check(
        "unsorted_rows", [rows], (np.repeat(expected[0].astype(np.float32)[:, None], 2, 1), *expected[1:])
    )


@pytest.mark.parametrize("size", [0, 1, 50])
def test_what_follows_a_size_that_is_data(size: int):
    x = random("f32", size, low=-2, high=2)
    SET_PROGRAMS.check("unique_then", [x], np.asarray(np.exp(np.unique(x)).sum(), np.float32))


@pytest.mark.parametrize("shape", SET_SHAPES)
def test_nonzero(shape: tuple[int, int]):
    x = np.trunc(random("f32", *shape, low=-2, high=2))
    SET_PROGRAMS.check("nonzero", [x], np.array(np.nonzero(x)))
    flags = random("i1", shape[0])
    SET_PROGRAMS.check("nonzero_i1", [flags], np.array(np.nonzero(flags)))
    for value in (0, 3):
        SET_PROGRAMS.check("nonzero_scalar", [np.asarray(value, np.int32)], np.zeros((0, int(value != 0)), np.int64))


def test_order_of_first_occurrences_in_tvmscript():
    module = parse(
        """
@R.function
def main(x: R.Tensor(("n",), "int64")):
    return R.unique(x, sorted=False)
"""
    )
    found = run_everywhere(module, "main", [np.array([5, 3, 3, 9, 1, 5])], IDENTICAL)
    np.testing.assert_array_equal(found, [5, 3, 9, 1])
