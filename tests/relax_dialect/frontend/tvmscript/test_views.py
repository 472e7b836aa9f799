"""Memory that is seen in other ways: as another shape or dtype, from a position on, by a function that declares it."""

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from lowering import build
from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn
from tir_dialect.ops.blocks import MatchBufferOp
from vm_dialect import VirtualMachine

HEAD = """
@T.prim_func
def kernel(A: T.Buffer((2, 4), "int32"), B: T.Buffer((8,), "int32")):
"""
TAIL = """
@R.function
def main(x: R.Tensor((2, 4), "int32")):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor((8,), "int32"))
"""
X = np.array([[3, -1, 70000, 1], [-5, 9, 2, 6]], np.int32)


def result_of(body: str, more: str = "") -> Any:
    lines = [f"    {line}" for line in dedent(body).strip().splitlines()]
    return run_in_turn(parse(HEAD + "\n".join(lines) + "\n" + dedent(more) + TAIL), "main", [X])


def test_other_shape_dtype_and_place():
    body = """
        F = T.decl_buffer((8,), "int32", data=A.data)
        S = T.decl_buffer((4, 2), "int32", data=A.data)
        H = T.decl_buffer((16,), "int16", data=A.data)
        U = T.decl_buffer((3,), "float32", data=A.data, elem_offset=5)
        for i in range(4):
            B[i] = F[i] + S[i, 1]
        for i in range(3):
            tail = T.decl_buffer((1,), "float32", data=T.address_of(U[i]))
            B[4 + i] = T.reinterpret("int32", tail[0]) + H[2 * i + 4]
        W = T.decl_buffer((2,), "int16", data=T.address_of(B[6]), elem_offset=2)
        W[0] = T.int16(1)
        W[1] = T.int16(2)
        """
    flat, halves = X.reshape(-1), X.reshape(-1).view(np.int16).astype(np.int32)
    expected = [*(flat[:4] + flat[1::2]), *(flat[5:] + halves[4:10:2]), 1 + (2 << 16)]
    np.testing.assert_array_equal(result_of(body), np.array(expected, np.int32))


def test_views_with_gaps():
    body = """
        D = T.decl_buffer((2, 2), "int32", data=A.data, strides=[5, 2])
        H = T.decl_buffer((3,), "int16", data=A.data, elem_offset=1, strides=[4])
        M = T.decl_buffer((2, 5), "int32")
        S = T.decl_buffer((2, 4), "int32", data=M.data, strides=[5, 1])
        for i, j in T.grid(2, 4):
            S[i, j] = A[i, j] + 1
        for i, j in T.grid(2, 2):
            B[2 * i + j] = D[i, j]
        for i in range(3):
            B[4 + i] = H[i]
        B[7] = M[1, 2]
        """
    flat, halves = X.reshape(-1), X.reshape(-1).view(np.int16)
    expected = [*flat[[0, 2, 5, 7]], *halves[[1, 5, 9]], X[1, 2] + 1]
    np.testing.assert_array_equal(result_of(body), np.array(expected, np.int32))


def test_a_stride_under_another_name():
    """A stride may be any dimension that the body knows: the type of the handle does not depend on its name."""
    text = """
    @T.prim_func
    def every(A_ptr: T.handle("int32"), B: T.Buffer((3,), "int32"), step: T.int32):
        stride = step
        A = T.decl_buffer((3,), "int32", data=A_ptr, strides=[stride])
        for i in range(3):
            B[i] = A[i]

    @R.function
    def main(x: R.Tensor((8,), "int32")):
        return R.call_tir(every, (x,), out_ty=R.Tensor((3,), "int32"), tir_vars=R.shape([3]))
    """
    x = np.arange(8, dtype=np.int32)
    np.testing.assert_array_equal(run_in_turn(parse(dedent(text)), "main", [x]), x[::3])


def test_callee_declares_what_it_is_given():
    body = """
        for i in range(2):
            row(T.address_of(A[i, 0]), B.access_ptr("w", offset=4 * i))
        """
    callee = """
        @T.prim_func(private=True)
        def row(a: T.handle("int32"), b: T.handle("int32")):
            A = T.decl_buffer((2, 2), "int32", data=a)
            B = T.decl_buffer((4,), "int32", data=b)
            for i, j in T.grid(2, 2):
                B[2 * i + j] = A[j, i]
        """
    expected = X.reshape(2, 2, 2).transpose(0, 2, 1).reshape(-1)
    np.testing.assert_array_equal(result_of(body, callee), expected)


def test_parts_with_dimensions_of_one_place():
    body = """
        for i in range(2):
            with T.sblock("part"):
                vi = T.axis.spatial(2, i)
                s = T.int32()
                P = T.match_buffer(A[vi, 0:4], (1, 4), strides=[s, 1], elem_offset="o")
                Q = T.match_buffer(B[vi * 4 : vi * 4 + 4])
                for j in range(4):
                    Q[j] = P[0, j] * T.int32(s) + T.int32(o) + Q.elem_offset
        """
    np.testing.assert_array_equal(result_of(body), X.reshape(-1) * 4 + np.repeat([0, 8], 4))
    body = """
        V = T.match_buffer(A[1:2, 1:4], (1, 3), offset_factor=1)
        W = T.match_buffer(V[0, 1:3], (2,), elem_offset=o)
        D = T.decl_buffer((2,), "int32", data=W.data, elem_offset=W.elem_offset)
        F = T.decl_buffer((8,), "int32", data=V.data)
        B[0] = D[0]
        B[1] = T.int32(V.elem_offset)
        B[2] = T.int32(o)
        for i in range(5):
            B[i + 3] = F[i]
        """
    np.testing.assert_array_equal(result_of(body), [X[1, 2], 5, 6, *X.reshape(-1)[:5]])
    module = parse(HEAD + "    P = T.match_buffer(A[1, 2:4])\n    B[0] = P[0, 1]\n")
    (view,) = [op for op in module.walk() if isinstance(op, MatchBufferOp)]
    assert str(view.view_type) == "!tir.buffer<[1, 2], i32, strides = [4, 1]>"


def test_a_parameter_begins_with_its_first_element():
    text = """
    @T.prim_func
    def f(a: T.handle, place: T.int32, B: T.Buffer((2,), "int32")):
        off = T.int32()
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32", elem_offset={name})
        B[0] = {name}
        B[1] = A[0]
    """
    for name, place, expected in [("off", 5, [0, 3]), ("place", 0, [0, 3]), ("place", 5, None)]:
        module, out = parse(dedent(text.format(name=name))), np.zeros(2, np.int32)
        kernel = VirtualMachine(build(module))["f"]
        if expected is None:
            with pytest.raises(ValueError, match="f: A begins at place, expected 0"):
                kernel(X.reshape(-1), place, out)
        else:
            kernel(X.reshape(-1), place, out)
            assert out.tolist() == expected


def test_views_of_tensors_are_copies():
    text = """
@R.function
def f(x: R.Tensor(("n", 4), "int32")):
    n = T.int64()
    with R.dataflow():
        h = R.memory.view(x, R.shape([n, 8]), R.dtype("int16"))
        t = R.memory.view(x, (5,), relative_byte_offset=R.prim_value(12))
        f = R.memory.view(x, dtype="float32")
        R.output(h, t, f)
    return (h, t, f, R.memory.view(x, R.shape([4 * n])), R.memory.view(R.flip(R.const([1, 2, 3]), 0), (2,)))
"""
    expected = X.view(np.int16), X.reshape(-1)[3:8], X.view(np.float32), X.reshape(-1), np.array([3, 2], np.int32)
    results: Any = run_in_turn(parse(text), "f", [X])
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_views_of_unknown_tensors():
    text = """
@R.function
def f(x: R.Tensor, y: R.Tensor("float32", ndim=2), at: R.Prim("int64")):
    new = R.ExternFunc("runtime.TVMTensorCreateView", R.Callable(derive_func="tvm.relax.type.infer_view_ty"))
    a = R.memory.view(x, R.shape([2, 8]), R.dtype("uint8"))
    b = R.memory.view(y, R.shape([3]), relative_byte_offset=at)
    c = R.memory.view(y, dtype="int32")
    d = new(y, R.shape([2]), R.dtype("int16"), R.prim_value(T.int64(2)))
    return (a, b, c, d, R.memory.view(x, R.shape([2]), R.tuple(), R.tuple()))
"""
    y = X.astype(np.float32)
    flat = y.reshape(-1)
    for x in (X, y.astype(np.float64)):
        expected = (
            x.reshape(-1).view(np.uint8)[:16].reshape(2, 8),
            flat[2:5],
            y.view(np.int32),
            flat.view(np.int16)[1:3],
        )
        results: Any = run_in_turn(parse(text), "f", [x, y, 8])
        for got, want in zip(results, (*expected, x.reshape(-1)[:2]), strict=True):
            np.testing.assert_array_equal(got, want)


TENSOR_ERRORS = {
    'R.memory.view(x, (2,), "int64", 4)': "expected an offset in multiples of 8 bytes, got 4",
    'R.memory.view(x, (64,), "int8")': "expected bytes that the operand has, got 64 and 32",
}


@pytest.mark.parametrize("call", TENSOR_ERRORS)
def test_what_is_no_view_of_a_tensor(call: str):
    with pytest.raises(TVMScriptError, match=TENSOR_ERRORS[call]) as caught:
        parse(f'@R.function\ndef f(x: R.Tensor((8,), "int32")):\n    return {call}\n')
    assert (caught.value.line, caught.value.column) == (3, 12)


ERRORS = {
    'V = T.decl_buffer((9,), "int32", data=A.data)': "V needs 9 elements of i32, and A has 8 of i32",
    'V = T.decl_buffer((1,), "int64", data=T.address_of(A[1, 0]))': "from its first element only",
    'V = T.decl_buffer((2,), "int32", data=3)': "expected data to be the memory of T.allocate, or of a buffer",
    'V = T.decl_buffer((8,), "int32", data=A.data, scope="local")': 'the scope of its memory, "global", got "local"',
    'V = T.decl_buffer((1,), "int32", data=T.address_of(A[0, 0]), scope="local")': 'got "local"; leave it out',
    "T.evaluate(T.address_of(3))": "expected the address of a buffer or of one of its elements",
    "V = T.match_buffer(A[0:2, 0:3], (2, 4))": "expected a view of extent 3, got 4",
    "V = T.match_buffer(A[0:2, 0:3], (2, 3, 1))": "expected 2 dimensions, one for each range, got 3",
    "V = A.layout": "a buffer has no layout; it has data, shape, strides",
}


@pytest.mark.parametrize("body", ERRORS)
def test_what_is_no_view(body: str):
    with pytest.raises(TVMScriptError, match=ERRORS[body]) as caught:
        parse(HEAD + f"    {body}\n    B[0] = 1\n")
    assert caught.value.line == 4
