"""Unary elementwise operators against NumPy, in every mode."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, random, wide

FLOATS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "acos": (np.arccos, -1, 1),
    "acosh": (np.arccosh, 1, 9),
    "asin": (np.arcsin, -1, 1),
    "asinh": (np.arcsinh, -9, 9),
    "atan": (np.arctan, -9, 9),
    "atanh": (np.arctanh, -0.9, 0.9),
    "ceil": (np.ceil, -9, 9),
    "cos": (np.cos, -9, 9),
    "cosh": (np.cosh, -4, 4),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), -3, 3),
    "exp": (np.exp, -9, 4),
    "floor": (np.floor, -9, 9),
    "log": (np.log, 0.125, 99),
    "round": (np.round, -9, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.125, 99),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -9, 9),
    "sin": (np.sin, -9, 9),
    "sinh": (np.sinh, -4, 4),
    "sqrt": (np.sqrt, 0, 99),
    "square": (np.square, -9, 9),
    "tan": (np.tan, -1.5, 1.5),
    "tanh": (np.tanh, -4, 4),
    "trunc": (np.trunc, -9, 9),
}
NUMBERS: dict[str, Callable[..., Any]] = {"abs": np.abs, "negative": np.negative, "sign": np.sign}
PREDICATES: dict[str, Callable[..., Any]] = {"isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan}
SHAPES = ((0,), (1,), (7,), (33,))


def _param(dtype: str) -> str:
    return f"%x: !relax.tensor<[n], {dtype}>"


PROGRAMS = Programs(
    {
        **{name: (_param("f32"), f"relax.{name} %x") for name in (*FLOATS, *NUMBERS, *PREDICATES)},
        **{f"{name}_i32": (_param("i32"), f"relax.{name} %x") for name in (*NUMBERS, "bitwise_not", "square")},
        **{f"exp_{dtype}": (_param(dtype), "relax.exp %x") for dtype in ("f16", "bf16", "f64")},
        "sign_ui8": (_param("ui8"), "relax.sign %x"),
        "bitwise_not_ui8": (_param("ui8"), "relax.bitwise_not %x"),
        "bitwise_not_i1": (_param("i1"), "relax.bitwise_not %x"),
        "logical_not": (_param("i1"), "relax.logical_not %x"),
        "reciprocal": (_param("f64"), "relax.reciprocal %x"),
        "scalar": ("%x: !relax.tensor<[], f32>", "relax.exp %x"),
        "ranked": ("%x: !relax.tensor<[_, _], f32>", "relax.exp %x"),
    }
)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_function_of_floats(name: str, shape: tuple[int, ...]):
    function, low, high = FLOATS[name]
    x = random("f32", *shape, low=low, high=high)
    PROGRAMS.check(name, [x], function(wide(x)).astype(np.float32))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_function_of_numbers(name: str, dtype: str):
    x = random(dtype, 21)
    PROGRAMS.check(name if dtype == "f32" else f"{name}_i32", [x], NUMBERS[name](x))


@pytest.mark.parametrize("name", PREDICATES)
def test_predicate(name: str):
    x = np.array([0, -0.0, 1, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    PROGRAMS.check(name, [x], PREDICATES[name](x))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_other_floats(dtype: str):
    x = random(dtype, 33)
    PROGRAMS.check(f"exp_{dtype}", [x], np.exp(wide(x)).astype(DTYPES[dtype]))


@pytest.mark.parametrize("name", ["sqrt", "log", "sigmoid", "tanh", "floor", "round", "sign", "abs", "exp"])
def test_values_that_are_no_numbers(name: str):
    x = np.array([np.inf, np.nan, -0.0, 0.0, 2.5, -2.5, 3.5, 0.5, 1e-40], np.float32)
    function = FLOATS[name][0] if name in FLOATS else NUMBERS[name]
    with np.errstate(all="ignore"):
        PROGRAMS.check(name, [x], function(wide(x)).astype(np.float32))


def test_integers():
    x = np.array([0, 1, -1, 2**31 - 1, -(2**31)], np.int32)
    PROGRAMS.check("abs_i32", [x], np.abs(x))
    PROGRAMS.check("negative_i32", [x], -x)
    PROGRAMS.check("bitwise_not_i32", [x], ~x)
    with np.errstate(all="ignore"):
        PROGRAMS.check("square_i32", [x], x * x)
    u = np.array([0, 1, 127, 128, 255], np.uint8)
    PROGRAMS.check("sign_ui8", [u], np.sign(u))
    PROGRAMS.check("bitwise_not_ui8", [u], ~u)


def test_truth_values():
    x = np.array([True, False, True])
    PROGRAMS.check("logical_not", [x], ~x)
    PROGRAMS.check("bitwise_not_i1", [x], ~x)


def test_scalars_and_tensors_of_which_only_the_rank_is_known():
    PROGRAMS.check("scalar", [np.asarray(1.5, np.float32)], np.asarray(np.exp(1.5), np.float32))
    PROGRAMS.check("reciprocal", [np.array([0.5, -4.0, 0.0])], np.array([2.0, -0.25, np.inf]))
    for shape in ((0, 3), (1, 1), (3, 5)):
        x = random("f32", *shape)
        PROGRAMS.check("ranked", [x], np.exp(x))
