"""Bytes looked up in tables of 16: as the interpreter has them, with the instruction and without it."""

import numpy as np
import pytest

from lowering.compiler.kernel_maker import run_tir_passes
from lowering.llvm.compiler import emit_assembly
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import Check, find, parse
from tir_dialect.block_formats import NON_LINEAR
from tir_dialect.target import Target


def program(lanes: int, kind: str) -> str:
    return f"""
    tir.prim_func @f(%A: !tir.buffer<[64], {kind}>, %B: !tir.buffer<[64], {kind}>) {{
      %c0 = arith.constant 0 : index
      %a = tir.load %A[%c0] : vector<{lanes}x{kind}>
      %b = tir.lookup %a, [{", ".join(map(str, NON_LINEAR))}] : vector<{lanes}x{kind}>
      tir.store %b, %B[%c0]
    }}"""


@pytest.mark.parametrize(("lanes", "kind"), [(16, "i32"), (8, "i32"), (2, "i32"), (32, "i32"), (4, "i8"), (16, "i8")])
def test_the_lower_four_bits_select(lanes: int, kind: str, same_as_interpreter: Check) -> None:
    numbers = np.random.default_rng(0).integers(0, 256, 256).astype(np.uint8).view({"i8": "i1", "i32": "i4"}[kind])[:64]
    same_as_interpreter(program(lanes, kind), [numbers, np.zeros_like(numbers)], {})


@pytest.mark.parametrize(
    ("machine", "lanes", "instruction"),
    [("x86-64-v3", 8, "vpshufb"), ("x86-64-v4", 16, "vpshufb"), ("neoverse-n1", 4, "tbl"), ("x86-64", 4, "pcmpeqb")],
)
def test_machines_use_their_instruction(machine: str, lanes: int, instruction: str) -> None:
    module, target = parse(program(lanes, "i32")), Target.parse(machine)
    run_tir_passes(module)
    lowered = lower_prim_funcs([find(module)], LoweringOptions.of(target))
    assert instruction in emit_assembly(lowered, target)
