"""Loops, branches and blocks against the reference."""

import ctypes

import numpy as np
import pytest

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.support.kernels import MATMUL

pytestmark = pytest.mark.sampled(2)


@pytest.mark.parametrize("sizes", [(0, 3, 2), (1, 1, 1), (3, 5, 7), (16, 8, 33), (2, 0, 2), (5, 4, 0)])
def test_matmul(sizes: tuple[int, int, int], same_as_interpreter):
    m, n, k = sizes
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape).astype("f4") for shape in ((m, n), (n, k), (m, k))]
    same_as_interpreter(MATMUL, args, {"m": m, "n": n, "k": k})


PREDICATED = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n], i32>) {
  %c4 = arith.constant 4 : index
  %outer = tir.dim ceildiv(n, 4)
  tir.for (%o) in (%outer) {
    tir.for KIND (%i) in (%c4) {
      %base = arith.muli %o, %c4 : index
      %v = arith.addi %base, %i : index
      %inside = arith.cmpi slt, %v, %n : index
      tir.block "copy" (%b = spatial %v in %n) where %inside {
        %x = tir.load %X[%b]
        %y = arith.addi %x, %x : i32
        tir.store %y, %Y[%b]
      }
    }
  }
}"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["", "vectorized", "unrolled", "parallel"])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 31])
def test_predicates_guard_tails(n: int, kind: str, same_as_interpreter):
    x = np.arange(n, dtype=np.int32)
    same_as_interpreter(PREDICATED.replace("KIND", kind), [x, np.full_like(x, -1)], {"n": n})


BRANCHES = """
tir.prim_func @f(%X: !tir.buffer<[37], f32>, %Y: !tir.buffer<[37], f32>, %Z: !tir.buffer<[37], i32>) {
  %n = arith.constant 37 : index
  %zero = arith.constant 0.0 : f32
  %c7 = arith.constant 7 : index
  tir.for KIND (%i) in (%n) {
    %x = tir.load %X[%i]
    %positive = arith.cmpf ogt, %x, %zero : f32
    %r, %k = tir.if %positive -> (f32, index) {
      %root = math.sqrt %x : f32
      %small = arith.cmpi slt, %i, %c7 : index
      %inner = tir.if %small -> (f32) {
        %twice = arith.addf %root, %root : f32
        tir.yield %twice
      } else {
        tir.yield %root
      }
      tir.yield %inner, %i
    } else {
      tir.yield %zero, %c7
    }
    tir.store %r, %Y[%i]
    %wide = arith.index_cast %k : index to i32
    tir.if %positive {
      tir.store %wide, %Z[%i]
    }
  }
}"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["", "vectorized", "parallel"])
@pytest.mark.parametrize("sign", [1, -1, 0])
def test_branches_with_results(sign: int, kind: str, same_as_interpreter):
    x = np.random.default_rng(1).standard_normal(37).astype("f4")
    x = np.abs(x) * sign if sign else x
    same_as_interpreter(BRANCHES.replace("KIND", kind), [x, np.zeros_like(x), np.full(37, -1, np.int32)], {})


WHILE = """
tir.prim_func @collatz(%X: !tir.buffer<[20], i64>, %Y: !tir.buffer<[20], i64>) {
  %n = arith.constant 20 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  tir.for KIND (%i) in (%n) {
    tir.store %zero, %Y[%i]
    tir.while {
      %x = tir.load %X[%i]
      %go = arith.cmpi sgt, %x, %one : i64
      tir.condition %go
    } do {
      %x = tir.load %X[%i]
      %odd = arith.remsi %x, %two : i64
      %is_odd = arith.cmpi eq, %odd, %one : i64
      %half = arith.divsi %x, %two : i64
      %tripled = arith.muli %x, %three : i64
      %more = arith.addi %tripled, %one : i64
      %next = arith.select %is_odd, %more, %half : i64
      tir.store %next, %X[%i]
      %steps = tir.load %Y[%i]
      %more_steps = arith.addi %steps, %one : i64
      tir.store %more_steps, %Y[%i]
    }
  }
}"""


@pytest.mark.parametrize("kind", ["", "vectorized", "parallel"])
def test_while(kind: str, same_as_interpreter):
    same_as_interpreter(WHILE.replace("KIND", kind), [np.arange(20), np.zeros(20, np.int64)], {})


def test_loops_with_lower_bounds_and_empty_ranges(same_as_interpreter):
    text = """
    tir.prim_func @f[%n](%Y: !tir.buffer<[n], i64>) {
      %c2 = arith.constant 2 : index
      %c5 = arith.constant 5 : index
      %last = tir.dim n - 1
      tir.for (%i) in (%c2 to %last) {
        %v = arith.index_cast %i : index to i64
        tir.store %v, %Y[%i]
      }
      tir.for (%i) in (%c5 to %c2) {
        %v = arith.index_cast %i : index to i64
        tir.store %v, %Y[%v0]
      }
    }""".replace("%Y[%v0]", "%Y[%i]")
    for n in (0, 1, 2, 3, 4, 9):
        same_as_interpreter(text, [np.full(n, -1)], {"n": n})


TRIANGLE = """
tir.prim_func @f[%n](%Y: !tir.buffer<[n, n], i64>) {
  tir.for KIND (%i) in (%n) {
    %next = arith.addi %i, %one : index
    tir.for (%j) in (%next) {
      %s = arith.addi %i, %j : index
      %v = arith.index_cast %s : index to i64
      tir.store %v, %Y[%i, %j]
    }
  }
}"""


@pytest.mark.parametrize("kind", ["", "vectorized", "parallel", "unrolled"])
def test_inner_bounds_that_depend_on_outer_loops(kind: str, same_as_interpreter):
    text = TRIANGLE.replace("KIND", kind).replace("  tir.for", "  %one = arith.constant 1 : index\n  tir.for", 1)
    same_as_interpreter(text, [np.full((9, 9), -1)], {"n": 9})
    constant = (
        text.replace("[%n]", "")
        .replace("[n, n]", "[9, 9]")
        .replace("  %one", "  %n = arith.constant 9 : index\n  %one", 1)
    )
    same_as_interpreter(constant, [np.full((9, 9), -1)], {})


def test_reductions_start_where_all_their_iterators_are_zero(same_as_interpreter):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n, 3, 2], i64>, %Y: !tir.buffer<[n], i64>) {
      %three = arith.constant 3 : index
      %two = arith.constant 2 : index
      tir.for (%i, %j, %k) in (%n, %three, %two) {
        tir.block "sum" (%vi = spatial %i in %n, %vj = reduce %j in %three, %vk = reduce %k in %two) {
          tir.init {
            %zero = arith.constant 100 : i64
            tir.store %zero, %Y[%vi]
          }
          %y = tir.load %Y[%vi]
          %x = tir.load %X[%vi, %vj, %vk]
          %s = arith.addi %y, %x : i64
          tir.store %s, %Y[%vi]
        }
      }
    }"""
    same_as_interpreter(text, [np.arange(24).reshape(4, 3, 2), np.zeros(4, np.int64)], {"n": 4})


DEPENDENT = """
tir.prim_func @f(%Y: !tir.buffer<[40], i64>) {
  %n = arith.constant 32 : index
  %one = arith.constant 1 : index
  tir.for vectorized (%i) in (%n) {
    %next = arith.addi %i, %one : index
    %x = tir.load %Y[%FROM]
    %y = arith.addi %x, %x : i64
    tir.store %y, %Y[%TO]
  }
}"""


@pytest.mark.parametrize(("source", "target"), [("i", "next"), ("next", "i"), ("i", "i"), ("one", "i"), ("i", "one")])
def test_vectorized_loops_keep_the_order_that_their_data_needs(source: str, target: str, same_as_interpreter):
    text = DEPENDENT.replace("%FROM", f"%{source}").replace("%TO", f"%{target}")
    same_as_interpreter(text, [np.arange(40)], {})


def test_vectorized_loops_around_loops_that_write_the_same_place(same_as_interpreter):
    text = """
    tir.prim_func @f(%Y: !tir.buffer<[16], i64>) {
      %n = arith.constant 8 : index
      tir.for vectorized (%i) in (%n) {
        tir.for (%k) in (%n) {
          %s = arith.addi %i, %k : index
          %v = arith.index_cast %k : index to i64
          tir.store %v, %Y[%s]
        }
      }
    }"""
    same_as_interpreter(text, [np.zeros(16, np.int64)], {})


def test_aliasing_parameters_are_not_vectorized_over(tir, native_call):
    text = """
    tir.prim_func @f(%X: !tir.buffer<[8], i64>, %Y: !tir.buffer<[8], i64>) may_alias {
      %n = arith.constant 8 : index
      %one = arith.constant 1 : i64
      tir.for vectorized (%i) in (%n) {
        %x = tir.load %X[%i]
        %y = arith.addi %x, %one : i64
        tir.store %y, %Y[%i]
      }
    }"""
    module = tir(text)
    memory = np.zeros(9, np.int64)
    assert (
        native_call(compile_prim_funcs(module, cache=NO_CACHE), next(iter(module.ops)), [memory, memory[1:]], {}) == 0
    )
    np.testing.assert_array_equal(memory, np.arange(9))


def test_rounds_of_threads_run_one_after_the_other(same_as_interpreter):
    text = """
    tir.prim_func @f[%n](%Y: !tir.buffer<[n], i64>) {
      tir.for thread_binding "threadIdx.x" (%i) in (%n) {
        %v = arith.index_cast %i : index to i64
        tir.store %v, %Y[%i]
      }
    }"""
    same_as_interpreter(text, [np.zeros(5, np.int64)], {"n": 5})


def test_scalar_parameters(tir):
    module = tir("""
    tir.prim_func @f[%n](%a: f32, %b: i8, %c: i1, %Y: !tir.buffer<[n], f32>) {
      %x = arith.sitofp %b : i8 to f32
      %y = arith.select %c, %a, %x : f32
      tir.for (%i) in (%n) {
        tir.store %y, %Y[%i]
      }
    }""")
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    types = [ctypes.c_int64, ctypes.c_float, ctypes.c_int8, ctypes.c_bool, ctypes.c_void_p]
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(kernels.address("f"))
    y = np.zeros(3, "f4")
    assert function(3, 1.5, -7, True, y.ctypes.data) == 0
    np.testing.assert_array_equal(y, [1.5] * 3)
    assert function(3, 1.5, -7, False, y.ctypes.data) == 0
    np.testing.assert_array_equal(y, [-7] * 3)


QUOTIENTS = (
    "floordiv(n, 4)",
    "ceildiv(n, m + 1)",
    "7 - 3 * ceildiv(n, max(m, 1))",
    "ceildiv(n, 5) * ceildiv(m, 3)",
    "floordiv(n, -3)",
    "floordiv(-n, -5)",
    "floordiv(-max(n, 1), 64 * floordiv(-max(m, 2), max(n, 1)))",
    "ceildiv(ceildiv(n, max(m, 1)), max(ceildiv(m, 7), 1))",
    "mod(n, 6) - floordiv(m - n, 2)",
)


def test_quotients_of_dimensions(same_as_interpreter):
    stores = "".join(
        f"""
      %i{place} = arith.constant {place} : index
      %d{place} = tir.dim {quotient}
      %x{place} = arith.index_cast %d{place} : index to i64
      tir.store %x{place}, %Y[%i{place}]"""
        for place, quotient in enumerate(QUOTIENTS)
    )
    text = f"tir.prim_func @f[%n, %m](%Y: !tir.buffer<[{len(QUOTIENTS)}], i64>) {{{stores}\n}}"
    for n, m in ((0, 0), (1, 0), (1, 1), (5, 1), (6, 7), (64, 3), (63, 64), (1000, 17)):
        same_as_interpreter(text, [np.full(len(QUOTIENTS), -99)], {"n": n, "m": m})


def test_what_is_rounded_up_is_one_division(tir):
    text = """
    tir.prim_func @f[%n, %m](%Y: !tir.buffer<[1], i64>) {
      %zero = arith.constant 0 : index
      %size = tir.dim 3 * ceildiv(ceildiv(n, max(m, 1)), 8)
      %x = arith.index_cast %size : index to i64
      tir.store %x, %Y[%zero]
    }"""
    lines = llvm_text(lower_prim_funcs(list(tir(text).ops), LoweringOptions())).splitlines()
    arithmetic = [line.split()[2] for line in lines if line.startswith("  %") and " call " not in line]
    assert arithmetic == ["add", "add", "udiv", "add", "udiv", "mul"]
