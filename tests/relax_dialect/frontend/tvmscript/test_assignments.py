"""Names that are assigned more than once are memory, as in TVM; other names and `T.let` are values."""

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_everywhere

TEXT = """

@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), B: T.Buffer((9,), "float32")):
    x = A[0]
    n: T.int32 = 0
    y: T.float32
    row = T.Broadcast(T.float32(1), 4)
    for i in range(1, 8):
        x = x + A[i]
        if A[i] > 3.0:
            n += 1
        let: T.let = x + 1.0
        if i % 4 == 0:
            row = row + A[i - 4 : i]
    B[0] = x
    B[1] = T.Cast("float32", n)
    k = 0
    while A[k] > 0.0:
        k = k + 1
    B[2] = A[k]
    y = 0.0
    y += 2.5
    B[3] = y
    a, b = A[1], A[2]
    a, b = b, a
    B[4] = a - b
    c = T.alloc_local((1,), "float32")
    c = 3.0
    memory: T.float32[2]
    memory[1] = c[0]
    B[5] = memory[1]
    B[6:8] = T.vectorhigh("float32x2", row)
    T.buffer_store(B, 7.0, [8])
    T.static_assert(8 % 4 == 0, "a multiple of four")

@R.function
def f(x: R.Tensor((8,), "float32")):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor((9,), "float32"))
"""


def test_names_that_change():
    x = np.array([3, -1, 4, 1.5, -5, 9, 2, 6], np.float32)
    found = run_everywhere(parse(TEXT), "f", [x])
    expected = [x.sum(), 3, -1, 2.5, 5, 3, *(1 + x[2:4]), 7]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


REFUSED = {
    "T.static_assert(1 == 2, 'one is not two')": "one is not two",
    "T.buffer_store(3, 1.0, [0])": "expected a buffer to store to",
    "T.masked_store(A, T.Broadcast(1.0, 4))": "a buffer, a value, the place and a mask",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body: str):
    with pytest.raises(TVMScriptError, match=REFUSED[body]):
        parse(f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    {body}")
