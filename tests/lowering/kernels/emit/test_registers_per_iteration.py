"""Elementary functions: where registers are short, an iteration has several, which hides latency."""

import re

import numpy as np
import pytest

from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.llvm_text import llvm_text
from lowering.parsing import parse_module
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.support.programs import run_in_turn, run_pipeline
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

MAP = """
relax.func @main[%m](%x: !relax.tensor<[m, N], f32>) {
  %0 = relax.BODY
  relax.return %0
}
"""


def code_of(text: str, target: Target) -> str:
    module = parse_module(text)
    run_pipeline(module, "legalize-ops,fuse-ops,fuse-tir")
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    schedule(func, target)
    return llvm_text(lower_prim_funcs([func.clone()], LoweringOptions.of(target)))


def lanes_of_loads(text: str) -> set[str]:
    return set(re.findall(r"load <(\d+) x float>", text))


@pytest.mark.parametrize(
    ("machine", "body", "size", "lanes"),
    [
        ("x86-64-v3", "tanh %x", "64", 32),
        ("x86-64-v3", "tanh %x", "8", 32),
        ("x86-64-v3", "nn.gelu %x", "8", 32),
        ("x86-64-v3", "asin %x", "8", 16),
        ("x86-64-v3", "power %x, %x", "8", 32),
        ("x86-64-v3", "add %x, %x", "16", 8),
        ("x86-64-v4", "tanh %x", "16", 16),
        ("neoverse-n1", "exp %x", "16", 4),
    ],
)
def test_lanes_of_an_iteration(machine: str, body: str, size: str, lanes: int) -> None:
    target = Target.parse(f"{machine} cores=1")
    text = code_of(MAP.replace("N", size).replace("BODY", body), target)
    assert lanes_of_loads(text) == {str(lanes)}
    assert ("alignstack(32)" in text) == (lanes * 32 > target.vector_bits)


@pytest.mark.parametrize(("exponent", "lanes"), [("%two", 8), ("%x", 32)])
def test_powers_that_are_known_do_not_wait(exponent: str, lanes: int) -> None:
    text = f"""
    tir.prim_func @main[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {{
      tir.for (%i) in (%n) {{
        tir.block "power" (%vi = spatial %i in %n) {{
          %x = tir.load %X[%vi]
          %two = arith.constant 2.0 : f32
          %y = math.powf %x, {exponent} : f32
          tir.store %y, %Y[%vi]
        }}
      }}
    }}"""
    assert lanes_of_loads(code_of(text, Target.parse("x86-64-v3 cores=1"))) == {str(lanes)}


@pytest.mark.parametrize(("size", "lanes"), [("n", 16), ("100", 16), ("300", 32)])
def test_rows_that_may_be_short_have_short_iterations(size: str, lanes: int) -> None:
    symbols = ", %n" if size == "n" else ""
    text = f"""
    relax.func @main[%m{symbols}](%x: !relax.tensor<[m, {size}], f32>, %b: !relax.tensor<[{size}], f32>) {{
      %0 = relax.add %x, %b
      %1 = relax.exp %0
      relax.return %1
    }}"""
    assert lanes_of_loads(code_of(text, Target.parse("x86-64-v3 cores=1"))) == {str(lanes)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [0, 7, 16, 47])
def test_values_of_every_length(n: int) -> None:
    x = np.linspace(-3, 3, n, dtype=np.float32)
    run_in_turn(MAP.replace("[m, N]", "[m]").replace("BODY", "tanh %x"), "main", [x])


@pytest.mark.parametrize(
    ("machine", "source", "target", "load"),
    [
        ("x86-64-v3", "f32", "i8", "32 x float"),
        ("x86-64-v3", "i64", "i8", "16 x i64"),
        ("x86-64-v3", "f32", "f16", "16 x float"),
        ("x86-64-v3", "f64", "i8", "4 x double"),
        ("x86-64-v4", "f32", "i8", "16 x float"),
        ("neoverse-n1", "f32", "i8", "4 x float"),
    ],
)
def test_narrow_results_fill_a_register(machine: str, source: str, target: str, load: str) -> None:
    text = cast_of(source, target)
    assert f"load <{load}>" in code_of(text, Target.parse(f"{machine} cores=1"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [0, 7, 39, 77])
def test_casts_of_every_length(n: int) -> None:
    run_in_turn(cast_of("f32", "i8"), "main", [np.linspace(-120, 120, n, dtype=np.float32).reshape(1, n)])


def cast_of(source: str, target: str) -> str:
    return f"""
    relax.func @main[%m, %n](%x: !relax.tensor<[m, n], {source}>) {{
      %0 = relax.astype %x dtype = {target}
      relax.return %0
    }}"""
