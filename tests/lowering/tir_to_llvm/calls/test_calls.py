"""Calls of prim_funcs, C functions and packed functions; assertions; errors from every depth."""

import ctypes
import re
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from xdsl.utils.exceptions import PassFailedException

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.binding import CodegenError
from lowering.llvm.code_cache import NO_CACHE
from tir_dialect.interpreter import run_prim_func


def ffi(array: np.ndarray) -> Any:
    return tvm_ffi.from_dlpack(array)


ASSERTING = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n], i32>) {
  %T = tir.alloc_buffer : !tir.buffer<[n, 100], i32>
  %zero = arith.constant 0 : i32
  tir.for KIND (%i) in (%n) {
    %x = tir.load %X[%i]
    %fine = arith.cmpi sge, %x, %zero : i32
    tir.assert %fine, "all elements are at least 0"
    tir.store %x, %Y[%i]
  }
}"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["", "parallel", "vectorized", "unrolled"])
def test_assertions_raise_from_any_loop(kind: str, tir):
    f = compile_prim_funcs(tir(ASSERTING.replace("KIND", kind)), cache=NO_CACHE).packed("f")
    x, y = np.arange(1000, dtype=np.int32), np.zeros(1000, np.int32)
    f(ffi(x), ffi(y))
    np.testing.assert_array_equal(x, y)
    x[777] = -1
    for _ in range(20):
        with pytest.raises(ValueError, match="all elements are at least 0"):
            f(ffi(x), ffi(y))


CALLING = """
tir.prim_func private @double[%k](%X: !tir.buffer<[k], i32>, %Y: !tir.buffer<[k], i32>, %most: i32) {
  tir.for (%i) in (%k) {
    %x = tir.load %X[%i]
    %small = arith.cmpi sle, %x, %most : i32
    tir.assert %small, "small elements"
    %y = arith.addi %x, %x : i32
    tir.store %y, %Y[%i]
  }
}
tir.prim_func @f[%n, %m](%X: !tir.buffer<[n, m], i32>, %Y: !tir.buffer<[n, m], i32>) {
  %most = arith.constant 100 : i32
  %zero = arith.constant 0 : index
  %size = tir.dim SIZE
  tir.for KIND (%i) in (%n) {
    %A = tir.match_buffer %X[%i, %zero to %m] : !tir.buffer<[m], i32>
    %B = tir.match_buffer %Y[%i, %zero to %m] : !tir.buffer<[m], i32>
    tir.call @double[%size](%A, %B, %most)
  }
}"""


@pytest.mark.parametrize("kind", ["", "parallel"])
def test_calls_of_prim_funcs(kind: str, tir, same_as_interpreter):
    text = CALLING.replace("KIND", kind).replace("SIZE", "m")
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    same_as_interpreter(text, [x, np.zeros_like(x)], {"n": 3, "m": 4}, name="f")
    f = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("f")
    x[2, 3] = 101
    with pytest.raises(ValueError, match="small elements"):
        f(ffi(x), ffi(np.zeros_like(x)))


SHIFTING = """
tir.prim_func private @shift[%k](%X: !tir.buffer<[k], i32>, %Y: !tir.buffer<[k], i32>) ALIAS {
  tir.for (%i) in (%k) {
    %x = tir.load %X[%i]
    tir.store %x, %Y[%i]
  }
}
tir.prim_func @f[%n, %k](%A: !tir.buffer<[n], i32>, %from: i64, %to: i64) {
  %p = arith.index_cast %from : i64 to index
  %q = arith.index_cast %to : i64 to index
  %pe = arith.addi %p, %k : index
  %qe = arith.addi %q, %k : index
  %P = tir.match_buffer %A[%p to %pe] : !tir.buffer<[k], i32>
  %Q = tir.match_buffer %A[%q to %qe] : !tir.buffer<[k], i32>
  tir.call @shift[%k](%P, %Q)
}"""


def test_arguments_of_a_call_that_overlap(tir):
    f = compile_prim_funcs(tir(SHIFTING.replace("ALIAS", "")), cache=NO_CACHE).packed("f")
    for size, first, second in ((4, 0, 4), (4, 4, 0), (0, 3, 3), (2, 6, 1)):
        memory = np.arange(8, dtype=np.int32)
        f(8, size, ffi(memory), first, second)
        np.testing.assert_array_equal(memory[second : second + size], np.arange(first, first + size))
    for size, first, second in ((4, 0, 0), (4, 1, 0), (4, 0, 3), (1, 7, 7)):
        memory = np.arange(8, dtype=np.int32)
        with pytest.raises(ValueError, match=r"shift: argument #1 \(Y\): overlaps argument #0 \(X\): pass a copy"):
            f(8, size, ffi(memory), first, second)
        np.testing.assert_array_equal(memory, np.arange(8))
    f = compile_prim_funcs(tir(SHIFTING.replace("ALIAS", "may_alias")), cache=NO_CACHE).packed("f")
    memory = np.arange(8, dtype=np.int32)
    f(8, 5, ffi(memory), 0, 1)
    assert memory.tolist() == [0, 0, 0, 0, 0, 0, 6, 7]


TILES = """
tir.prim_func @add[%n, %a, %b, %c, %d](
    %X: !tir.buffer<[a, b], i32, strides = [n, 1]>, %Y: !tir.buffer<[c, d], i32, strides = [n, 1]>
) {
  %zero = arith.constant 0 : index
  %empty = arith.muli %a, %b : index
  %some = arith.muli %c, %d : index
  %both = arith.muli %empty, %some : index
  %any = arith.cmpi ne, %both, %zero : index
  tir.if %any {
    %x = tir.load %X[%zero, %zero]
    tir.for (%i, %j) in (%c, %d) {
      %y = tir.load %Y[%i, %j]
      %z = arith.addi %x, %y : i32
      tir.store %z, %Y[%i, %j]
    }
  }
}
tir.prim_func @f[%m, %n, %a, %b, %c, %d](%A: !tir.buffer<[m, n], i32>, %i: i64, %j: i64, %k: i64, %l: i64) {
  %i0 = arith.index_cast %i : i64 to index
  %j0 = arith.index_cast %j : i64 to index
  %k0 = arith.index_cast %k : i64 to index
  %l0 = arith.index_cast %l : i64 to index
  %i1 = arith.addi %i0, %a : index
  %j1 = arith.addi %j0, %b : index
  %k1 = arith.addi %k0, %c : index
  %l1 = arith.addi %l0, %d : index
  %P = tir.match_buffer %A[%i0 to %i1, %j0 to %j1] : !tir.buffer<[a, b], i32, strides = [n, 1]>
  %Q = tir.match_buffer %A[%k0 to %k1, %l0 to %l1] : !tir.buffer<[c, d], i32, strides = [n, 1]>
  tir.call @add[%n, %a, %b, %c, %d](%P, %Q)
}"""


def test_tiles_that_overlap(tir):
    """Rows of one tile may lie between those of another; what overlaps is refused, as by the interpreter."""
    module = tir(TILES)
    f = compile_prim_funcs(module, cache=NO_CACHE).packed("f")
    func = next(op for op in module.ops if op.sym_name.data == "f")
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(80):
        m, n = rng.integers(1, 6, 2)
        a, c = rng.integers(0, m + 1, 2)
        b, d = rng.integers(0, n + 1, 2)
        starts = [int(rng.integers(0, most + 1)) for most in (m - a, n - b, m - c, n - d)]
        memory = np.arange(m * n, dtype=np.int32).reshape(m, n)
        expected = memory.copy()
        sizes = dict(zip("abcd", map(int, (a, b, c, d)), strict=True))
        try:
            run_prim_func(func, [expected, *starts], sizes)
        except ValueError as error:
            outcomes.add("refused")
            with pytest.raises(ValueError, match=re.escape(str(error))):
                f(*map(int, memory.shape), *sizes.values(), ffi(memory), *starts)
        else:
            outcomes.add("run")
            f(*map(int, memory.shape), *sizes.values(), ffi(memory), *starts)
        np.testing.assert_array_equal(memory, expected)
    assert outcomes == {"refused", "run"}


def test_a_wrong_size_does_not_reach_the_callee(tir):
    text = (
        CALLING.replace("KIND", "")
        .replace("tir.dim SIZE", "arith.index_cast %s : i64 to index")
        .replace("%Y: !tir.buffer<[n, m], i32>) {\n  %most", "%Y: !tir.buffer<[n, m], i32>, %s: i64) {\n  %most")
    )
    f = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("f")
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    y = np.zeros_like(x)
    f(ffi(x), ffi(y), 4)
    np.testing.assert_array_equal(y, 2 * x)
    for size in (5, 3, 1 << 40):
        with pytest.raises(ValueError, match="double: argument #0 has another shape or layout than expected"):
            f(ffi(x), ffi(y), size)
    with pytest.raises(ValueError, match="double: k is less than 0"):
        f(ffi(x), ffi(y), -1)


def test_a_missing_callee_is_refused(tir):
    module = tir(CALLING.replace("KIND", "").replace("SIZE", "m"))
    double = next(iter(module.ops))
    double.detach()
    with pytest.raises(PassFailedException, match="calls @double, which is not a prim_func of the module"):
        compile_prim_funcs(module, cache=NO_CACHE)


EXTERN = """
tir.prim_func @f(%X: !tir.buffer<[4], f64>, %Y: !tir.buffer<[4], f64>) {
  %n = arith.constant 4 : index
  tir.for KIND (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = tir.call_extern pure "hypot"(%x, %x) : f64
    tir.store %y, %Y[%i]
  }
}"""


@pytest.mark.parametrize("kind", ["", "parallel", "vectorized"])
def test_c_functions_of_libm(kind: str, tir):
    f = compile_prim_funcs(tir(EXTERN.replace("KIND", kind)), cache=NO_CACHE).packed("f")
    x, y = np.arange(4.0), np.zeros(4)
    f(ffi(x), ffi(y))
    np.testing.assert_allclose(y, np.hypot(x, x), rtol=1e-15)


def test_c_functions_of_the_user(tir):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n, 2], f32>, %Y: !tir.buffer<[4], i64>, %b: i8, %c: i1, %w: i16) {
      %i0 = arith.constant 0 : index
      %i1 = arith.constant 1 : index
      %i2 = arith.constant 2 : index
      %V = tir.match_buffer %X[%i1 to %n, %i1] : !tir.buffer<[n - 1], f32, strides = [2]>
      %r = tir.call_extern "mine"(%V, %n, %b, %c, %w) : i64
      tir.store %r, %Y[%i0]
      %s = tir.call_extern "flag"(%c) : i1
      %t = arith.extui %s : i1 to i64
      tir.store %t, %Y[%i1]
      %u = tir.call_extern "small"(%b) : i8
      %v = arith.extsi %u : i8 to i64
      tir.store %v, %Y[%i2]
    }"""
    seen: list[Any] = []

    def mine(pointer: int, n: int, b: int, c: bool, w: int) -> int:
        seen.append((ctypes.c_float.from_address(pointer).value, n, b, c, w))
        return 42

    types = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int8, ctypes.c_bool, ctypes.c_int16]
    callbacks = {
        "mine": ctypes.CFUNCTYPE(ctypes.c_int64, *types)(mine),
        "flag": ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_bool)(lambda c: not c),
        "small": ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_int8)(lambda b: b - 1),
    }
    extern = {name: ctypes.cast(callback, ctypes.c_void_p).value or 0 for name, callback in callbacks.items()}
    module = tir(text)
    f = compile_prim_funcs(module, cache=NO_CACHE, extern=extern).packed("f")
    x, y = np.arange(10, dtype="f4").reshape(5, 2), np.zeros(4, np.int64)
    f(ffi(x), ffi(y), -5, False, -300)
    assert seen == [(3.0, 5, -5, False, -300)]
    np.testing.assert_array_equal(y, [42, 1, -6, 0])
    with pytest.raises(CodegenError, match="undefined symbols flag, mine, small"):
        compile_prim_funcs(module, cache=NO_CACHE).packed("f")


def test_one_c_function_has_one_signature(tir):
    text = """
    tir.prim_func @f(%a: f32, %b: f64) {
      tir.call_extern "thing"(%a)
      tir.call_extern "thing"(%b)
    }"""
    with pytest.raises(PassFailedException, match='function "thing" is used as'):
        compile_prim_funcs(tir(text), cache=NO_CACHE)


PACKED = """
tir.prim_func @f[%n](%X: !tir.buffer<[n, 4], f32>, %Y: !tir.buffer<[3], f64>, %k: i8, %b: i1, %h: f16) {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %V = tir.match_buffer %X[%i0 to %n, %i2] : !tir.buffer<[n], f32, strides = [4]>
  tir.call_packed "test_calls.look"(%X, %V, %n, %k, %b, %h)
  %r = tir.call_packed "test_calls.give"(%k) : f64
  tir.store %r, %Y[%i0]
  %s = tir.call_packed "test_calls.give"(%k) : i32
  %t = arith.sitofp %s : i32 to f64
  tir.store %t, %Y[%i1]
}"""


def test_packed_functions(tir):
    seen: list[Any] = []
    answers: list[Any] = [2.5, 7]

    @tvm_ffi.register_global_func("test_calls.look", override=True)
    def look(x: Any, view: Any, *rest: Any) -> str:
        seen.append((np.from_dlpack(x).copy(), np.from_dlpack(view).copy(), rest))
        return "a result that nobody takes, long enough to be an object"

    @tvm_ffi.register_global_func("test_calls.give", override=True)
    def give(k: int) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kernels = compile_prim_funcs(tir(PACKED), cache=NO_CACHE)
    f = kernels.packed("f")
    x, y = np.arange(12, dtype="f4").reshape(3, 4), np.zeros(3)
    f(ffi(x), ffi(y), -3, True, 0.5)
    (whole, column, rest), *_ = seen
    np.testing.assert_array_equal(whole, x)
    np.testing.assert_array_equal(column, x[:, 2])
    assert rest == (3, -3, True, 0.5)
    np.testing.assert_array_equal(y, [2.5, 7, 0])

    answers[:] = [KeyError("my own reason")]
    with pytest.raises(KeyError, match="my own reason"):
        f(ffi(x), ffi(y), 1, True, 0.5)
    answers[:] = ["text"]
    with pytest.raises(TypeError, match=r'packed function "test_calls.give" expected to return f64, got another kind'):
        f(ffi(x), ffi(y), 1, True, 0.5)
    tvm_ffi.registry.remove_global_func("test_calls.look")
    with pytest.raises(ValueError, match=r'packed function "test_calls.look" is not registered'):
        f(ffi(x), ffi(y), 1, True, 0.5)


def test_packed_functions_in_parallel_loops_are_refused(tir):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>) {
      tir.for parallel (%i) in (%n) {
        tir.call_packed "test_calls.look"(%X)
      }
    }"""
    with pytest.raises(PassFailedException, match=r"'tir.call_packed' op is inside a parallel loop"):
        compile_prim_funcs(tir(text), cache=NO_CACHE)


def test_failure_frees_what_was_allocated(tir):
    """A leak of 80 MB a call would not go unnoticed."""
    import resource

    text = ASSERTING.replace("KIND", "").replace("[n, 100]", "[n, 10000000]")
    f = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("f")
    x = np.array([0, -1], np.int32)
    limit = resource.getrlimit(resource.RLIMIT_AS)
    for _ in range(2000):
        with pytest.raises(ValueError, match="at least 0"):
            f(ffi(x), ffi(np.zeros_like(x)))
    assert resource.getrlimit(resource.RLIMIT_AS) == limit
