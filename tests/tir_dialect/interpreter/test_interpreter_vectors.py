"""Vector loads, stores and arithmetic."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.support.tir import run_text
from tir_dialect.dtypes import numpy_dtype, parse_dtype
from tir_dialect.interpreter import OutOfRangeError
from tir_dialect.interpreter.numerics import fused_multiply_add, multiply_add_lanes

N = 11


def test_contiguous_copy_with_a_masked_tail():
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
      %c4 = arith.constant 4 : index
      %blocks = tir.dim ceildiv(n, 4)
      tir.for (%b) in (%blocks) {
        %i = arith.muli %b, %c4 : index
        %rest = arith.subi %n, %i : index
        %mask = vector.create_mask %rest : vector<4xi1>
        %x = tir.load %X[%i] mask %mask : vector<4xf32>
        %y = arith.addf %x, %x : vector<4xf32>
        tir.store %y, %Y[%i] mask %mask
      }
    }
    """
    for n in (0, 1, 4, 7, 16):
        x, y = np.arange(n, dtype=np.float32), np.full(n, -1, np.float32)
        run_text(text, x, y)
        np.testing.assert_array_equal(y, 2 * x)


def test_masked_lanes_load_zero():
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], i32>, %Y: !tir.buffer<[4], i32>) {
      %c0 = arith.constant 0 : index
      %mask = vector.create_mask %n : vector<4xi1>
      %x = tir.load %X[%c0] mask %mask : vector<4xi32>
      tir.store %x, %Y[%c0]
    }
    """
    y = np.full(4, 9, np.int32)
    run_text(text, np.array([5, 6], np.int32), y)
    assert list(y) == [5, 6, 0, 0]


def test_gather_and_scatter():
    text = """
    tir.prim_func @f(%X: !tir.buffer<[3, 11], f32>, %Y: !tir.buffer<[11, 3], f32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %lanes = tir.ramp %c0 by %c1 : vector<11xindex>
      tir.for (%i) in (%c3) {
        %x = tir.load %X[%i, %lanes]
        tir.store %x, %Y[%lanes, %i]
      }
    }
    """
    x, y = np.random.default_rng(0).random((3, 11), np.float32), np.zeros((11, 3), np.float32)
    run_text(text, x, y)
    np.testing.assert_array_equal(y, x.T)


def test_integer_lanes_wrap():
    text = """
    tir.prim_func @f(%X: !tir.buffer<[4], ui8>, %Y: !tir.buffer<[4], ui8>) {
      %c0 = arith.constant 0 : index
      %big = arith.constant dense<200> : vector<4xi8>
      %x = tir.load %X[%c0] : vector<4xi8>
      %s = arith.addi %x, %big : vector<4xi8>
      %small = arith.minui %s, %x : vector<4xi8>
      tir.store %s, %X[%c0]
      tir.store %small, %Y[%c0]
    }
    """
    x, y = np.array([0, 55, 56, 255], np.uint8), np.zeros(4, np.uint8)
    run_text(text, x, y)
    assert list(x) == [200, 255, 0, 199]
    assert list(y) == [0, 55, 0, 199]


def test_reductions_shuffles_and_elements():
    text = """
    tir.prim_func @f(%X: !tir.buffer<[4], f32>, %Y: !tir.buffer<[4], f32>, %K: !tir.buffer<[4], i8>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %x = tir.load %X[%c0] : vector<4xf32>
      %sum = vector.reduction <add>, %x : vector<4xf32> into f32
      %max = vector.reduction <maximumf>, %x, %sum : vector<4xf32> into f32
      %r = vector.shuffle %x, %x [3, 6, 1, 0] : vector<4xf32>, vector<4xf32>
      %f = vector.fma %x, %x, %r : vector<4xf32>
      %last = vector.extract %f[3] : f32 from vector<4xf32>
      %wide = vector.broadcast %last : f32 to vector<4xf32>
      %mixed = vector.insert %sum, %wide [1] : f32 into vector<4xf32>
      tir.store %mixed, %Y[%c0]
      tir.store %max, %Y[%c0]
      %k = tir.load %K[%c0] : vector<4xi8>
      %total = vector.reduction <add>, %k : vector<4xi8> into i8
      tir.store %total, %K[%c3]
    }
    """
    x, y, k = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32), np.array([100, 27, 1, 0], np.int8)
    run_text(text, x, y, k)
    assert list(y) == [10.0, 10.0, 17.0, 17.0]
    assert list(k) == [100, 27, 1, -128]


def test_lanes_are_compared_and_chosen():
    text = """
    tir.prim_func @f(%X: !tir.buffer<[4], f32>, %Y: !tir.buffer<[4], f32>, %K: !tir.buffer<[4], i8>) {
      %c0 = arith.constant 0 : index
      %x = tir.load %X[%c0] : vector<4xf32>
      %y = tir.load %Y[%c0] : vector<4xf32>
      %k = tir.load %K[%c0] : vector<4xi8>
      %zero = arith.constant dense<0> : vector<4xi8>
      %less = tir.compare olt %x, %y : vector<4xf32>
      %above = tir.compare ugt %k, %zero : vector<4xi8>
      %both = arith.andi %less, %above : vector<4xi1>
      %r = tir.select %both, %x, %y : vector<4xf32>
      tir.store %r, %Y[%c0]
    }
    """
    x, y, k = np.float32([1, 2, np.nan, 3]), np.float32([5, 1, 7, 8]), np.int8([-1, 1, 1, 0])
    run_text(text, x, y, k)
    assert list(y) == [1.0, 1.0, 7.0, 8.0]


@pytest.mark.parametrize("start", [-1, 8, 100])
def test_vector_out_of_range(start):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %s: i64) {
      %i = arith.index_cast %s : i64 to index
      %x = tir.load %X[%i] : vector<4xf32>
    }
    """
    with pytest.raises(OutOfRangeError, match=r"'tir.load' of buffer %X: index 0 is -?\d+, expected 0 <= index < 11"):
        run_text(text, np.zeros(N, np.float32), start)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_multiply_add_rounds_once(name):
    """Also where the product lies just beside the middle of two numbers: in another order that would be a tie."""
    dtype = numpy_dtype(parse_dtype(name))
    step = float(ml_dtypes.finfo(dtype).eps)
    values = [1 + step, 1 - step / 2, 3.0, -1.0, 0.1, 0.0, step, step / 4, step * step / 2, np.inf, np.nan]
    x, y, z = (np.ravel(each) for each in np.meshgrid(*[np.array(values, dtype)] * 3))
    with np.errstate(all="ignore"):
        together = multiply_add_lanes(x, y, z)
    for a, b, c, got in zip(x, y, z, together, strict=True):
        if not all(math.isfinite(v) for v in (a, b, c)):
            assert not math.isfinite(got)
            continue
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        near = [np.nextafter(got, dtype.type(end)) for end in (-np.inf, np.inf)]
        assert all(abs(exact - Fraction(float(got))) <= abs(exact - Fraction(float(other))) for other in near)
        assert float(fused_multiply_add(a, b, c)) == float(got)
