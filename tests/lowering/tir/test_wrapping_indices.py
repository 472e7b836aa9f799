"""Index arithmetic with numbers from memory wraps around, in every mode, and no proof takes it for exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from lowering.tir_to_llvm.convert_tir_to_llvm import LoweringOptions, lower_prim_funcs
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import VirtualMachine

LEAST, GREATEST = -(2**63), 2**63 - 1
PROGRAMS = """
tir.prim_func @greater[%m](%I: !tir.buffer<[m], i64>, %B: !tir.buffer<[m], i64>) {
  %one = arith.constant 1 : index
  tir.for (%i) in (%m) {
    %k = tir.load %I[%i]
    %j = arith.index_cast %k : i64 to index
    %n = arith.addi %j, %one : index
    %c = arith.cmpi sgt, %n, %j : index
    %r = arith.extui %c : i1 to i64
    tir.store %r, %B[%i]
  }
}
tir.prim_func @halves[%m](%I: !tir.buffer<[m], i64>, %B: !tir.buffer<[m], i64>) {
  %two = arith.constant 2 : index
  tir.for parallel (%i) in (%m) {
    %k = tir.load %I[%i]
    %j = arith.index_cast %k : i64 to index
    %d = arith.muli %j, %two : index
    %e = arith.floordivsi %d, %two : index
    %r = arith.index_cast %e : index to i64
    tir.store %r, %B[%i]
  }
}
tir.prim_func @beyond[%m, %n](%I: !tir.buffer<[m], i64>, %B: !tir.buffer<[n], i64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %last = tir.dim n - 1
  %k = tir.load %I[%zero]
  %l = tir.load %I[%one]
  %lo = arith.index_cast %k : i64 to index
  %hi = arith.index_cast %l : i64 to index
  %some = arith.cmpi slt, %zero, %n : index
  tir.for (%p) in (%lo to %hi) {
    %natural = arith.cmpi sge, %p, %zero : index
    %both = arith.andi %natural, %some : i1
    tir.if %both {
      %q = arith.addi %p, %four : index
      %r = arith.minsi %q, %last : index
      tir.store %k, %B[%r]
    }
  }
}"""


def _functions() -> dict[str, PrimFuncOp]:
    return {op.sym_name.data: op for op in parse_module(PROGRAMS).ops if isinstance(op, PrimFuncOp)}


@cache
def _runner(mode: str) -> Callable[[str, Sequence[Any]], None]:
    if mode == "interpreter":
        functions = _functions()
        return lambda name, arrays: run_prim_func(functions[name], arrays)
    machine = VirtualMachine(build(parse_module(PROGRAMS), mode="native" if mode == "native" else "bytecode"))
    return lambda name, arrays: machine[name](*arrays)


MODES = ["native", "bytecode", "interpreter"]
NUMBERS = np.array([1, GREATEST, LEAST, 2**62, -(2**62) - 1] * 7, np.int64)


@pytest.mark.parametrize("mode", MODES)
def test_indices_wrap_as_integers_do(mode: str):
    with np.errstate(over="ignore"):
        expected = {"greater": NUMBERS + 1 > NUMBERS, "halves": NUMBERS * 2 // 2}
    for name, want in expected.items():
        got = np.zeros_like(NUMBERS)
        _runner(mode)(name, [NUMBERS.copy(), got])
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", MODES)
def test_a_sum_that_wraps_is_not_taken_for_a_place(mode: str):
    result = np.zeros(8, np.int64)
    _runner(mode)("beyond", [np.array([1, 3]), result])
    np.testing.assert_array_equal(result, [0, 0, 0, 0, 0, 1, 1, 0])
    with pytest.raises(IndexError):
        _runner(mode)("beyond", [np.array([GREATEST - 2, GREATEST]), result])


def test_only_sizes_and_loop_variables_are_known_not_to_overflow():
    text = str(lower_prim_funcs(_functions().values(), LoweringOptions(256)))
    known = {line.split()[0]: "nsw" in line for line in text.splitlines() if re.search(r"= llvm.(add|mul) ", line)}
    assert {name: known[name] for name in ("%n", "%d", "%q", "%last")} == {"%n": 0, "%d": 0, "%q": 0, "%last": 1}
