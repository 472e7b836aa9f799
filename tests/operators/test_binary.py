"""Binary and ternary elementwise operators against NumPy, in every mode, with broadcasting that is known or not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.operators.support import DTYPES, MODES, Programs, function, random, wide
from tests.support.programs import IDENTICAL, run_everywhere


def _truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.trunc(x.astype(np.float64) / y).astype(x.dtype)


FLOATS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "atan2": np.arctan2,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "floor_mod": np.mod,
    "log_add_exp": np.logaddexp,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": np.fmod,
    "multiply": np.multiply,
    "power": lambda x, y: np.power(np.abs(x), y),
    "subtract": np.subtract,
}
INTEGERS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "divide": _truncated,
    "floor_divide": np.floor_divide,
    "floor_mod": np.mod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": np.fmod,
    "multiply": np.multiply,
    "subtract": np.subtract,
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "equal": np.equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "not_equal": np.not_equal,
}
LOGIC: dict[str, Callable[..., Any]] = {
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
UNSIGNED = ("add", "divide", "less", "maximum", "right_shift")
SHIFTS: dict[str, Callable[..., Any]] = {"left_shift": np.left_shift, "right_shift": np.right_shift}


def _params(dtype: str) -> str:
    return f"%x: !relax.tensor<[n], {dtype}>, %y: !relax.tensor<[n], {dtype}>"


def _body(name: str) -> str:
    return "%a = relax.abs %x; relax.power %a, %y" if name == "power" else f"relax.{name} %x, %y"


MATRIX = "!relax.tensor<[n, m], f32>"
PROGRAMS = Programs(
    {
        **{name: (_params("f32"), _body(name)) for name in (*FLOATS, *COMPARISONS)},
        **{f"{name}_i32": (_params("i32"), _body(name)) for name in (*INTEGERS, *SHIFTS)},
        **{
            f"{name}_ui8": (_params("ui8"), _body(name)) for name in ("add", "divide", "less", "maximum", "right_shift")
        },
        **{f"{name}_i1": (_params("i1"), _body(name)) for name in (*LOGIC, "equal")},
        **{f"add_{dtype}": (_params(dtype), "relax.add %x, %y") for dtype in ("f16", "bf16", "f64", "i64")},
        "ewise_fma": (_params("f32"), "relax.ewise_fma %x, %y, %x"),
        "row": (f"%x: {MATRIX}, %y: !relax.tensor<[m], f32>", "relax.add %x, %y"),
        "column": (f"%x: {MATRIX}, %y: !relax.tensor<[n, 1], f32>", "relax.subtract %x, %y"),
        "scalar": (f"%x: {MATRIX}, %y: !relax.tensor<[], f32>", "relax.multiply %x, %y"),
        "outer": ("%x: !relax.tensor<[n, 1], f32>, %y: !relax.tensor<[1, m], f32>", "relax.multiply %x, %y"),
        "unknown": (f"%x: {MATRIX}, %y: !relax.tensor<[k, l], f32>", "relax.add %x, %y"),
        "ranked": ("%x: !relax.tensor<[_, _], f32>, %y: !relax.tensor<[_, _], f32>", "relax.add %x, %y"),
        "itself": (f"%x: {MATRIX}", "relax.multiply %x, %x"),
    }
)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("size", [0, 1, 33])
def test_function_of_floats(name: str, size: int):
    x, y = random("f32", size, seed=1), random("f32", size, seed=2)
    y[y == 0] = 0.5
    PROGRAMS.check(name, [x, y], FLOATS[name](wide(x), wide(y)).astype(np.float32))


def test_floor_of_the_exact_quotient():
    """`1 / 0.1` is 10 when it is rounded, but 0.1 is a little more than a tenth; of infinity there is no floor."""
    x = np.array([1, -1, 6, 0.3, np.inf, 5, -5, 0, -1, 1e30, 16777216], np.float32)
    y = np.array([0.1, 0.1, 0.1, -0.1, 2, np.inf, np.inf, 0, 0, 3, 3], np.float32)
    with np.errstate(all="ignore"):
        expected = np.floor_divide(x, y)
    PROGRAMS.check("floor_divide", [x, y], expected)


@pytest.mark.parametrize("name", INTEGERS)
def test_function_of_integers(name: str):
    x, y = random("i32", 50, seed=1, low=-9, high=9), random("i32", 50, seed=2, low=-9, high=9)
    y[y == 0] = 3
    PROGRAMS.check(f"{name}_i32", [x, y], INTEGERS[name](x, y))


def test_integers_divided_by_nothing():
    """0, as NumPy has it, and not a signal; the least number divided by -1 stays what it is."""
    least = np.iinfo(np.int32).min
    x, y = np.array([7, -7, least, least, 0], np.int32), np.array([0, 0, 3, -1, 0], np.int32)
    third = -715_827_882
    for name, expected in {
        "divide": [0, 0, third, least, 0],
        "floor_divide": [0, 0, third - 1, least, 0],
        "mod": [0, 0, -2, 0, 0],
        "floor_mod": [0, 0, 1, 0, 0],
    }.items():
        PROGRAMS.check(f"{name}_i32", [x, y], np.array(expected, np.int32))


@pytest.mark.parametrize("name", SHIFTS)
def test_shift(name: str):
    x, y = random("i32", 50, seed=1, low=-99, high=99), np.arange(50, dtype=np.int32) % 32
    PROGRAMS.check(f"{name}_i32", [x, y], SHIFTS[name](x, y))


def test_unsigned_integers():
    x, y = np.array([200, 255, 0, 128, 7], np.uint8), np.array([100, 1, 5, 2, 3], np.uint8)
    for name, expected in {
        "add": x + y,
        "divide": x // y,
        "less": x < y,
        "maximum": np.maximum(x, y),
        "right_shift": np.right_shift(x, y % 8),
    }.items():
        PROGRAMS.check(f"{name}_ui8", [x, y % 8 if name == "right_shift" else y], expected)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison(name: str):
    x, y = random("f32", 40, seed=1), random("f32", 40, seed=2)
    x[:5], y[3:8] = np.nan, np.inf
    y[10:20] = x[10:20]
    PROGRAMS.check(name, [x, y], COMPARISONS[name](x, y))


@pytest.mark.parametrize("name", LOGIC)
def test_logic(name: str):
    x, y = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    PROGRAMS.check(f"{name}_i1", [x, y], LOGIC[name](x, y))
    PROGRAMS.check("equal_i1", [x, y], x == y)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "i64"])
def test_other_dtypes(dtype: str):
    x, y = random(dtype, 33, seed=1), random(dtype, 33, seed=2)
    PROGRAMS.check(f"add_{dtype}", [x, y], (x + y).astype(DTYPES[dtype]))


@pytest.mark.parametrize("name", ["maximum", "minimum", "divide", "floor_mod", "mod", "atan2", "log_add_exp"])
def test_values_that_are_no_numbers(name: str):
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5], np.float32)
    x, y = (each.reshape(-1) for each in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        PROGRAMS.check(name, [x, y], FLOATS[name](x, y))


def test_fused_multiply_add():
    x, y = random("f32", 33, seed=1), random("f32", 33, seed=2)
    PROGRAMS.check("ewise_fma", [x, y], x * y + x)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (1, 5), (5, 1), (4, 7)])
def test_broadcast(rows: int, columns: int):
    x = random("f32", rows, columns)
    row, column, scalar = random("f32", columns, seed=1), random("f32", rows, 1, seed=2), random("f32", seed=3)
    PROGRAMS.check("row", [x, row], x + row)
    PROGRAMS.check("column", [x, column], x - column)
    PROGRAMS.check("scalar", [x, scalar], x * scalar)
    PROGRAMS.check("outer", [column, row.reshape(1, -1)], column * row)
    PROGRAMS.check("itself", [x], x * x)


@pytest.mark.parametrize("name", ["unknown", "ranked"])
@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (3, 4)), ((1, 4), (3, 1)), ((3, 4), (1, 1)), ((0, 4), (1, 4)), ((1, 1), (0, 1))]
)
def test_broadcast_that_is_decided_at_run_time(name: str, left: tuple[int, int], right: tuple[int, int]):
    x, y = random("f32", *left, seed=1), random("f32", *right, seed=2)
    PROGRAMS.check(name, [x, y], x + y)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["unknown", "ranked"])
def test_shapes_that_do_not_broadcast(mode: str, name: str):
    with pytest.raises(ValueError, match="broadcast"):
        PROGRAMS.runners[mode](name)(random("f32", 3, 4), random("f32", 2, 4))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i32"])
def test_multiply_add_rounds_once(dtype: str):
    """Where the sum cancels, the rounding of the product would be all that is left."""
    kind = DTYPES[dtype]
    rng = np.random.default_rng(0)
    numbers = rng.integers(-100, 100, (2, 203)) if dtype == "i32" else rng.standard_normal((2, 203))
    x, y = numbers.astype(kind)
    product = x.astype(np.float64) * y.astype(np.float64)
    z = np.where(np.arange(203) % 3 == 0, y, (-product).astype(kind))
    params = ", ".join(f"%{name}: !relax.tensor<[n], {dtype}>" for name in "xyz")
    result = run_everywhere(function("main", params, "relax.ewise_fma %x, %y, %z"), "main", [x, y, z], IDENTICAL)
    if dtype != "f64":
        np.testing.assert_array_equal(np.asarray(result), (product + z.astype(np.float64)).astype(kind))
