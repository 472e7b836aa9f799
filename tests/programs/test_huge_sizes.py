"""Sizes with which arithmetic in 64 bits would overflow, as an axis of length 0 makes possible, are refused."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from tests.support.programs import MODES, runner
from tir_dialect import dtypes
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import messages

PROGRAM = """
relax.func @sixteen[%n, %m](%x: !relax.tensor<[n, m], i8>) {
  %2 = relax.concat %x, %x axis = 1
  %4 = relax.concat %2, %2 axis = 1
  relax.return %4
}"""
KERNEL = """
tir.prim_func @clear[%n, %m](%A: !tir.buffer<[n, m], i8>) {
  %zero = arith.constant 0 : i8
  tir.for (%i, %j) in (%n, %m) { tir.store %zero, %A[%i, %j] }
}"""


def test_the_limit_is_one():
    assert dtypes.MOST_BYTES == messages.MOST_BYTES


@pytest.mark.parametrize("mode", MODES)
def test_arguments_of_programs(mode: str):
    run = runner(parse_module(PROGRAM), "sixteen", mode)
    assert np.asarray(run(np.zeros((0, 1 << 40), np.int8))).shape == (0, 1 << 42)
    for shape in ((0, 1 << 60), (1 << 49, 0)):
        with pytest.raises(ValueError, match=r"^sixteen: argument #0 \(x\): expected a tensor of at most 2\^48 bytes"):
            run(np.zeros(shape, np.int8))


def test_arguments_of_kernels():
    module = parse_module(KERNEL)
    packed = compile_prim_funcs(module, cache=NO_CACHE).packed("clear")
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    for shape in ((0, 1 << 60), (1 << 49, 0)):
        array = np.zeros(shape, np.int8)
        with pytest.raises(ValueError, match=r"^clear: argument #0 \(A\): expected a tensor of at most 2\^48 bytes"):
            packed(tvm_ffi.from_dlpack(array))
        with pytest.raises(ValueError, match=r"^clear: argument #0 \(A\): expected a tensor of at most 2\^48 bytes"):
            run_prim_func(func, [array])
