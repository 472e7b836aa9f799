"""A kernel alone is called with tensors."""

import numpy as np
import pytest

from lowering import build
from relax_dialect.frontend.tvmscript import parse
from vm_dialect import VirtualMachine

STRIDED = """
@T.prim_func
def double(a: T.handle, b: T.handle):
    n, m, s, t = T.int64(), T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32", strides=[s, t])
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def test_strides_that_are_symbols_are_those_of_tensors():
    double = VirtualMachine(build(parse(STRIDED)))["double"]
    for shape in ((0, 3), (1, 1), (5, 7)):
        a, b = np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.empty(shape, np.float32)
        double(a, b)
        np.testing.assert_array_equal(b, a * 2)
    a, b = np.arange(6, dtype=np.float32).reshape(3, 2).T, np.empty((2, 3), np.float32)
    double(a, b)  # a copy of `a`, without the gaps
    np.testing.assert_array_equal(b, a * 2)
    with pytest.raises(ValueError, match="is written, so that it cannot be copied, but has gaps between its elements"):
        double(a, np.empty((3, 2), np.float32).T)
