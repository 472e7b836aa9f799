"""Comparison and choice lane by lane: all predicates, as the interpreter and NumPy have them."""

import math

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS

FLOATS = [0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan, 0.5]
INTEGERS = [0, 1, -1, 5, -128, 127, 64, -7]
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i64": np.int64}


def program(predicate: str, dtype: str) -> str:
    return f"""
    tir.prim_func @f(%X: !tir.buffer<[64], {dtype}>, %Y: !tir.buffer<[64], {dtype}>) {{
      %c8 = arith.constant 8 : index
      tir.for (%turn) in (%c8) {{
        %first = arith.muli %turn, %c8 : index
        %x = tir.load %X[%first] : vector<8x{dtype}>
        %y = tir.load %Y[%first] : vector<8x{dtype}>
        %mask = tir.compare {predicate} %x, %y : vector<8x{dtype}>
        %z = tir.select %mask, %x, %y : vector<8x{dtype}>
        tir.store %z, %Y[%first]
      }}
    }}"""


def pairs(values: list[float], dtype: str) -> list[np.ndarray]:
    return [each.ravel().astype(DTYPES[dtype]) for each in np.meshgrid(values, values)]


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("predicate", CMPF_COMPARISON_OPERATIONS)
def test_floats(predicate: str, dtype: str, same_as_interpreter) -> None:
    same_as_interpreter(program(predicate, dtype), pairs(FLOATS, dtype), {})


@pytest.mark.parametrize("dtype", ["i8", "i64"])
@pytest.mark.parametrize("predicate", CMPI_COMPARISON_OPERATIONS)
def test_integers(predicate: str, dtype: str, same_as_interpreter) -> None:
    same_as_interpreter(program(predicate, dtype), pairs(INTEGERS, dtype), {})
