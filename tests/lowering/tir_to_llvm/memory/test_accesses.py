"""Buffers: layouts, allocation, views, vectors and masks."""

import numpy as np
import pytest
import tvm_ffi

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import find
from tir_dialect.interpreter import run_prim_func


@pytest.mark.parametrize("kind", ["", "vectorized", "parallel"])
def test_strides_and_offsets(kind: str, same_as_interpreter, tir, native_call):
    text = """
    tir.prim_func @f(%X: !tir.buffer<[6, 8], i32, strides = [1, 6]>,
                     %Y: !tir.buffer<[6, 8], i32, strides = [17, 2], offset = 3>) {
      %m = arith.constant 6 : index
      %n = arith.constant 8 : index
      tir.for (%i) in (%m) {
        tir.for KIND (%j) in (%n) {
          %x = tir.load %X[%i, %j]
          tir.store %x, %Y[%i, %j]
        }
      }
    }""".replace("KIND", kind)
    module = tir(text)
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    x, y = np.arange(48, dtype=np.int32), np.full(120, -1, np.int32)
    assert native_call(kernels, next(iter(module.ops)), [x, y], {}) == 0
    expected = np.full(120, -1, np.int32)
    for i in range(6):
        for j in range(8):
            expected[3 + 17 * i + 2 * j] = x[i + 6 * j]
    np.testing.assert_array_equal(y, expected)


SOFTMAX = """
tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], f64>, %Y: !tir.buffer<[m, n], f64>) {
  %zero = arith.constant 0 : index
  tir.for KIND (%i) in (%m) {
    %S = tir.alloc_buffer : !tir.buffer<[1], f64, scope = "local">
    %T = tir.alloc_buffer : !tir.buffer<[n], f64>
    %f0 = arith.constant 0.0 : f64
    tir.store %f0, %S[%zero]
    tir.for (%j) in (%n) {
      %x = tir.load %X[%i, %j]
      %e = arith.mulf %x, %x : f64
      tir.store %e, %T[%j]
      %s = tir.load %S[%zero]
      %t = arith.addf %s, %e : f64
      tir.store %t, %S[%zero]
    }
    tir.for (%j) in (%n) {
      %e = tir.load %T[%j]
      %s = tir.load %S[%zero]
      %y = arith.divf %e, %s : f64
      tir.store %y, %Y[%i, %j]
    }
  }
}"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["", "parallel"])
@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (1, 1), (7, 5), (3, 3000)])
def test_allocations_on_stack_and_heap(sizes: tuple[int, int], kind: str, same_as_interpreter):
    m, n = sizes
    x = np.random.default_rng(0).standard_normal((m, n))
    same_as_interpreter(SOFTMAX.replace("KIND", kind), [x, np.zeros_like(x)], {"m": m, "n": n})


def test_allocation_that_cannot_be_had(tir):
    text = """
    tir.prim_func @f[%n, %m](%Y: !tir.buffer<[1], f64>) {
      %T = tir.alloc_buffer : !tir.buffer<[n, m, 8], f64>
      %zero = arith.constant 0 : index
      %x = tir.load %T[%zero, %zero, %zero]
      tir.store %x, %Y[%zero]
    }"""
    module = tir(text)
    packed = compile_prim_funcs(module, cache=NO_CACHE).packed("f")
    y = np.zeros(1)
    packed(2, 3, tvm_ffi.from_dlpack(y))
    for n, m in [(1 << 40, 1 << 40), (1 << 62, 1), (1 << 31, 1 << 31), (1, 1 << 62)]:
        with pytest.raises(MemoryError, match="cannot allocate a buffer of type"):
            packed(n, m, tvm_ffi.from_dlpack(y))
        with pytest.raises(MemoryError, match=r"cannot allocate a buffer of type !tir.buffer<\[n, m, 8\], f64>"):
            run_prim_func(find(module), [y], {"n": n, "m": m})


def test_allocation_of_a_negative_size(tir):
    text = """
    tir.prim_func @f[%n](%Y: !tir.buffer<[1], f64>) {
      %T = tir.alloc_buffer : !tir.buffer<[n - 5, 8], f64>
      %zero = arith.constant 0 : index
      %x = tir.load %T[%zero, %zero]
      tir.store %x, %Y[%zero]
    }"""
    packed = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("f")
    packed(6, tvm_ffi.from_dlpack(np.zeros(1)))
    with pytest.raises(MemoryError, match="cannot allocate a buffer of type"):
        packed(4, tvm_ffi.from_dlpack(np.zeros(1)))


@pytest.mark.parametrize("kind", ["", "vectorized"])
def test_views(kind: str, same_as_interpreter):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n, 8, 8], f32>, %Y: !tir.buffer<[n, 4], f32>) {
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c6 = arith.constant 6 : index
      tir.for (%b) in (%n) {
        %V = tir.match_buffer %X[%b, %c2 to %c6, %c3] : !tir.buffer<[4], f32, strides = [8]>
        tir.for KIND (%i) in (%c4) {
          %x = tir.load %V[%i]
          tir.store %x, %Y[%b, %i]
          %y = arith.addf %x, %x : f32
          tir.store %y, %V[%i]
        }
      }
    }""".replace("KIND", kind)
    x = np.random.default_rng(0).standard_normal((3, 8, 8)).astype("f4")
    same_as_interpreter(text, [x, np.zeros((3, 4), "f4")], {"n": 3})


def test_flat_views(same_as_interpreter):
    text = """
    tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
      %A = tir.flatten %X
      %B = tir.flatten %Y
      %count = tir.dim m * n
      tir.for (%i) in (%count) {
        %x = tir.load %A[%i]
        %y = arith.addf %x, %x : f32
        tir.store %y, %B[%i]
      }
    }"""
    x = np.random.default_rng(0).standard_normal((3, 5)).astype("f4")
    same_as_interpreter(text, [x, np.zeros((3, 5), "f4")], {"m": 3, "n": 5})


@pytest.mark.parametrize("type_", ["f32", "i1", "bf16", "ui8"])
def test_reversed_strided_and_indirect_lanes(type_: str, same_as_interpreter):
    import ml_dtypes

    text = f"""
    tir.prim_func @f(%X: !tir.buffer<[64], {type_}>, %I: !tir.buffer<[16], i32>, %Y: !tir.buffer<[3, 32], {type_}>) {{
      %n = arith.constant 16 : index
      %last = arith.constant 15 : index
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      tir.for vectorized (%i) in (%n) {{
        %back = arith.subi %last, %i : index
        %x = tir.load %X[%back]
        tir.store %x, %Y[%zero, %i]
        %double = arith.muli %i, %two : index
        %y = tir.load %X[%double]
        tir.store %y, %Y[%one, %double]
        %k = tir.load %I[%i]
        %index = arith.index_cast %k : i32 to index
        %z = tir.load %X[%index]
        tir.store %z, %Y[%two, %back]
      }}
    }}"""
    dtype = {"f32": np.float32, "i1": np.bool_, "bf16": ml_dtypes.bfloat16, "ui8": np.uint8}[type_]
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if type_ == "i1" else 200, 64).astype(dtype)
    indices = rng.integers(0, 64, 16, dtype=np.int32)
    same_as_interpreter(text, [x, indices, np.zeros((3, 32), dtype)], {})


def test_explicit_vectors(same_as_interpreter):
    text = """
    tir.prim_func @f(%X: !tir.buffer<[4, 16], f32>, %Y: !tir.buffer<[4, 16], f32>, %M: !tir.buffer<[16], i1>) {
      %n = arith.constant 4 : index
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %half = arith.constant 0.5 : f32
      %halves = vector.broadcast %half : f32 to vector<8xf32>
      tir.for (%i) in (%n) {
        %mask = tir.load %M[%zero] : vector<8xi1>
        %v = tir.load %X[%i, %zero] : vector<8xf32>
        %w = tir.load %X[%i, %two] mask %mask : vector<8xf32>
        %s = arith.addf %v, %w : vector<8xf32>
        %t = arith.mulf %s, %halves : vector<8xf32>
        tir.store %t, %Y[%i, %zero] mask %mask
        %even = tir.ramp %zero by %two : vector<8xindex>
        %g = tir.load %X[%i, %even]
        %odd = tir.ramp %two by %two : vector<8xindex>
        %one = arith.constant dense<-1> : vector<8xindex>
        %places = arith.addi %odd, %one : vector<8xindex>
        tir.store %g, %Y[%i, %places]
      }
    }"""
    x = np.random.default_rng(0).standard_normal((4, 16)).astype("f4")
    mask = np.arange(16) % 3 != 0
    same_as_interpreter(text, [x, np.zeros_like(x), mask], {})


@pytest.mark.sampled(8)
@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "ui8", "ui64"])
@pytest.mark.parametrize("n", [0, 1, 7, 64])
def test_copies_of_every_type(type_: str, n: int, same_as_interpreter):
    from tir_dialect.dtypes import numpy_dtype, parse_dtype

    text = f"""
    tir.prim_func @f[%n](%X: !tir.buffer<[n], {type_}>, %Y: !tir.buffer<[n], {type_}>) {{
      tir.for (%i) in (%n) {{
        %x = tir.load %X[%i]
        tir.store %x, %Y[%i]
      }}
    }}"""
    x = np.random.default_rng(0).integers(0, 2 if type_ == "i1" else 100, n).astype(numpy_dtype(parse_dtype(type_)))
    same_as_interpreter(text, [x, np.zeros_like(x)], {"n": n})


def test_any_byte_but_zero_is_true(tir, native_call):
    text = """
    tir.prim_func @f(%X: !tir.buffer<[4], i1>, %Y: !tir.buffer<[4], i32>) {
      %n = arith.constant 4 : index
      tir.for vectorized (%i) in (%n) {
        %x = tir.load %X[%i]
        %y = arith.extui %x : i1 to i32
        tir.store %y, %Y[%i]
      }
    }"""
    module = tir(text)
    x, y = np.array([0, 1, 2, 255], np.uint8), np.zeros(4, np.int32)
    assert native_call(compile_prim_funcs(module, cache=NO_CACHE), next(iter(module.ops)), [x, y], {}) == 0
    np.testing.assert_array_equal(y, [0, 1, 1, 1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", [2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [4, 16, 32])
def test_strided_lanes(step: int, lanes: int, same_as_interpreter):
    """Loads side by side end with the last lane's element: the buffer has nothing after it."""
    text = f"""
    tir.prim_func @f[%n, %k](%X: !tir.buffer<[{step * (lanes - 1) + 1}], f32>, %Y: !tir.buffer<[2, {lanes}], f32>) {{
      %lanes = arith.constant {lanes} : index
      %step = arith.constant {step} : index
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      tir.for vectorized (%i) in (%lanes) {{
        %place = arith.muli %i, %step : index
        %x = tir.load %X[%place]
        tir.store %x, %Y[%zero, %i]
        %is_on = arith.cmpi slt, %i, %k : index
        tir.if %is_on {{
          %y = tir.load %X[%place]
          tir.store %y, %Y[%one, %i]
        }}
      }}
    }}"""
    x = np.arange(step * (lanes - 1) + 1, dtype=np.float32)
    same_as_interpreter(text, [x, np.zeros((2, lanes), np.float32)], {"n": 1, "k": lanes - 1})


@pytest.mark.parametrize("count", [1, 2, 15])
def test_leading_lanes_that_are_known(count: int, tir, native_call):
    """Elements that are made shorter for the store: no byte after the last lane is written."""
    module = tir(f"""
    tir.prim_func @f(%X: !tir.buffer<[16], i32>, %Y: !tir.buffer<[16], i16>) {{
      %first = arith.constant 0 : index
      %count = arith.constant {count} : index
      %x = tir.load %X[%first] : vector<16xi32>
      %bits = arith.constant 16 : i32
      %places = vector.broadcast %bits : i32 to vector<16xi32>
      %upper = arith.shrui %x, %places : vector<16xi32>
      %y = tir.convert trunci %upper : vector<16xi32> to vector<16xi16>
      %mask = vector.create_mask %count : vector<16xi1>
      tir.store %y, %Y[%first] mask %mask
    }}""")
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    x, y = np.full(16, 5 << 16, np.int32), np.full(16, -1, np.int16)
    assert native_call(kernels, next(iter(module.ops)), [x, y], {}) == 0
    assert list(y) == [5] * count + [-1] * (16 - count)
