"""Names of `T` beyond the usual ones: every spelling gives what TVM gives, or is refused by name with the reason."""

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

TEXT = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def five():
        return T.int32(5)

    @T.prim_func(private=True)
    def larger(x: T.float32, flag: T.boolean):
        if flag:
            return x * 2.0
        return x

    @T.prim_func
    def kernel(A: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32"), n: T.int64, B: T.Buffer((8,), "float32"),
               I: T.Buffer((16,), "int32"), D: T.Buffer((2, 3, 4), "int32")):
        for i in T.serial(7, -1, step=-2):
            B[i] = A[i] + T.Cast("float32", i)
        for i in range(6, -2, -2):
            B[i] = T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", T.BufferLoad(A, [i]))
        for i in T.serial(T.int64(4)):
            I[i] = T.clz(i) + T.popcount(i)
        for i in range(4):
            I[4 + i] = T.clz(i)
        I[8] = T.BitwiseXor(T.LShift(K[0], 3), T.BitwiseNot(K[1]))
        I[9] = M.five() + T.call_tir(M.five)
        I[10] = T.Cast("int32", M.larger(A[0], T.bool(True)) + M.larger(A[0], K[0] < 0))
        I[11] = len(D.shape) * T.IntImm("int32", 2)
        total = T.local_scalar("int32")
        total = 0
        for *outer, inner in T.grid(*D.shape):
            D[outer, inner] = outer[0] * 100 + outer[1] * 10 + inner
            total += D[*outer, inner]
            if total > 500:
                T.Continue()
        for all in T.grid(*D.shape):
            D[all] = D[all] + 1
        I[12] = total
        bytes = T.decl_buffer((2,), "int32", data=T.handle_add_byte_offset(K.data, 4))
        I[13] = bytes[1]
        rest = T.decl_buffer((2,), "int32", data=T.tvm_access_ptr(T.type_annotation("int32"), K.data, 4, 4, 1))
        I[14] = rest[1]
        with T.hint("unused"):
            I[15] = T.clz(n)

    @R.function
    def f(a: R.Tensor((8,), "float32"), k: R.Tensor((8,), "int32"), n: R.Prim("int64")):
        return R.call_tir(M.kernel, (a, k, n), out_ty=[
            R.Tensor((8,), "float32"), R.Tensor((16,), "int32"), R.Tensor((2, 3, 4), "int32")])
"""


def test_values():
    a = np.array([3, 1, 4, 1.5, 5, 9, 2, 6], np.float32)
    k = np.array([7, 10, 20, 30, 40, 50, 60, 70], np.int32)
    b, i, d = run_in_turn(parse(TEXT), "f", [a, k, 1 << 40])
    np.testing.assert_allclose(b, np.where(np.arange(8) % 2 == 1, a + np.arange(8), np.sqrt(a)), rtol=1e-6)
    places = np.indices((2, 3, 4))
    numbers = places[0] * 100 + places[1] * 10 + places[2]
    np.testing.assert_array_equal(d, numbers + 1)
    bits = [64, 64, 63, 64], [32, 31, 30, 30]
    rest = [(7 << 3) ^ ~10, 10, 9, 6, numbers.sum(), 20, 50, 23]
    np.testing.assert_array_equal(i, [*bits[0], *bits[1], *rest])


REFUSED = {
    "for i in T.thread_binding(8, 'vthread'):\n        T.tvm_storage_sync('global')": "GPU",
    "with T.If(A[0] > 0.0):\n        pass": "builds programs from Python",
    "T.evaluate(T.dp4a(A[0:4], A[4:8], 0))": "GPU",
    "p = T.handle('float32')": "memory that nothing owns",
    "T.print_buffer(A.data, 'float32', 0, 0, 1, 8)": "GPU",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused_with_the_reason(body: str):
    with pytest.raises(TVMScriptError, match=REFUSED[body]) as caught:
        parse(f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    {body}")
    assert caught.value.line in (3, 4)


DIVISIONS = """
@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), B: T.Buffer((2, 8), "float32")):
    for i in T.serial(8):
        B[0, i] = T.Div(A[i], T.float32(4))
        B[1, i] = T.Mod(A[i], T.float32(2.5))

@R.function
def f(a: R.Tensor((8,), "float32")):
    return R.call_tir(kernel, (a,), out_ty=R.Tensor((2, 8), "float32"))
"""


def test_division_of_floats():
    a = np.array([3, -1, 4, 1.5, -5.25, 9, 0, 6], np.float32)
    expected = [a / 4, np.fmod(a, np.float32(2.5))]
    np.testing.assert_array_equal(run_in_turn(parse(DIVISIONS), "f", [a]), expected)
