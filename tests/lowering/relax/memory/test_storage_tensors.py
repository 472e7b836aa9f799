"""Tensors that a program positions in storages by itself."""

import numpy as np
import pytest
import tvm_ffi

from lowering.compiler.build import build
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from tests.support.programs import EXACT, run_in_turn

PLACED = """
tir.prim_func @double[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = arith.addf %x, %x : f32
    tir.store %y, %Y[%i]
  }
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[n], f32>, !relax.object> impure {
  %s = relax.alloc_storage size 8 * n
  %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
  relax.call_kernel @double(%x, %a) sizes [n]
  %b = relax.storage_tensor %s at 4 * n : !relax.tensor<[n], f32>
  relax.call_kernel @double(%a, %b) sizes [n]
  %c = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
  relax.call_kernel @double(%b, %c) sizes [n]
  %kept = relax.call_packed "tests.keep"(%b) : !relax.object
  %both = relax.tuple(%c, %kept)
  relax.return %both
}
"""


def test_what_leaves_the_call_outlives_the_storage():
    """`%b` goes to a function that keeps it, `%c` to the caller; only `%a` can stay in the storage."""
    tvm_ffi.register_global_func("tests.keep", lambda tensor: tensor, override=True)
    x = np.array([1, -2, 3], np.float32)
    result = run_in_turn(PLACED, "main", [x], EXACT)
    assert isinstance(result, tuple)
    np.testing.assert_array_equal(result[0], 8 * x)
    np.testing.assert_array_equal(result[1], 4 * x)


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_storages_stay_in_their_call(mode: str):
    text = """
relax.func @main(%x: !relax.tensor<[3], f32>) -> !relax.object impure {
  %s = relax.alloc_storage size 64
  relax.return %s
}
"""
    with pytest.raises(InvalidModule, match=r"'relax.return' op operand #0 is a storage, which cannot leave its call"):
        build(parse_module(text), mode=mode)
