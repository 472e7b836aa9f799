"""Choice and search against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import MODES, Programs, random

MATRIX = "%x: !relax.tensor<[n, m], f32>"
CONDITION = "%c: !relax.tensor<[n, m], i1>"


def _search(dtype: str) -> str:
    return f"%x: !relax.tensor<[n], {dtype}>, %b: !relax.tensor<[k], {dtype}>"


PROGRAMS = Programs(
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
    PROGRAMS.check("where", [condition, x, y], np.where(condition, x, y))
    row = random("i8", 1, shape[1], seed=3)
    if shape[0] > 1:
        PROGRAMS.check("where_unknown", [condition, row], np.broadcast_to(row, shape).copy())
    scalar = random("f32", seed=4)
    if shape[0]:
        PROGRAMS.check("where_ranked", [condition[0], x, scalar], np.where(condition[0], x, scalar))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4), (2, 50)])
def test_argument(name: str, shape: tuple[int, int]):
    """Of equal elements the first counts."""
    x, function = random("f32", *shape, low=-1, high=1), getattr(np, name)
    PROGRAMS.check(f"{name}_rows", [x], function(x, 1))
    PROGRAMS.check(f"{name}_columns", [x], function(x, 0, keepdims=True))
    PROGRAMS.check(f"{name}_all", [x], np.asarray(function(x)))
    PROGRAMS.check(f"{name}_kept", [x], function(x, keepdims=True))
    y = random("i32", *shape)
    PROGRAMS.check(f"{name}_i32", [y], function(y, 1))


def test_extreme_arguments():
    x = np.array([[-np.inf, -np.inf, -np.inf], [1, np.nan, np.nan], [np.inf, 2, np.inf], [-0.0, 0.0, -0.0]], np.float32)
    PROGRAMS.check("argmax_rows", [x], x.argmax(1))
    PROGRAMS.check("argmin_rows", [x], x.argmin(1))
    PROGRAMS.check("argmax_rows", [x[:0]], x[:0].argmax(1))
    y = np.array([[-(2**31), -(2**31)], [5, 2**31 - 1]], np.int32)
    PROGRAMS.check("argmax_i32", [y], y.argmax(1))
    PROGRAMS.check("argmin_i32", [y], y.argmin(1))
    PROGRAMS.check("argmax_ui8", [np.array([[0, 0], [3, 200]], np.uint8)], np.array([0, 1]))
    z = random("bf16", 3, 9)
    PROGRAMS.check("argmax_bf16", [z], z.astype(np.float32).argmax(1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["argmax_rows", "argmin_all"])
def test_no_argument_of_no_elements(mode: str, name: str):
    with pytest.raises(ValueError, match="at least one element"):
        PROGRAMS.runners[mode](name)(random("f32", 3, 0))


@pytest.mark.parametrize("count", [0, 1, 2, 9])
@pytest.mark.parametrize("dtype", ["f32", "i64", "bf16", "ui8"])
def test_bucketize(dtype: str, count: int):
    x, boundaries = (
        random(dtype, 40),
        np.sort(random(dtype, count, seed=1).astype(np.float32)).astype(random(dtype, 0).dtype),
    )
    expected = np.searchsorted(boundaries.astype(np.float32), x.astype(np.float32))
    PROGRAMS.check(f"bucketize_{dtype}", [x, boundaries], expected)
    if dtype == "f32":
        PROGRAMS.check("bucketize_right", [x, boundaries], np.searchsorted(boundaries, x, "right").astype(np.int32))


def test_bucketize_values_that_are_no_numbers():
    x = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    boundaries = np.array([-np.inf, 0, np.inf, np.nan], np.float32)
    PROGRAMS.check("bucketize_f32", [x, boundaries], np.searchsorted(boundaries, x))
    PROGRAMS.check("bucketize_right", [x, boundaries], np.searchsorted(boundaries, x, "right").astype(np.int32))
