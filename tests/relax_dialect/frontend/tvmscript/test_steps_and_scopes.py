"""PrimFuncs with steps that are data, memory that threads would share, converted and masked rows, init anywhere."""

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

TEXT = """
@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "int32"), step: T.int64,
           O: T.Buffer((8,), "float64"), P: T.Buffer((4,), "float32")):
    S = T.alloc_buffer((8,), "float16", scope="shared.dyn")
    S[0:8] = T.Cast("float16x8", A[0:8])
    O[0:8] = T.Cast("float64x8", S[0:8]) + T.Cast("float64x8", H[0:8])
    H[0:4] = T.Cast("int32x4", A[4:8])
    for i in T.serial(1, 8, step=step):
        O[i] = O[i] * T.float64(2)
    for i, j in T.grid(4, 2):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            P[vi] = P[vi] + A[vi * 2 + vj]
            with T.init():
                P[vi] = T.float32(1)

@R.function
def f(a: R.Tensor((8,), "float32"), h: R.Tensor((8,), "int32"), step: R.Prim("int64")):
    own = R.add(h, R.const(0, "int32"))
    return R.call_tir_inplace(
        kernel, (a, own, step), [1, -1, -1],
        [R.Tensor((8,), "int32"), R.Tensor((8,), "float64"), R.Tensor((4,), "float32")])
"""


@pytest.mark.parametrize("step", [1, 3, 20])
def test_values(step: int):
    a, h = (np.arange(8) * 1.5 - 3).astype(np.float32), np.arange(8, dtype=np.int32)
    converted, scaled, summed = run_in_turn(parse(TEXT), "f", [a, h, step])
    expected = (a + h).astype(np.float64)
    expected[1::step] *= 2
    np.testing.assert_array_equal(scaled, expected)
    np.testing.assert_array_equal(converted, [*a[4:].astype(np.int32), *h[4:]])
    np.testing.assert_array_equal(summed, a.reshape(4, 2).sum(1) + 1)


MASKED = """
@T.prim_func
def kernel(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(4):
        row = T.meta_var(A.vload([T.Ramp(i * 4, 1, 4)], predicate=T.get_active_lane_mask("uint1x4", i * 4, 14)))
        B.vstore([T.Ramp(i * 4, 1, 4)], row + T.Broadcast(T.float32(1), 4))
    for j in range(8):
        C[j] = T.float32(-1)
    C.vstore([T.Ramp(0, 2, 4)], A.vload([2], "float32x4"), predicate=T.Broadcast(A[0] > T.float32(0), 4))

@R.function
def f(a: R.Tensor((14,), "float32")):
    return R.call_tir(kernel, (a,), out_ty=[R.Tensor((16,), "float32"), R.Tensor((8,), "float32")])
"""


@pytest.mark.parametrize("first", [1, -1])
def test_masks(first: int):
    """What a mask has not is neither read, past the end here, nor written."""
    a = np.arange(14, dtype=np.float32) + first
    moved, spread = run_in_turn(parse(MASKED), "f", [a])
    np.testing.assert_array_equal(moved, [*(a + 1), 1, 1])
    expected = np.full(8, -1, np.float32)
    expected[::2] = a[2:6] if first > 0 else -1
    np.testing.assert_array_equal(spread, expected)


ERRORS = {
    'A[0:4] = A.vload([0], "float32x4", predicate=A)': "expected a scalar, got a Buffer",
    'S = T.alloc_buffer((8,), "float32", scope="wmma.accumulator")': 'the scope "wmma.accumulator" is not taken',
}


def test_the_scope_of_declared_memory_is_its_own():
    text = """@T.prim_func
def k(A: T.Buffer((8,), "float32")):
    p = T.allocate((4,), "float32", "local")
    B = T.decl_buffer((4,), "float32", data=p, scope="local")
    C = T.decl_buffer((2, 2), "float32", data=B.data, scope="local")
    C[1, 1] = A[0]
    A[1] = B[3]
"""
    assert 'scope = "local"' in str(parse(text))
    with pytest.raises(TVMScriptError, match='expected the scope of its memory, "local", got "global"; leave it out'):
        parse(text.replace('data=p, scope="local"', 'data=p, scope="global"'))


@pytest.mark.parametrize("statement", ERRORS)
def test_errors(statement: str):
    text = f'@T.prim_func\ndef k(A: T.Buffer((8,), "float32")):\n    {statement}\n'
    with pytest.raises(TVMScriptError, match=ERRORS[statement]) as caught:
        parse(text)
    assert caught.value.line == 3
