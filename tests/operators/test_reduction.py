"""Reductions and running sums against NumPy, in every mode."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, slow_ones, wide
from tests.support.programs import run_everywhere

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "variance": np.var,
    "std": np.std,
    "median": np.median,
}
AXES: dict[str, tuple[int, ...] | None] = {"all": None, "last": (-1,), "first": (0,), "two": (0, 2)}
SUMS = ("f16", "bf16", "f64", "i8", "i32", "i64", "ui8")
"""Dtypes of sums besides `f32`."""
SHAPES = ((1, 1, 1), (2, 3, 4), (3, 1, 5), (0, 2, 3), (2, 3, 0))
TENSOR = "%x: !relax.tensor<[n, m, k], f32>"


def _tensor(dtype: str) -> str:
    return f"%x: !relax.tensor<[n, m], {dtype}>"


def _axes(axes: tuple[int, ...] | None) -> str:
    return "" if axes is None else f" axes = [{', '.join(map(str, axes))}]"


SELDOM = (
    *(f"{name}_{label}" for name in ("prod", "std", "min") for label in ("first", "two")),
    "sum_f64",
    "sum_i8",
    "sum_i32",
)
"""What differs from others in its scalar operator or dtype alone."""
PROGRAMS = Programs(
    {
        **{
            f"{name}_{label}": (TENSOR, f"relax.{name} %x{_axes(axes)}{' keepdims' if label == 'two' else ''}")
            for name in REDUCTIONS
            for label, axes in AXES.items()
        },
        **{f"sum_{dtype}": (_tensor(dtype), "relax.sum %x axes = [1]") for dtype in SUMS},
        **{f"mean_{dtype}": (_tensor(dtype), "relax.mean %x axes = [1]") for dtype in ("f16", "bf16")},
        **{f"max_{dtype}": (_tensor(dtype), "relax.max %x axes = [1]") for dtype in ("bf16", "i32", "ui8")},
        "nothing": (_tensor("f32"), "relax.sum %x axes = []"),
        "scalar": ("%x: !relax.tensor<[], f32>", "relax.mean %x"),
        "ranked": ("%x: !relax.tensor<[_, _], f32>", "relax.sum %x axes = [0]"),
        "fixed": ("%x: !relax.tensor<[n, 4], f32>", "relax.max %x axes = [1]"),
        **{
            f"{name}_{label}": (_tensor("f32"), f"relax.{name} %x {options}")
            for name in ("cumsum", "cumprod")
            for label, options in {
                "rows": "axis = 1",
                "columns": "axis = 0",
                "flat": "",
                "exclusive": "axis = -1 exclusive",
                "flat_exclusive": "exclusive",
                "f64": "axis = 0 dtype = f64",
            }.items()
        },
        "cumsum_bf16": (_tensor("bf16"), "relax.cumsum %x axis = 1"),
        "cumsum_i8": (_tensor("i8"), "relax.cumsum %x axis = 1 dtype = i32"),
        "cumsum_i1": (_tensor("i1"), "relax.cumsum %x axis = 0 dtype = i8"),
        "cumprod_i1": (_tensor("i1"), "relax.cumprod %x axis = 1 exclusive dtype = f32"),
    },
    SELDOM,
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", slow_ones((f"{name}_{label}" for name in REDUCTIONS for label in AXES), SELDOM))
def test_reduction(case: str, shape: tuple[int, ...]):
    name, _, label = case.partition("_")
    axes = AXES[label]
    count = np.prod([shape[axis] for axis in (range(3) if axes is None else axes)])
    if name in ("max", "min") and count == 0:
        return
    x = random("f32", *shape)
    with np.errstate(all="ignore"):
        expected = _reference(name, wide(x), axes, label == "two")
    PROGRAMS.check(case, [x], expected.astype(np.float32), Tolerance(1e-4, 1e-5))


def _reference(name: str, x: np.ndarray, axes: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    shape = np.sum(x, axis=axes, keepdims=keepdims).shape
    if name not in ("sum", "prod") and x.size == 0:
        return np.full(shape, np.nan)
    return np.asarray(REDUCTIONS[name](x, axis=axes, keepdims=keepdims))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["max_all", "min_last"])
def test_no_extreme_of_no_elements(mode: str, name: str):
    with pytest.raises(ValueError, match="at least one element"):
        PROGRAMS.runners[mode](name)(random("f32", 2, 3, 0))


@pytest.mark.parametrize("case", slow_ones((f"sum_{dtype}" for dtype in SUMS), SELDOM))
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 50)])
def test_sum_in_other_dtypes(case: str, shape: tuple[int, int]):
    dtype = case.removeprefix("sum_")
    x = random(dtype, *shape, low=-100, high=100)
    expected = wide(x).sum(axis=1, dtype=wide(x).dtype)
    PROGRAMS.check(case, [x], expected.astype(DTYPES[dtype]))


def test_many_small_numbers_in_few_bits():
    """The sum is not kept in 16 bits, in which it would stop growing."""
    x = np.full((1, 5000), 0.125, DTYPES["bf16"])
    PROGRAMS.check("sum_bf16", [x], np.array([625], DTYPES["bf16"]))
    PROGRAMS.check("mean_bf16", [x], np.array([0.125], DTYPES["bf16"]))
    PROGRAMS.check("mean_f16", [x.astype(np.float16)], np.array([0.125], np.float16))


def test_extremes():
    x = np.array([[-(2**31), -5], [7, 2**31 - 1]], np.int32)
    PROGRAMS.check("max_i32", [x], np.array([-5, 2**31 - 1], np.int32))
    PROGRAMS.check("max_ui8", [np.array([[0, 200], [3, 2]], np.uint8)], np.array([200, 3], np.uint8))
    nan = np.array([[1, np.nan, 3, 2], [-np.inf, -np.inf, -np.inf, -np.inf]], np.float32)
    PROGRAMS.check("fixed", [nan], np.array([np.nan, -np.inf], np.float32))
    PROGRAMS.check("fixed", [nan[:0]], nan[:0, 0])


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (0, 4)])
def test_special_shapes(shape: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("nothing", [x], x)
    PROGRAMS.check("ranked", [x], x.sum(0))
    PROGRAMS.check("scalar", [np.asarray(2.5, np.float32)], np.asarray(2.5, np.float32))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 7)])
def test_scan(name: str, shape: tuple[int, int]):
    x = random("f32", *shape, low=-2, high=2)
    function = getattr(np, name)
    start = np.float32(name == "cumprod")
    PROGRAMS.check(f"{name}_rows", [x], function(x, axis=1))
    PROGRAMS.check(f"{name}_columns", [x], function(x, axis=0))
    PROGRAMS.check(f"{name}_flat", [x], function(x))
    PROGRAMS.check(f"{name}_f64", [x], function(x.astype(np.float64), axis=0))
    PROGRAMS.check(f"{name}_exclusive", [x], _shifted(function(x, axis=1), start))
    PROGRAMS.check(f"{name}_flat_exclusive", [x], _shifted(function(x).reshape(1, -1), start).reshape(-1))


def _shifted(x: np.ndarray, start: np.float32) -> np.ndarray:
    return np.concatenate([np.full((x.shape[0], 1), start), x[:, :-1]], 1)[:, : x.shape[1]]


def test_scan_of_other_dtypes():
    x = np.full((2, 600), 0.5, DTYPES["bf16"])
    PROGRAMS.check("cumsum_bf16", [x], (np.arange(1, 601) / 2).astype(DTYPES["bf16"]) * np.ones((2, 1), DTYPES["bf16"]))
    y = random("i8", 3, 200, low=-100, high=100)
    PROGRAMS.check("cumsum_i8", [y], np.cumsum(y, 1, np.int32))
    flags = random("i8", 3, 20, low=0, high=4) > 0
    PROGRAMS.check("cumsum_i1", [flags], np.cumsum(flags, 0, np.int8))
    PROGRAMS.check("cumprod_i1", [flags], _shifted(np.cumprod(flags, 1, np.float32), np.float32(1)))


def test_extremes_of_nothing_where_there_are_no_results():
    """An axis without elements is no error if the result has none either."""
    program = """relax.func @main(%x: !relax.tensor<[0, 2, 0], f32>, %i: !relax.tensor<[3], i64>) -> !relax.object {
      %greatest = relax.max %x axes = [2]
      %least = relax.min %x axes = [-1] keepdims
      %which = relax.argmax %x axis = 2
      %other = relax.argmin %x axis = 0 keepdims
      %taken = relax.take %x, %i axis = 2
      %padded = relax.nn.pad %x pad_width = [0, 0, 1, 1, 2, 2] mode = "replicate"
      %results = relax.tuple(%greatest, %least, %which, %other, %taken, %padded)
      relax.return %results
    }"""
    results: Any = run_everywhere(program, "main", [np.zeros((0, 2, 0), np.float32), np.arange(3)])
    shapes = [np.shape(each) for each in results]
    assert shapes == [(0, 2), (0, 2, 1), (0, 2), (1, 2, 0), (0, 2, 3), (0, 4, 4)]
