"""Sums of products of bytes and of bf16 in words: as the interpreter has them, with the instruction and without it."""

import ml_dtypes
import numpy as np
import pytest

from lowering.compiler.kernel_maker import run_tir_passes
from lowering.llvm.compiler import emit_assembly
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import Check, find, parse
from tir_dialect.interpreter.numerics import dot_words
from tir_dialect.target import Target


def program(left: str, right: str, total: str, lanes: int) -> str:
    return f"""
    tir.prim_func @f(%A: !tir.buffer<[64], i32>, %B: !tir.buffer<[64], i32>, %C: !tir.buffer<[64], {total}>) {{
      %c0 = arith.constant 0 : index
      %a = tir.load %A[%c0] : vector<{lanes}xi32>
      %b = tir.load %B[%c0] : vector<{lanes}xi32>
      %c = tir.load %C[%c0] : vector<{lanes}x{total}>
      %d = tir.dot {left} %a, {right} %b, %c : vector<{lanes}x{total}>
      tir.store %d, %C[%c0]
    }}"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lanes", [16, 8, 2])
@pytest.mark.parametrize("left", ["i8", "ui8"])
@pytest.mark.parametrize("right", ["i8", "ui8"])
def test_bytes_never_saturate(left: str, right: str, lanes: int, same_as_interpreter: Check) -> None:
    extreme = np.random.default_rng(0).choice(np.array([0, 127, 128, 255], np.uint8), (2, 64, 4))
    words = [np.ascontiguousarray(each).view(np.int32).reshape(64) for each in extreme]
    same_as_interpreter(program(left, right, "i32", lanes), [*words, np.full(64, 2**31 - 1, np.int32)], {})


@pytest.mark.parametrize("lanes", [16, 8, 2])
def test_sums_of_two_saturate_where_they_are_to(lanes: int, same_as_interpreter: Check) -> None:
    extreme = np.random.default_rng(0).choice(np.array([0, 1, 127, 128, 255], np.uint8), (2, 64, 4))
    words = [np.ascontiguousarray(each).view(np.int32).reshape(64) for each in extreme]
    text = program("ui8", "i8", "i32", lanes).replace("tir.dot", "tir.dot saturating")
    same_as_interpreter(text, [*words, np.full(64, 2**31 - 1, np.int32)], {})
    total = np.zeros(1, np.int32)
    rows = np.array([0x0000FFFF], np.int32)
    values = dot_words(rows, np.array([0x7F7F7F7F], np.int32), total, np.uint8, np.int8, True)
    assert values == [2**15 - 1]


@pytest.mark.parametrize("lanes", [16, 8, 2])
def test_pairs_of_16_bits_wrap_around(lanes: int, same_as_interpreter: Check) -> None:
    numbers = np.random.default_rng(0).choice(np.array([-(2**15), -1, 255, 2**15 - 1], np.int16), (2, 64, 2))
    words = [np.ascontiguousarray(each).view(np.int32).reshape(64) for each in numbers]
    same_as_interpreter(program("i16", "i16", "i32", lanes), [*words, np.full(64, 2**31 - 1, np.int32)], {})


@pytest.mark.parametrize("lanes", [16, 2])
def test_pairs_of_bf16(lanes: int, same_as_interpreter: Check) -> None:
    numbers = np.random.default_rng(0).integers(-9, 9, (2, 64, 2)).astype(ml_dtypes.bfloat16)
    words = [np.ascontiguousarray(each).view(np.int32).reshape(64) for each in numbers]
    same_as_interpreter(program("bf16", "bf16", "f32", lanes), [*words, np.ones(64, np.float32)], {})


@pytest.mark.parametrize(
    ("machine", "dtypes", "lanes", "instruction"),
    [
        ("sapphirerapids", ("ui8", "i8"), 16, "vpdpbusd"),
        ("alderlake", ("ui8", "i8"), 8, "vpdpbusd"),
        ("neoverse-v1", ("ui8", "i8"), 4, "usdot"),
        ("x86-64-v3", ("ui8", "i8"), 8, "vpmaddwd"),
        ("skylake-avx512", ("ui8", "i8"), 16, "vpmaddwd"),
        ("x86-64-v3", ("saturating ui8", "i8"), 8, "vpmaddubsw"),
        ("skylake-avx512", ("saturating ui8", "i8"), 16, "vpmaddubsw"),
        ("x86-64-v3", ("i16", "i16"), 8, "vpmaddwd"),
        ("skylake-avx512", ("i16", "i16"), 16, "vpmaddwd"),
    ],
)
def test_machines_use_their_instruction(machine: str, dtypes: tuple[str, str], lanes: int, instruction: str) -> None:
    module, target = parse(program(*dtypes, "i32", lanes)), Target.parse(machine)
    run_tir_passes(module)
    lowered = lower_prim_funcs([find(module)], LoweringOptions.of(target))
    assert instruction in emit_assembly(lowered, target)
