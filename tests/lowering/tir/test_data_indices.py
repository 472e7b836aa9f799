"""Indices that are data: outside of a buffer they are an error in machine code too."""

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

GATHER = """
tir.prim_func @gather[%n, %m](%A: !tir.buffer<[n], f32>, %I: !tir.buffer<[m], i64>, %B: !tir.buffer<[m], f32>) {
  tir.for (%i) in (%m) {
    tir.block "gather" (%v = spatial %i in %m) {
      %k = tir.load %I[%v]
      %j = arith.index_cast %k : i64 to index
      %x = tir.load %A[%j]
      tir.store %x, %B[%v]
    }
  }
}
"""
SCATTER = GATHER.replace("tir.load %A[%j]", "tir.load %B[%v]").replace("tir.store %x, %B[%v]", "tir.store %x, %A[%j]")


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize(("text", "what"), [(GATHER, "load"), (SCATTER, "store")])
def test_places_outside_are_refused(text: str, what: str, mode: str):
    function = VirtualMachine(build(parse_module(text), mode=mode))["gather"]
    data, result = np.arange(4, dtype=np.float32), np.arange(5, 8, dtype=np.float32)
    function(data, np.array([3, 0, 2]), result)
    np.testing.assert_array_equal(*((result, [3, 0, 2]) if what == "load" else (data, [6, 1, 7, 5])))
    for place in (4, -1, 1 << 40, -(1 << 62)):
        with pytest.raises(IndexError, match=rf"'tir.{what}' whose index 0 of %A is data, expected .* less than n"):
            function(data, np.array([0, 1, place]), result)
