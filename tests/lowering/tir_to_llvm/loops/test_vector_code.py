"""What comes out of LLVM: vector instructions of the target's width, no scalar loops, no run-time alias checks."""

import re
from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernel_maker import run_tir_passes
from lowering.llvm.compiler import CompileOptions, emit_assembly, emit_llvm_ir
from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

AVX2, AVX512 = Target.parse("x86-64-v3"), Target.parse("x86-64-v4")


def lowered(module: ModuleOp, target: Target) -> str:
    run_tir_passes(module)
    functions = [op for op in module.ops if isinstance(op, PrimFuncOp)]
    return llvm_text(lower_prim_funcs(functions, LoweringOptions.of(target)))


@pytest.fixture
def optimized(tir: Callable[[str], ModuleOp]) -> Callable[[str, Target], str]:
    return lambda text, target: emit_llvm_ir(lowered(tir(text), target), target, CompileOptions())


@pytest.fixture
def assembly(tir: Callable[[str], ModuleOp]) -> Callable[[str, Target], str]:
    return lambda text, target: emit_assembly(lowered(tir(text), target), target)


AXPY = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>, %a: f32) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = tir.load %Y[%i]
    %p = arith.mulf %a, %x : f32
    %s = arith.addf %p, %y : f32
    tir.store %s, %Y[%i]
  }
}"""

SUM_OF_PRODUCTS = """
tir.prim_func @f[%n, %m](%X: !tir.buffer<[m, n], f32>, %W: !tir.buffer<[m], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%j, %i) in (%m, %n) {
    %x = tir.load %X[%j, %i]
    %w = tir.load %W[%j]
    %y = tir.load %Y[%i]
    %p = arith.mulf %w, %x : f32
    %s = arith.addf %p, %y : f32
    tir.store %s, %Y[%i]
  }
}"""


@pytest.mark.parametrize(("target", "lanes", "register"), [(AVX2, 8, "ymm"), (AVX512, 16, "zmm")])
def test_loops_of_unknown_length_vectorize(target: Target, lanes: int, register: str, optimized, assembly):
    ir = optimized(AXPY, target)
    assert f"load <{lanes} x float>" in ir
    assert f"store <{lanes} x float>" in ir
    assert "vector.memcheck" not in ir
    assert re.search(rf"vaddps.*%{register}", assembly(AXPY, target))
    assert re.search(rf"vfmadd\d+ps.*%{register}", assembly(SUM_OF_PRODUCTS, target))


def test_two_dimensions_with_symbolic_strides(optimized):
    text = """
    tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], f32>, %B: !tir.buffer<[n], f32>, %Y: !tir.buffer<[m, n], f32>) {
      tir.for (%i, %j) in (%m, %n) {
        %x = tir.load %X[%i, %j]
        %b = tir.load %B[%j]
        %y = arith.addf %x, %b : f32
        tir.store %y, %Y[%i, %j]
      }
    }"""
    ir = optimized(text, AVX512)
    assert "load <16 x float>" in ir
    assert "memcheck" not in ir


def test_bf16_and_bool_vectorize(optimized):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], bf16>, %Y: !tir.buffer<[n], bf16>, %Z: !tir.buffer<[n], i1>) {
      tir.for (%i) in (%n) {
        %x = tir.load %X[%i]
        %y = tir.load %Y[%i]
        %s = arith.addf %x, %y : bf16
        tir.store %s, %Y[%i]
        %c = arith.cmpf olt, %x, %y : bf16
        tir.store %c, %Z[%i]
      }
    }"""
    ir = optimized(text, AVX512)
    assert re.search(r"fadd (contract )?<\d+ x float>", ir)
    assert re.search(r"store <\d+ x i8>", ir)
    assert "__truncsfbf2" not in ir


TILE = """
tir.prim_func @f[%k](%A: !tir.buffer<[k, 6], f32>, %B: !tir.buffer<[k, 32], f32>, %C: !tir.buffer<[6, 32], f32>) {
  %rows = arith.constant 6 : index
  %columns = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %T = tir.alloc_buffer : !tir.buffer<[6, 32], f32, scope = "local">
  tir.for unrolled (%i) in (%rows) {
    tir.for vectorized (%j) in (%columns) {
      tir.store %zero, %T[%i, %j]
    }
  }
  tir.for (%r) in (%k) {
    tir.for unrolled (%i) in (%rows) {
      tir.for vectorized (%j) in (%columns) {
        %a = tir.load %A[%r, %i]
        %b = tir.load %B[%r, %j]
        %t = tir.load %T[%i, %j]
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %t, %p : f32
        tir.store %s, %T[%i, %j]
      }
    }
  }
  tir.for unrolled (%i) in (%rows) {
    tir.for vectorized (%j) in (%columns) {
      %t = tir.load %T[%i, %j]
      tir.store %t, %C[%i, %j]
    }
  }
}"""


def test_a_local_tile_stays_in_registers(optimized, assembly):
    ir = optimized(TILE, AVX512)
    assert "alloca" not in ir
    assert len(re.findall(r"phi <32 x float>", ir)) >= 6
    asm = assembly(TILE, AVX512)
    body = max(re.findall(r"\.LBB0_\d+:.*?(?=\n\.LBB0_|\Z)", asm, re.S), key=lambda text: text.count("vfmadd"))
    assert body.count("vfmadd231ps") % 12 == 0
    assert "(%rsp)" not in body


def test_masks_become_masked_accesses(optimized):
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
      %lanes = arith.constant 16 : index
      tir.for vectorized (%i) in (%lanes) {
        %inside = arith.cmpi slt, %i, %n : index
        tir.if %inside {
          %x = tir.load %X[%i]
          tir.store %x, %Y[%i]
        }
      }
    }"""
    ir = optimized(text, AVX512)
    assert "@llvm.masked.load.v16f32" in ir
    assert "@llvm.masked.store.v16f32" in ir


def test_gathers_and_broadcasts(optimized):
    text = """
    tir.prim_func @f(%X: !tir.buffer<[256], f32>, %I: !tir.buffer<[16], i32>, %Y: !tir.buffer<[16], f32>) {
      %lanes = arith.constant 16 : index
      %zero = arith.constant 0 : index
      tir.for vectorized (%i) in (%lanes) {
        %k = tir.load %I[%i]
        %index = arith.index_cast %k : i32 to index
        %x = tir.load %X[%index]
        %first = tir.load %X[%zero]
        %y = arith.mulf %x, %first : f32
        tir.store %y, %Y[%i]
      }
    }"""
    ir = optimized(text, AVX512)
    assert "@llvm.masked.gather.v16f32" in ir
    assert "shufflevector <16 x float>" in ir


def test_may_alias_keeps_the_checks(optimized):
    ir = optimized(AXPY.replace("%a: f32) {", "%a: f32) may_alias {"), AVX512)
    assert "ptr noalias" not in ir
    assert "memcheck" in ir


def test_parallel_bodies_are_optimised_like_kernels(optimized):
    text = """
    tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
      tir.for parallel (%i) in (%m) {
        tir.for (%j) in (%n) {
          %x = tir.load %X[%i, %j]
          %y = arith.addf %x, %x : f32
          tir.store %y, %Y[%i, %j]
        }
      }
    }"""
    ir = optimized(text, AVX512)
    assert "call void @relax_parallel" in ir
    assert "load <16 x float>" in ir
    assert "memcheck" not in ir


def test_index_arithmetic_does_not_overflow(tir):
    text = lowered(tir(AXPY), AVX512)
    assert "add nsw i64" in text
    assert not re.search(r"= (add|mul|sub) i64", text)
    assert "getelementptr inbounds float" in text
    assert '"prefer-vector-width"="512"' in text


def test_contraction_can_be_switched_off(tir):
    module = tir(AXPY)
    functions = [op for op in module.ops if isinstance(op, PrimFuncOp)]
    separate = llvm_text(lower_prim_funcs(functions, LoweringOptions(512, contract=False)))
    assert "contract" not in separate
    assert "fmul contract" in llvm_text(lower_prim_funcs(functions, LoweringOptions(512)))


@pytest.mark.parametrize(("zeros", "left"), [("vectorized (%j) in (%c8)", False), ("(%j) in (%n)", True)])
def test_loops_are_left_to_llvm_only_where_one_has_no_vectors(zeros: str, left: bool, optimized):
    text = f"""
    tir.prim_func @f[%n](%X: !tir.buffer<[n * 8], f32>, %Y: !tir.buffer<[n], f32>) {{
      %c8 = arith.constant 8 : index
      %one = arith.constant 1.0 : f32
      tir.for (%i) in (%n) {{
        %at = arith.muli %i, %c8 : index
        tir.for vectorized (%j) in (%c8) {{
          %k = arith.addi %at, %j : index
          %x = tir.load %X[%k]
          %y = arith.addf %x, %x : f32
          tir.store %y, %X[%k]
        }}
      }}
      tir.for {zeros} {{
        tir.store %one, %Y[%j]
      }}
    }}"""
    ir = optimized(text, AVX2)
    assert ("\nvector.body" in ir) == left
    assert (ir.count("load <8 x float>") > 1) == left


@pytest.mark.parametrize(
    ("branch", "skips"),
    [
        ("%v = tir.load %X[%i]", False),
        ("%v = tir.load %X[%c0]", True),  # memory that may not be there
        ("%x = tir.load %X[%i]\n%v = math.exp %x : f32", True),
        ("%o = arith.subi %i, %i : index\n%v = tir.load %X[%o]", True),
    ],
)
@pytest.mark.parametrize("target", [AVX2, AVX512])
def test_short_branches_of_some_lanes_are_not_skipped(branch: str, skips: bool, target: Target, tir):
    """With AVX-512, where a load of no lane costs less than a jump; unless it would be one of a single element."""
    text = f"""
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[16], f32>) {{
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      tir.for vectorized (%i) in (%c16) {{
        %old = tir.load %Y[%i]
        %inside = arith.cmpi slt, %i, %n : index
        %new = tir.if %inside -> (f32) {{
          {branch}
          %s = arith.addf %old, %v : f32
          tir.yield %s
        }} else {{
          tir.yield %old
        }}
        tir.store %new, %Y[%i]
      }}
    }}"""
    assert ("vector.reduce.or" in lowered(tir(text), target)) is (skips or target is AVX2)


def test_remainders_are_vectors_but_for_long_quotients(optimized):
    text = """
    tir.prim_func @f(%X: !tir.buffer<[16], f32>, %Y: !tir.buffer<[16], f32>) {
      %lanes = arith.constant 16 : index
      tir.for vectorized (%i) in (%lanes) {
        %x = tir.load %X[%i]
        %y = tir.load %Y[%i]
        %z = tir.fmod %x, %y : f32
        tir.store %z, %Y[%i]
      }
    }"""
    ir = optimized(text, AVX512)
    assert "fdiv <16 x float>" in ir
    assert ir.count("call float @fmodf") == 16
    assert "@fmodf" in optimized(text, Target.parse("x86-64-v2"))  # without fused multiply-add
