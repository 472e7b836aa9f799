"""Activation functions and softmax against NumPy, in every mode."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, Tolerance, random, wide

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


FUNCTIONS: dict[str, tuple[str, Callable[[np.ndarray], Any]]] = {
    "relu": ("relax.nn.relu %x", lambda x: np.maximum(x, 0)),
    "gelu": ("relax.nn.gelu %x", lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
    "gelu_tanh": ("relax.nn.gelu_tanh %x", _gelu_tanh),
    "silu": ("relax.nn.silu %x", lambda x: x * _sigmoid(x)),
    "selu": (
        "relax.nn.selu %x",
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    ),
    "leakyrelu": ("relax.nn.leakyrelu %x alpha = 0.1", lambda x: np.where(x > 0, x, 0.1 * x)),
    "softplus": (
        "relax.nn.softplus %x beta = 2.0 threshold = 5.0",
        lambda x: np.where(x > 2.5, x, np.log1p(np.exp(2 * x)) / 2),
    ),
    "clip": ("relax.clip %x min = -1.5 max = 2.0", lambda x: np.clip(x, -1.5, 2.0)),
}
MATRIX = "%x: !relax.tensor<[n, m], f32>"
FLOATS = ("f16", "bf16", "f64")


def _vector(dtype: str) -> str:
    return f"%x: !relax.tensor<[n], {dtype}>"


PROGRAMS = Programs(
    {
        **{name: (_vector("f32"), body) for name, (body, _) in FUNCTIONS.items()},
        **{f"gelu_{dtype}": (_vector(dtype), "relax.nn.gelu %x") for dtype in FLOATS},
        **{f"clip_{dtype}": (_vector(dtype), "relax.clip %x min = -3.7 max = 200.5") for dtype in ("i8", "ui8", "f16")},
        "relu_i32": (_vector("i32"), "relax.nn.relu %x"),
        "clip_wide": (_vector("f16"), "relax.clip %x min = -1.0e+30 max = 1.0"),
        "prelu": (f"{MATRIX}, %s: !relax.tensor<[m], f32>", "relax.nn.prelu %x, %s"),
        "prelu_one": (f"{MATRIX}, %s: !relax.tensor<[k], f32>", "relax.nn.prelu %x, %s axis = 0"),
        **{
            f"{name}_{label}": (MATRIX, f"relax.nn.{name} %x axis = {axis}")
            for name in ("softmax", "log_softmax")
            for label, axis in {"rows": -1, "columns": 0}.items()
        },
        **{f"softmax_{dtype}": (f"%x: !relax.tensor<[n, m], {dtype}>", "relax.nn.softmax %x") for dtype in FLOATS},
        "log_softmax_bf16": ("%x: !relax.tensor<[n, m], bf16>", "relax.nn.log_softmax %x"),
        "ranked": ("%x: !relax.tensor<[_, _], f32>", "relax.nn.softmax %x"),
    }
)


@pytest.mark.parametrize("size", [0, 1, 33])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str, size: int):
    x = random("f32", size)
    PROGRAMS.check(name, [x], FUNCTIONS[name][1](wide(x)).astype(np.float32))


@pytest.mark.parametrize("name", ["relu", "leakyrelu", "clip", "silu"])
def test_values_that_are_no_numbers(name: str):
    x = np.array([np.nan, np.inf, 0.0], np.float32)
    PROGRAMS.check(name, [x], FUNCTIONS[name][1](wide(x)).astype(np.float32))


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_far_from_zero(name: str):
    """What is taken of large numbers is all or nothing."""
    x = np.array([3e38, -3e38, 1e5, -1e5, -800, -88.7, 90] * 5, np.float32)
    PROGRAMS.check(name, [x], np.maximum(x, 0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_other_floats(dtype: str):
    x = random(dtype, 33)
    PROGRAMS.check(f"gelu_{dtype}", [x], FUNCTIONS["gelu"][1](wide(x)).astype(DTYPES[dtype]))


def test_bounds_in_the_dtype():
    PROGRAMS.check("clip_i8", [np.array([-128, -4, -3, 127], np.int8)], np.array([-3, -3, -3, 127], np.int8))
    PROGRAMS.check("clip_ui8", [np.array([0, 199, 201], np.uint8)], np.array([0, 199, 200], np.uint8))
    PROGRAMS.check("clip_f16", [np.array([-4, 300], np.float16)], np.array([-3.7, 200.5], np.float16))
    PROGRAMS.check("clip_wide", [np.array([-60000, 2], np.float16)], np.array([-60000, 1], np.float16))
    PROGRAMS.check("relu_i32", [np.array([-3, 3], np.int32)], np.array([0, 3], np.int32))


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (4, 7)])
def test_prelu(shape: tuple[int, int]):
    x = random("f32", *shape)
    slope, one = random("f32", shape[1], seed=1), random("f32", 1, seed=2)
    PROGRAMS.check("prelu", [x, slope], np.where(x > 0, x, slope * x))
    PROGRAMS.check("prelu_one", [x, one], np.where(x > 0, x, one * x))
    column = random("f32", shape[0], seed=3)
    PROGRAMS.check("prelu_one", [x, column], np.where(x > 0, x, column.reshape(-1, 1) * x))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True, initial=-1e30))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 7), (5, 1)])
def test_softmax(shape: tuple[int, int]):
    x = random("f32", *shape, low=-80, high=80)
    for axis, label in ((1, "rows"), (0, "columns")):
        expected = _softmax(wide(x), axis)
        PROGRAMS.check(f"softmax_{label}", [x], expected.astype(np.float32))
        with np.errstate(divide="ignore"):
            logarithm = np.log(expected) if x.size and expected.min(initial=1) > 0 else None
        if logarithm is not None:
            PROGRAMS.check(f"log_softmax_{label}", [x], logarithm.astype(np.float32), Tolerance(1e-5, 1e-4))
    PROGRAMS.check("ranked", [x], _softmax(wide(x), 1).astype(np.float32))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_other_floats(dtype: str):
    x = random(dtype, 3, 40)
    PROGRAMS.check(f"softmax_{dtype}", [x], _softmax(wide(x), 1).astype(DTYPES[dtype]))
    if dtype == "bf16":
        PROGRAMS.check("log_softmax_bf16", [x], np.log(_softmax(wide(x), 1)).astype(DTYPES[dtype]))
