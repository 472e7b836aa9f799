"""Nothing outside the buffers is touched: each buffer ends, or starts, at a page that cannot be accessed."""

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE

pytestmark = pytest.mark.sampled(2)

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Guarded:
    """Memory between two pages that fault; the array lies against the upper one, or against the lower one."""

    def __init__(self, array: np.ndarray, at_end: bool):
        pages = -(-max(array.nbytes, 1) // PAGE)
        self.size = (pages + 2) * PAGE
        self.base = _libc.mmap(
            None, self.size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
        )
        assert _libc.mprotect(self.base, PAGE, 0) == 0
        assert _libc.mprotect(self.base + (pages + 1) * PAGE, PAGE, 0) == 0
        start = self.base + (pages + 1) * PAGE - array.nbytes if at_end else self.base + PAGE
        memory = (ctypes.c_uint8 * array.nbytes).from_address(start)
        self.array = np.frombuffer(memory, np.uint8, array.nbytes).view(array.dtype).reshape(array.shape)
        self.array[...] = array

    def release(self) -> None:
        _libc.munmap(self.base, self.size)


def run_guarded(
    text: str, arrays: Sequence[np.ndarray], symbols: dict[str, int], tir: Any, native_call: Any
) -> list[np.ndarray]:
    """Runs the function twice, with the guards after and before the buffers; gives the arrays after the last run."""
    return guarded_runner(text, tir, native_call)(arrays, symbols)


def guarded_runner(text: str, tir: Any, native_call: Any) -> Callable[..., list[np.ndarray]]:
    module = tir(text)
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    func = next(iter(module.ops))

    def run(arrays: Sequence[np.ndarray], symbols: dict[str, int]) -> list[np.ndarray]:
        results: list[np.ndarray] = []
        for at_end in (True, False):
            guarded = [Guarded(array, at_end) for array in arrays]
            assert native_call(kernels, func, [g.array for g in guarded], symbols) == 0
            results = [g.array.copy() for g in guarded]
            for g in guarded:
                g.release()
        return results

    return run


DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "i8": np.int8,
    "i1": np.bool_,
}

CHAIN = """
tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], TYPE>, %Y: !tir.buffer<[n], TYPE>, %Z: !tir.buffer<[m, n], TYPE>) {
  tir.for KIND (%i) in (%m) {
    tir.for (%j) in (%n) {
      %x = tir.load %X[%i, %j]
      %y = tir.load %Y[%j]
      %z = OP %x, %y : TYPE
      tir.store %z, %Z[%i, %j]
    }
  }
}"""


@pytest.mark.sampled(24)
@pytest.mark.parametrize("kind", ["", "parallel"])
@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 15), (3, 16), (5, 17), (4, 63), (7, 129), (1, 1000)])
def test_dynamic_elementwise(shape: tuple[int, int], type_: str, kind: str, tir, native_call):
    op = "arith.mulf" if DTYPES[type_] not in (np.int8, np.bool_) else "arith.andi"
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2, size).astype(DTYPES[type_]) for size in (shape, shape[1:]))
    text = CHAIN.replace("TYPE", type_).replace("KIND", kind).replace("OP", op)
    *_, z = run_guarded(text, [x, y, np.zeros_like(x)], {"m": shape[0], "n": shape[1]}, tir, native_call)
    np.testing.assert_array_equal(z.astype("f8"), (x * y).astype("f8"))


def constant_loop(extent: int, kind: str, type_: str, index: str) -> str:
    return f"""
tir.prim_func @f(%X: !tir.buffer<[{extent}], {type_}>, %Y: !tir.buffer<[{extent}], {type_}>) {{
  %n = arith.constant {extent} : index
  %last = arith.constant {extent - 1} : index
  %two = arith.constant 2 : index
  tir.for {kind} (%i) in (%n) {{
    {index}
    %x = tir.load %X[%k]
    tir.store %x, %Y[%i]
  }}
}}"""


INDICES = {
    "forward": "%zz = arith.constant 0 : index\n    %k = arith.addi %i, %zz : index",
    "reversed": "%k = arith.subi %last, %i : index",
    "halved": "%k = arith.divui %i, %two : index",
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("type_", ["f32", "i8", "f64"])
@pytest.mark.parametrize("extent", [2, 3, 7, 8, 13, 16, 31, 32, 33, 64, 100, 257])
def test_vectorized_tails(extent: int, type_: str, index: str, tir, native_call):
    x = np.arange(extent).astype(DTYPES[type_])
    text = constant_loop(extent, "vectorized", type_, INDICES[index])
    _, y = run_guarded(text, [x, np.zeros_like(x)], {}, tir, native_call)
    order = {"forward": np.arange(extent), "reversed": np.arange(extent)[::-1], "halved": np.arange(extent) // 2}[index]
    np.testing.assert_array_equal(y, x[order])


MASKED = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], TYPE>, %Y: !tir.buffer<[n], TYPE>) {
  %lanes = arith.constant 16 : index
  %one = arith.constant 1 : index
  %blocks = tir.dim ceildiv(n, 16)
  tir.for (%o) in (%blocks) {
    tir.for vectorized (%i) in (%lanes) {
      %base = arith.muli %o, %lanes : index
      %v = arith.addi %base, %i : index
      %inside = arith.cmpi slt, %v, %n : index
      tir.if %inside {
        %x = tir.load %X[%INDEX]
        tir.store %x, %Y[%v]
      }
    }
  }
}"""


@pytest.mark.sampled(16)
@pytest.mark.parametrize("type_", ["f32", "i8", "f64", "i1", "bf16"])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 31, 33])
def test_masked_lanes_touch_nothing(n: int, type_: str, tir, native_call):
    x = (np.arange(n) % 2).astype(DTYPES[type_])
    text = MASKED.replace("TYPE", type_).replace("%INDEX", "%v")
    _, y = run_guarded(text, [x, np.zeros_like(x)], {"n": n}, tir, native_call)
    np.testing.assert_array_equal(y, x)
    backwards = text.replace(
        "%x = tir.load %X[%v]",
        """%end = arith.subi %n, %one : index
        %back = arith.subi %end, %v : index
        %x = tir.load %X[%back]""",
    )
    _, y = run_guarded(backwards, [x, np.zeros_like(x)], {"n": n}, tir, native_call)
    np.testing.assert_array_equal(y, x[::-1])


STENCIL = """
tir.prim_func @f[%m, %n, %k](%A: !tir.buffer<[m + 2, n + 2], f32>, %B: !tir.buffer<[k], f32>,
                             %C: !tir.buffer<[m, n], f32>) {
  %three = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  tir.for (%i, %j) in (%m, %n) {
    tir.store %zero, %C[%i, %j]
    tir.for (%p, %q) in (%three, %three) {
      %y = arith.addi %i, %p : index
      %x = arith.addi %j, %q : index
      %a = tir.load %A[%y, %x]
      %c = tir.load %C[%i, %j]
      %s = arith.addf %a, %c : f32
      tir.store %s, %C[%i, %j]
    }
  }
  tir.for (%r) in (%k) {
    %b = tir.load %B[%r]
    %d = arith.addf %b, %b : f32
    tir.store %d, %B[%r]
  }
}"""


@settings(max_examples=25)
@given(m=st.integers(0, 9), n=st.integers(0, 70), k=st.integers(0, 5000))
def test_random_shapes(m: int, n: int, k: int, compiled_stencil: Callable[..., list[np.ndarray]]):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m + 2, n + 2)).astype("f4"), rng.standard_normal(k).astype("f4")
    _, b2, c = compiled_stencil([a, b, np.zeros((m, n), "f4")], {"m": m, "n": n, "k": k})
    np.testing.assert_array_equal(b2, b + b)
    expected = sum(a[p : p + m, q : q + n].astype("f8") for p in range(3) for q in range(3))
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def compiled_stencil(request: pytest.FixtureRequest) -> Callable[..., list[np.ndarray]]:
    return guarded_runner(STENCIL, request.getfixturevalue("tir"), request.getfixturevalue("native_call"))
