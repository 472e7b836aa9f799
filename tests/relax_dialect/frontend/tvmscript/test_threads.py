"""Threads of GPUs that do not exchange data: rounds of loops, in every mode against NumPy."""

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

TEXT = """
@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"),
           S: T.Buffer((2,), "float32"), D: T.Buffer((8,), "float32")):
    own = T.alloc_buffer((1,), "float32", scope="local")
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(0, 4, "threadIdx.x"):
            own[0] = A[bx * 4 + tx]
            for again in T.thread_binding(4, thread="threadIdx.x"):
                B[bx * 4 + again] = own[0] + 1.0
    bx = T.env_thread("blockIdx.x")
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(bx, 2):
        T.launch_thread(tx, 4)
        C[bx * 4 + tx] = A[bx * 4 + tx] * 2.0
    for i in range(2):
        for k in T.thread_binding(4, thread="threadIdx.x"):
            with T.sblock("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + A[vi * 4 + vk]
    t = T.launch_thread("threadIdx.x", 8)
    if t % 2 == 0:
        D[t] = A[t]
    else:
        D[t] = 0.0

@R.function
def f(a: R.Tensor((8,), "float32")):
    return R.call_tir(kernel, (a,), out_ty=[R.Tensor((8,), "float32"), R.Tensor((8,), "float32"),
                                            R.Tensor((2,), "float32"), R.Tensor((8,), "float32")])
"""


def test_threads_as_rounds():
    a = np.array([3, -1, 4, 1.5, -5, 9, 2, 6], np.float32)
    b, c, s, d = run_in_turn(parse(TEXT), "f", [a])
    np.testing.assert_array_equal(b, a + 1)
    np.testing.assert_array_equal(c, a * 2)
    np.testing.assert_allclose(s, a.reshape(2, 4).sum(1), rtol=1e-6)
    np.testing.assert_array_equal(d, np.where(np.arange(8) % 2 == 0, a, 0))


EXCHANGES = {
    "for t in T.thread_binding(8, 'threadIdx.x'):\n        S = T.alloc_buffer((8,), scope='shared')": "exchange data",
    "for t in T.thread_binding(8, 'threadIdx.x'):\n        T.tvm_storage_sync('warp')": "exchange data",
    "for t in T.thread_binding(8):\n        A[t] = 0.0": "expected the thread",
}


@pytest.mark.parametrize("body", EXCHANGES)
def test_what_threads_exchange_is_refused(body: str):
    with pytest.raises(TVMScriptError, match=EXCHANGES[body]):
        parse(f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    {body}")
