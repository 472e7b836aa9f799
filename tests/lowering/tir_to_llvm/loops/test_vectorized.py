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


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("predicate", CMPF_COMPARISON_OPERATIONS)
def test_floats(predicate: str, dtype: str, same_as_interpreter) -> None:
    same_as_interpreter(program(predicate, dtype), pairs(FLOATS, dtype), {})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["i8", "i64"])
@pytest.mark.parametrize("predicate", CMPI_COMPARISON_OPERATIONS)
def test_integers(predicate: str, dtype: str, same_as_interpreter) -> None:
    same_as_interpreter(program(predicate, dtype), pairs(INTEGERS, dtype), {})


CONVERTED = {
    "sitofp": ("i8", "f32"),
    "uitofp": ("i8", "bf16"),
    "fptosi": ("f32", "i8"),
    "fptoui": ("f64", "i64"),
    "extsi": ("i8", "i64"),
    "extui": ("i8", "i64"),
    "trunci": ("i64", "i8"),
    "extf": ("bf16", "f64"),
    "truncf": ("f64", "bf16"),
    "bitcast": ("f64", "i64"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", CONVERTED)
def test_conversions(kind: str, same_as_interpreter) -> None:
    source, target = CONVERTED[kind]
    values = [0.0, 1.0, 2.5, 100.0, 7.0, 0.25, 3.0, 64.0] if kind.startswith("fpto") else FLOATS
    given = np.array(values if source[0] != "i" else INTEGERS).astype(DTYPES[source])
    text = f"""
    tir.prim_func @f(%X: !tir.buffer<[8], {source}>, %Y: !tir.buffer<[8], {target}>) {{
      %c0 = arith.constant 0 : index
      %x = tir.load %X[%c0] : vector<8x{source}>
      %y = tir.convert {kind} %x : vector<8x{source}> to vector<8x{target}>
      tir.store %y, %Y[%c0]
    }}"""
    same_as_interpreter(text, [given, np.zeros(8, DTYPES[target])], {})


def test_lanes_from_elsewhere(same_as_interpreter) -> None:
    """Indices that are data, and the conversion of indices."""
    text = """
    tir.prim_func @f(%P: !tir.buffer<[8], i8>, %X: !tir.buffer<[8], f32>, %Y: !tir.buffer<[8], i8>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %p = tir.load %P[%c0] : vector<8xi8>
      %at = tir.convert index_cast %p : vector<8xi8> to vector<8xindex>
      %x = tir.load %X[%at] : vector<8xf32>
      %to = tir.ramp %c0 by %c1 : vector<8xindex>
      tir.store %x, %X[%to]
      %n = tir.convert index_cast %to : vector<8xindex> to vector<8xi8>
      tir.store %n, %Y[%c0]
    }"""
    places = np.array([7, 0, 3, 3, 1, 6, 5, 2], np.int8)
    same_as_interpreter(text, [places, np.arange(8, dtype=np.float32), np.zeros(8, np.int8)], {})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lanes", [2, 8, 16, 24, 64, 128])
def test_first_lane(lanes: int, same_as_interpreter) -> None:
    """Each lane alone, all from one on, and none."""
    text = f"""
    tir.prim_func @f[%n](%X: !tir.buffer<[n, {lanes}], f32>, %Y: !tir.buffer<[n], i64>) {{
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : vector<{lanes}xf32>
      tir.for (%row) in (%n) {{
        %x = tir.load %X[%row, %c0] : vector<{lanes}xf32>
        %mask = tir.compare ogt %x, %zero : vector<{lanes}xf32>
        %first = tir.first_lane %mask : vector<{lanes}xi1>
        %number = arith.index_cast %first : index to i64
        tir.store %number, %Y[%row]
      }}
    }}"""
    x = np.concatenate([np.eye(lanes), np.tri(lanes).T, np.zeros((1, lanes))]).astype(np.float32)
    places = np.zeros(len(x), np.int64)
    same_as_interpreter(text, [x, places], {"n": len(x)})
