"""Parallel loops: every iteration once, whatever the team; what the body uses from outside; nesting."""

import ctypes

import numpy as np
import pytest

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.runtime.loading import library_symbol

pytestmark = pytest.mark.sampled(2)


@pytest.fixture(params=[1, 2, 3, 7])
def threads(request: pytest.FixtureRequest):
    """Runs the test with teams of so many threads."""
    addresses = [library_symbol("relax_set_num_threads"), library_symbol("relax_max_threads")]
    assert all(addresses)
    set_threads = ctypes.CFUNCTYPE(None, ctypes.c_int)(addresses[0] or 0)
    before = ctypes.CFUNCTYPE(ctypes.c_int)(addresses[1] or 0)()
    set_threads(request.param)
    yield request.param
    set_threads(before)


COUNTING = """
tir.prim_func @f[%n](%Y: !tir.buffer<[n + 3], i64>) {
  %c2 = arith.constant 2 : index
  %last = tir.dim n + 2
  tir.for parallel (%i) in (%c2 to %last) annotations {"grain" = GRAIN : i64} {
    %y = tir.load %Y[%i]
    %v = arith.index_cast %i : index to i64
    %s = arith.addi %y, %v : i64
    tir.store %s, %Y[%i]
  }
}"""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("grain", [1, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 6, 100])
def test_every_iteration_runs_once(n: int, grain: int, threads: int, tir, native_call):
    module = tir(COUNTING.replace("GRAIN", str(grain)))
    y = np.full(n + 3, 1000)
    assert native_call(compile_prim_funcs(module, cache=NO_CACHE), next(iter(module.ops)), [y], {"n": n}) == 0
    np.testing.assert_array_equal(y, [1000, 1000, *range(1002, 1002 + n), 1000])


def test_captured_values_of_every_kind(threads: int, same_as_interpreter):
    text = """
    tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>, %a: f32) {
      %c3 = arith.constant 3 : index
      %half = arith.constant 0.5 : f32
      %b = arith.mulf %a, %half : f32
      %width = tir.dim 2 * n
      %flag = arith.cmpf ogt, %a, %half : f32
      %S = tir.alloc_buffer : !tir.buffer<[4], f32, scope = "local">
      %T = tir.alloc_buffer : !tir.buffer<[m, 2 * n], f32>
      tir.store %b, %S[%c3]
      tir.for parallel (%i) in (%m) {
        %U = tir.alloc_buffer : !tir.buffer<[2 * n], f32>
        %V = tir.alloc_buffer : !tir.buffer<[2], f32, scope = "local">
        %zero = arith.constant 0 : index
        tir.store %b, %V[%zero]
        tir.for (%j) in (%width) {
          %s = tir.load %S[%c3]
          %v = tir.load %V[%zero]
          %t = arith.addf %s, %v : f32
          tir.store %t, %U[%j]
          tir.store %t, %T[%i, %j]
        }
        tir.for (%j) in (%n) {
          %x = tir.load %X[%i, %j]
          %u = tir.load %U[%j]
          %t = tir.load %T[%i, %j]
          %w = arith.addf %u, %t : f32
          %y = arith.mulf %x, %w : f32
          %z = arith.select %flag, %y, %x : f32
          tir.store %z, %Y[%i, %j]
        }
      }
    }"""
    x = np.random.default_rng(0).standard_normal((6, 5)).astype("f4")
    for a in (2.0, 0.25):
        same_as_interpreter(text, [x, np.zeros_like(x), a], {"m": 6, "n": 5})


def test_nested_and_repeated_parallel_loops(threads: int, same_as_interpreter):
    text = """
    tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], i64>, %Y: !tir.buffer<[m, n], i64>) {
      tir.for (%k) in (%n) {
        tir.for parallel (%i) in (%m) {
          tir.for parallel (%j) in (%n) {
            %x = tir.load %X[%i, %j]
            %y = tir.load %Y[%i, %j]
            %s = arith.addi %x, %y : i64
            tir.store %s, %Y[%i, %j]
          }
        }
      }
      tir.for parallel (%i) in (%m) {
        %zero = arith.constant 0 : index
        %y = tir.load %Y[%i, %zero]
        tir.store %y, %X[%i, %zero]
      }
    }"""
    x = np.arange(12).reshape(4, 3)
    same_as_interpreter(text, [x, np.zeros_like(x)], {"m": 4, "n": 3})


def test_views_captured_together(threads: int, same_as_interpreter):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[2, n], i64>) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %A = tir.match_buffer %X[%zero, %zero to %n] : !tir.buffer<[n], i64>
      %B = tir.match_buffer %X[%one, %zero to %n] : !tir.buffer<[n], i64>
      tir.for parallel (%i) in (%n) {
        %a = tir.load %A[%i]
        tir.store %a, %B[%i]
        %b = tir.load %X[%one, %i]
        %s = arith.addi %a, %b : i64
        tir.store %s, %A[%i]
      }
    }"""
    same_as_interpreter(text, [np.arange(20).reshape(2, 10)], {"n": 10})
