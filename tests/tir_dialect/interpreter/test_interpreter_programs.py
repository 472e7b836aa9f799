"""Loops, blocks, memory and calls: programs against NumPy, and the errors of wrong ones."""

import ctypes

import numpy as np
import pytest

from tests.support.kernels import MATMUL
from tests.support.tir import parse_prim_func, run_text
from tir_dialect.interpreter import UnsupportedOpError, compile_prim_func, run_prim_func

SIZES = [0, 1, 2, 5, 8]


def random(*shape):
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("k", [0, 1, 5])
def test_matmul(m, n, k):
    a, b, c = random(m, n), random(n, k), np.full((m, k), np.nan, np.float32)
    run_text(MATMUL, a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("n", SIZES)
def test_where_guards_a_split_that_does_not_divide(n):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
      %c4 = arith.constant 4 : index
      %outer = tir.dim ceildiv(n, 4)
      tir.for (%i0, %i1) in (%outer, %c4) {
        %base = arith.muli %i0, %c4 : index
        %i = arith.addi %base, %i1 : index
        %inside = arith.cmpi slt, %i, %n : index
        tir.block "copy" (%vi = spatial %i in %n) where %inside {
          %x = tir.load %X[%vi]
          tir.store %x, %Y[%vi]
        }
      }
    }
    """
    x, y = random(n), np.full(n, np.nan, np.float32)
    run_text(text, x, y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("n", SIZES)
def test_padding_by_if_with_a_result(n):
    text = """
    tir.prim_func @pad[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n + 2], f32>) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %e = tir.dim n + 2
      tir.for (%i) in (%e) {
        %j = arith.subi %i, %c1 : index
        %low = arith.cmpi sge, %j, %c0 : index
        %high = arith.cmpi slt, %j, %n : index
        %inside = arith.andi %low, %high : i1
        %v = tir.if %inside -> (f32) {
          %x = tir.load %X[%j]
          tir.yield %x
        } else {
          tir.yield %zero
        }
        tir.store %v, %Y[%i]
      }
    }
    """
    x, y = random(n), np.full(n + 2, np.nan, np.float32)
    run_text(text, x, y)
    np.testing.assert_array_equal(y, np.pad(x, 1))


def test_while_loop():
    text = """
    tir.prim_func @collatz(%X: !tir.buffer<[], i64>, %N: !tir.buffer<[], i64>) {
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i64
      %three = arith.constant 3 : i64
      tir.while {
        %x = tir.load %X[]
        %go = arith.cmpi ne, %x, %one : i64
        tir.condition %go
      } do {
        %x = tir.load %X[]
        %h = arith.divsi %x, %two : i64
        %r = arith.remsi %x, %two : i64
        %odd = arith.cmpi eq, %r, %one : i64
        %t = arith.muli %x, %three : i64
        %u = arith.addi %t, %one : i64
        %y = arith.select %odd, %u, %h : i64
        tir.store %y, %X[]
        %n = tir.load %N[]
        %n1 = arith.addi %n, %one : i64
        tir.store %n1, %N[]
      }
    }
    """
    x, n = np.array(27), np.array(0)
    run_text(text, x, n)
    assert (x[()], n[()]) == (1, 111)


@pytest.mark.parametrize("n", SIZES)
def test_local_buffers_and_views(n):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n, 4], f32>, %Y: !tir.buffer<[n, 2], f32>) {
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      tir.for (%i) in (%n) {
        %T = tir.alloc_buffer : !tir.buffer<[2], f32, scope = "local">
        %R = tir.match_buffer %X[%i, %c2 to %c4] : !tir.buffer<[2], f32>
        tir.for (%j) in (%c2) {
          %x = tir.load %R[%j]
          tir.store %x, %T[%j]
        }
        tir.for (%j) in (%c2) {
          %t = tir.load %T[%j]
          tir.store %t, %Y[%i, %j]
        }
      }
    }
    """
    x, y = random(n, 4), np.full((n, 2), np.nan, np.float32)
    run_text(text, x, y)
    np.testing.assert_array_equal(y, x[:, 2:])


def test_allocated_memory_is_undefined():
    text = """
    tir.prim_func @f(%Y: !tir.buffer<[1], f32>, %Z: !tir.buffer<[1], i32>) {
      %c0 = arith.constant 0 : index
      %F = tir.alloc_buffer : !tir.buffer<[1], f32>
      %I = tir.alloc_buffer : !tir.buffer<[1], i32>
      %f = tir.load %F[%c0]
      %i = tir.load %I[%c0]
      tir.store %f, %Y[%c0]
      tir.store %i, %Z[%c0]
    }
    """
    y, z = np.zeros(1, np.float32), np.zeros(1, np.int32)
    run_text(text, y, z)
    assert np.isnan(y[0])
    assert z[0] != 0


def test_compound_dims_and_scalars():
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[2 * floordiv(n, 2)], f32>, %s: f32, %k: i32) {
      %e = tir.dim 2 * floordiv(n, 2)
      %kf = arith.sitofp %k : i32 to f32
      tir.for (%i) in (%e) {
        %x = tir.load %X[%i]
        %y = arith.mulf %x, %s : f32
        %z = arith.addf %y, %kf : f32
        tir.store %z, %Y[%i]
      }
    }
    """
    x, y = random(7), np.zeros(6, np.float32)
    run_text(text, x, y, 0.5, -3)
    np.testing.assert_array_equal(y, x[:6] * np.float32(0.5) - 3)


@pytest.mark.parametrize("n", SIZES)
def test_calls_of_prim_funcs(n):
    text = """
    tir.prim_func @rows[%n, %m](%X: !tir.buffer<[n, m], f32>) {
      tir.for (%i) in (%n) {
        %R = tir.match_buffer %X[%i, %m0 to %m] : !tir.buffer<[m], f32>
        tir.call @negate[%m](%R)
      }
    }
    tir.prim_func private @negate[%k](%V: !tir.buffer<[k], f32>) {
      tir.for (%i) in (%k) {
        %v = tir.load %V[%i]
        %w = arith.negf %v : f32
        tir.store %w, %V[%i]
      }
    }
    """.replace("tir.for (%i) in (%n) {", "%m0 = tir.dim 0 tir.for (%i) in (%n) {")
    x = random(n, 3)
    expected = -x
    run_text(text, x)
    np.testing.assert_array_equal(x, expected)


EXTERN = """
tir.prim_func @f(%X: !tir.buffer<[3], ui8>, %Y: !tir.buffer<[3], f64>) {
  %c0 = arith.constant 0 : index
  %y = tir.load %Y[%c0]
  %r = tir.call_extern pure "sqrt"(%y) : f64
  tir.store %r, %Y[%c0]
  tir.call_extern "touch"(%X, %y, %c0)
}
"""


def test_calls_of_c_functions():
    seen = []

    def touch(array, y, index):
        seen.append((array.dtype, y, index))
        array[:] = 7

    x, y = np.zeros(3, np.uint8), np.full(3, 2.0)
    run_text(EXTERN, x, y, externs={"touch": touch})
    assert y[0] == 2.0**0.5
    assert list(x) == [7, 7, 7]
    assert seen == [(np.uint8, 2.0, 0)]


def test_c_functions_get_addresses():
    text = """
    tir.prim_func @f(%X: !tir.buffer<[4], i8>) {
      %v = arith.constant 65 : i32
      %n = arith.constant 4 : i64
      tir.call_extern "memset"(%X, %v, %n)
    }
    """
    assert ctypes.CDLL(None).memset
    x = np.zeros(4, np.int8)
    run_text(text, x)
    assert list(x) == [65] * 4


def test_calls_of_packed_functions():
    import tvm_ffi

    tvm_ffi.register_global_func(
        "test.tir.fill", lambda tensor, value: np.from_dlpack(tensor).fill(value), override=True
    )
    text = """
    tir.prim_func @f(%X: !tir.buffer<[2, 2], f32>, %v: f32) {
      tir.call_packed "test.tir.fill"(%X, %v)
    }
    """
    x = np.zeros((2, 2), np.float32)
    run_text(text, x, 2.5)
    np.testing.assert_array_equal(x, np.full((2, 2), 2.5))


def test_unknown_functions():
    with pytest.raises(UnsupportedOpError, match='"touch", which is not among the externs'):
        run_text(EXTERN, np.zeros(3, np.uint8), np.zeros(3))


@pytest.mark.parametrize("order", [iter, reversed])
def test_parallel_loops_run_in_any_order(order):
    text = """
    tir.prim_func @f[%n]() {
      tir.for parallel (%i) in (%n) {
        %v = arith.index_cast %i : index to i64
        tir.call_packed "note"(%v)
      }
    }
    """
    seen: list[int] = []
    run_text(text, symbols={"n": 4}, parallel_order=order, externs={"note": seen.append})
    assert seen == list(order(range(4)))


@pytest.mark.parametrize("one_line", [True, False])
def test_deep_nests(one_line):
    depth = 100
    names, sizes = [f"%i{level}" for level in range(depth)], ["%c1"] * (depth - 2)
    lines = [f"({', '.join(names)}) in (%n, {', '.join(sizes)}, %n)"]
    if not one_line:
        lines = [f"({name}) in ({size})" for name, size in zip(names, ["%n", *sizes, "%n"], strict=True)]
    text = f"""
    tir.prim_func @f[%n](%X: !tir.buffer<[n], i64>) {{
      %c1 = arith.constant 1 : index
      {" ".join(f"tir.for {line} {{" for line in lines)}
        %v = tir.load %X[%i0]
        %k = arith.index_cast %i{depth - 1} : index to i64
        %w = arith.addi %v, %k : i64
        tir.store %w, %X[%i0]
      {"}" * len(lines)}
    }}
    """
    x = np.arange(3)
    run_text(text, x)
    assert list(x) == [3, 4, 5]


def test_compiled_functions_run_again():
    func = parse_prim_func(MATMUL)
    run = compile_prim_func(func)
    for size in (2, 3):
        a, c = random(size, size), np.zeros((size, size), np.float32)
        run([a, a, c], None)
        np.testing.assert_array_equal(c, a @ a)


def test_strided_and_read_only_arguments():
    func = parse_prim_func(MATMUL)
    a, c = random(6, 4)[::2].T, np.zeros((4, 6), np.float32)
    b = random(3, 6)
    b.flags.writeable = False
    run_prim_func(func, [a, b, c])
    np.testing.assert_array_equal(c, a @ b)
