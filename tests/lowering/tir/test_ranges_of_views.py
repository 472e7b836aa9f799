"""A view is as long as the range that it is of, in every mode."""

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from tests.support.tir import parse_prim_func
from tir_dialect.interpreter import run_prim_func
from vm_dialect import VirtualMachine

COPY = """
tir.prim_func @copy[%n](%E: !tir.buffer<[2], i64>, %A: !tir.buffer<[n], f32>, %B: !tir.buffer<[4], f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tir.load %E[%c0]
  %f = tir.load %E[%c1]
  %begin = arith.index_cast %e : i64 to index
  %end = arith.index_cast %f : i64 to index
  %V = tir.match_buffer %A[%begin to %end] : !tir.buffer<[4], f32>
  tir.for (%i) in (%c4) {
    %a = tir.load %V[%i]
    tir.store %a, %B[%i]
  }
}"""


@pytest.mark.parametrize("mode", ["native", "bytecode", "interpret"])
def test_a_range_is_as_long_as_its_view(mode: str):
    func = parse_prim_func(COPY)

    def copy(begin: int, end: int) -> np.ndarray:
        result = np.zeros(4, np.float32)
        run(np.array([begin, end]), np.arange(9, dtype=np.float32), result)
        return result

    compiled = None if mode == "interpret" else VirtualMachine(build(parse_module(COPY), mode=mode))["copy"]
    run = compiled or (lambda *arrays: run_prim_func(func, list(arrays)))
    np.testing.assert_array_equal(copy(5, 9), [5, 6, 7, 8])
    for begin, end in ((5, 8), (2, 8), (5, 4), (0, -(1 << 63)), (-(1 << 62), (1 << 62) + 4)):
        with pytest.raises(ValueError, match=r"match_buffer"):
            copy(begin, end)
    with pytest.raises(IndexError, match=r"match_buffer"):
        copy(6, 10)
