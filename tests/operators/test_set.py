"""Operators whose results have sizes that depend on data, against NumPy, in every mode."""

from typing import Any

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import parse
from tests.operators.support import Programs, random
from tests.support.programs import IDENTICAL, run_everywhere

MATRIX = "%x: !relax.tensor<[n, m], f32>"
ALL = "return_index return_inverse return_counts"
PROGRAMS = Programs(
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
SHAPES = ((0, 3), (3, 0), (1, 1), (4, 7), (9, 5))


def _unique(x: np.ndarray, axis: int | None = None) -> tuple[Any, ...]:
    values, *rest = np.unique(x, True, True, True, axis=axis)
    return values, *(part.reshape(-1) for part in rest)


@pytest.mark.parametrize("shape", SHAPES)
def test_unique(shape: tuple[int, int]):
    x = np.round(random("f32", *shape, low=-1, high=1) * 2) / 2
    PROGRAMS.check("unique", [x], np.unique(x))
    PROGRAMS.check("unique_all", [x], _unique(x))
    integers = random("i64", shape[0] * 3)
    PROGRAMS.check("unique_counts", [integers], np.unique(integers, return_counts=True))


@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (9, 1), (20, 3), (3, 20)])
def test_unique_slices(shape: tuple[int, int]):
    x = random("f32", *shape, low=-0.2, high=0.2)
    PROGRAMS.check("unique_rows", [x], _unique(x, 0))
    y = random("i8", *shape, low=0, high=1)
    PROGRAMS.check("unique_columns", [y], (_unique(y, 1)[0].copy(), _unique(y, 1)[2]))


def test_unique_values_that_are_no_numbers():
    """All NaN are one, and the greatest."""
    x = np.array([[np.nan, 1, np.inf, np.nan, -np.inf, 1]], np.float32)
    PROGRAMS.check("unique_all", [x], _unique(x))


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
    PROGRAMS.check("unsorted", [x], expected)
    PROGRAMS.check("unsorted_alone", [x.astype(np.float32)], expected[0].astype(np.float32))
    rows = np.repeat(x.astype(np.float32)[:, None], 2, 1)
    PROGRAMS.check("unsorted_rows", [rows], (np.repeat(expected[0].astype(np.float32)[:, None], 2, 1), *expected[1:]))


@pytest.mark.parametrize("size", [0, 1, 50])
def test_what_follows_a_size_that_is_data(size: int):
    x = random("f32", size, low=-2, high=2)
    PROGRAMS.check("unique_then", [x], np.asarray(np.exp(np.unique(x)).sum(), np.float32))


@pytest.mark.parametrize("shape", SHAPES)
def test_nonzero(shape: tuple[int, int]):
    x = np.trunc(random("f32", *shape, low=-2, high=2))
    PROGRAMS.check("nonzero", [x], np.array(np.nonzero(x)))
    flags = random("i1", shape[0])
    PROGRAMS.check("nonzero_i1", [flags], np.array(np.nonzero(flags)))
    for value in (0, 3):
        PROGRAMS.check("nonzero_scalar", [np.asarray(value, np.int32)], np.zeros((0, int(value != 0)), np.int64))


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
