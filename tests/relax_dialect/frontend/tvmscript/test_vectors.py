"""Vectors: functions lane by lane, masks, buffers of vectors, bits as other dtypes; in every mode against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

X = np.array([3, -1, 4, 1.5, -5, 9, 2, 6], np.float32)
K = np.array([7, 0, 3, 3, -1, 6, 100, -2], np.int32)

FUNCTIONS = """
@T.prim_func
def kernel(X: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32"), F: T.Buffer((5, 8), "float32"),
           I: T.Buffer((5, 8), "int32"), M: T.Buffer((2, 8), "bool"), W: T.Buffer((8,), "float64")):
    F[0, 0:8] = T.Select(X[0:8] < T.Broadcast(T.float32(2), 8), T.exp(X[0:8]), -X[0:8])
    F[1, 0:8] = T.Select(K[0:8] > 3, T.Cast("float32x8", K[0:8]), X[0:8] * 2)
    F[2, 0:8] = T.Cast("float32x8", T.Ramp(5, -1, 8)) + T.broadcast(1, 8)
    F[3, 0:8] = T.reinterpret("float32x8", T.reinterpret("int32x8", X[0:8]) & T.Broadcast(0x7fffffff, 8))
    F[4, 0:8] = T.fmod(X[0:8], T.Broadcast(T.float32(2.5), 8))
    I[0, 0:8] = K[0:8] // 4 + T.truncmod(K[0:8], 4) * 100
    I[1, 0:8] = K[0:8] % 4
    I[2, 0:8] = T.Cast("int32x8", X[0:8] > K[0:8])
    I[3, 0:8] = T.min(T.popcount(K[0:8]), T.clz(K[0:8]))
    I[4, 0:8] = T.broadcast(7, 8)
    M[0, 0:8] = T.And(X[0:8] > 0.0, T.Not(K[0:8] == 3))
    M[1, 0:8] = T.isnan(T.sqrt(X[0:8]))
    W[0:8] = T.Cast("float64x8", M[0, 0:8]) + T.float64x8(X[0])

@R.function
def f(x: R.Tensor((8,), "float32"), k: R.Tensor((8,), "int32")):
    return R.call_tir(kernel, (x, k), out_ty=[R.Tensor((5, 8), "float32"), R.Tensor((5, 8), "int32"),
                                              R.Tensor((2, 8), "bool"), R.Tensor((8,), "float64")])
"""


def test_functions_lane_by_lane():
    with np.errstate(invalid="ignore"):
        root = np.sqrt(X)
    f, i, m, w = run_in_turn(parse(FUNCTIONS), "f", [X, K])
    chosen = np.where(X < 2, np.exp(X), -X)
    np.testing.assert_allclose(
        f, [chosen, np.where(K > 3, K, X * 2), 6 - np.arange(8), abs(X), np.fmod(X, np.float32(2.5))], rtol=1e-6
    )
    ones = [bin(int(k) & 0xFFFFFFFF).count("1") for k in K]
    zeros = [32 - (int(k) & 0xFFFFFFFF).bit_length() for k in K]
    np.testing.assert_array_equal(
        i, [K // 4 + np.fmod(K, 4) * 100, K % 4, X > K, np.minimum(ones, zeros), np.full(8, 7)]
    )
    positive = (X > 0) & (K != 3)
    np.testing.assert_array_equal(m, [positive, np.isnan(root)])
    np.testing.assert_array_equal(w, positive + np.float64(X[0]))


MEMORY = """
@T.prim_func
def kernel(X: T.Buffer((4, 4), "float32"), P: T.Buffer((4,), "int32"), S: T.Buffer((4,), "float32x2"),
           G: T.Buffer((4,), "float32"), O: T.Buffer((16,), "float32"), V: T.Buffer((6,), "int8")):
    G[0:4] = X[1, P[0:4] & 3]
    O[0:16] = X[0, 0:16] * T.float32(2)
    bits: T.int8x4 = T.reinterpret("int8x4", P[2])
    V[0:4] = T.Shuffle([bits, T.Broadcast(T.int8(9), 2)], [3, 5, 1, 0])
    V[4] = T.Cast("int8", T.reinterpret("int32", bits))
    V[5] = T.Shuffle([T.int8(1), T.int8(2)], [P[1]])
    for i in range(3):
        S[i] = S[i] + T.vectorhigh("float32x2", X[i, 0:4])
    S[3] = T.Broadcast(T.float32(5), 2)
    S[0:2] = S[0:2] * T.Broadcast(T.float32(10), 4)
    O[12:16] = T.vectorcombine("float32x4", S[3], T.vectorlow("float32x2", X[3, 0:4]))

@R.function
def f(x: R.Tensor((4, 4), "float32"), p: R.Tensor((4,), "int32"), s: R.Tensor((4, 2), "float32")):
    own = R.add(s, R.const(0, "float32"))
    return R.call_tir_inplace(kernel, (x, p, own), [-1, -1, -1, 2], out_ty=[
        R.Tensor((4,), "float32"), R.Tensor((16,), "float32"), R.Tensor((6,), "int8"), R.Tensor((4, 2), "float32")])
"""


def test_rows_in_memory():
    text = MEMORY.replace('S: T.Buffer((4,), "float32x2")):', "):")
    text = text.replace(
        'P: T.Buffer((4,), "int32"), G', 'P: T.Buffer((4,), "int32"), S: T.Buffer((4,), "float32x2"), G'
    )
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    p = np.array([3, 1, 0x01020304, 0], np.int32)
    s = np.ones((4, 2), np.float32)
    g, o, v, changed = run_in_turn(parse(MEMORY), "f", [x, p, s])
    np.testing.assert_array_equal(g, x[1, p & 3])
    expected = s.copy()
    expected[:3] += x[:3, 2:]
    expected[3] = 5
    expected[:2] *= 10
    np.testing.assert_array_equal(changed, expected)
    np.testing.assert_array_equal(o, [*(x.ravel() * 2)[:12], 5, 5, 12, 13])
    np.testing.assert_array_equal(v, [1, 9, 3, 4, 4, 2])


GUARDED = """
@T.prim_func
def kernel(A: T.Buffer((10,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        B[i * 4 : i * 4 + 4] = T.if_then_else(i < 2, A[i * 4 : i * 4 + 4] * T.float32(2), T.Broadcast(i, 4))

@R.function
def f(a: R.Tensor((10,), "float32")):
    return R.call_tir(kernel, (a,), out_ty=R.Tensor((16,), "float32"))
"""


def test_a_side_that_is_not_chosen_is_not_read():
    """The interpreter refuses what lies beyond the end."""
    a = np.arange(10, dtype=np.float32) + 1
    found = run_in_turn(parse(GUARDED), "f", [a])
    np.testing.assert_array_equal(found, [*(a[:8] * 2), *[2] * 4, *[3] * 4])


CHOSEN = """
@T.prim_func
def kernel(X: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32"), F: T.Buffer((3, 8), "float32")):
    F[0, 0:8] = T.if_then_else(T.Ramp(5, 1, 8) < 8, X[5:13] + 1, 0.0)
    F[1, 0:8] = T.if_then_else(T.And(K[0:8] >= 0, K[0:8] < 8), X[K[0:8]], T.Cast("float32x8", K[0:8]))
    F[2, 0:8] = T.if_then_else(K[0:8] < 8, T.if_then_else(K[0:8] >= 0, X[K[0:8]], X[0:8]), -X[0:8])

@R.function
def f(x: R.Tensor((8,), "float32"), k: R.Tensor((8,), "int32")):
    return R.call_tir(kernel, (x, k), out_ty=R.Tensor((3, 8), "float32"))
"""


def test_memory_is_read_for_lanes_that_are_chosen():
    """Positions beyond the ends are of other lanes."""
    inside = (K >= 0) & (K < 8)
    chosen = X[np.where(inside, K, 0)]
    first = [*(X[5:] + 1), *[0] * 5]
    rows = [first, np.where(inside, chosen, K), np.where(K >= 8, -X, np.where(inside, chosen, X))]
    np.testing.assert_array_equal(run_in_turn(parse(CHOSEN), "f", [X, K]), np.array(rows, np.float32))


DIVIDED = """
@T.prim_func
def kernel(
    A: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32"), S: T.Buffer((2,), "int32"), C: T.Buffer((8,), "int32")
):
    C[0:4] = T.if_then_else(D[0:4] != 0, A[0:4] // D[0:4], -1)
    C[4:8] = T.if_then_else(D[4:8] != 0, T.truncmod(A[4:8], D[4:8]) + S[0] // S[1], A[4:8] * S[0])

@R.function
def f(a: R.Tensor((8,), "int32"), d: R.Tensor((8,), "int32"), s: R.Tensor((2,), "int32")):
    return R.call_tir(kernel, (a, d, s), out_ty=R.Tensor((8,), "int32"))
"""


def test_lanes_that_are_not_chosen_do_not_divide():
    """Nor does what all lanes share, if none of them is chosen."""
    a = np.array([7, -7, 5, 9, -8, 8, 3, 1], np.int32)
    results = {(2, 2, 0, -4, 3, 0, 2, 0, 9, 2): [3, -4, -1, -3, 2, 72, 5, 9]}
    results[0, 0, 1, 0, 0, 0, 0, 0, 9, 0] = [-1, -1, 5, -1, -72, 72, 27, 9]
    arguments = [[a, np.array(each[:8], np.int32), np.array(each[8:], np.int32)] for each in results]
    for given, expected in zip(arguments, results.values(), strict=True):
        np.testing.assert_array_equal(run_in_turn(parse(DIVIDED), "f", given), expected)


CONDITIONS = """
@T.prim_func
def kernel(X: T.Buffer((8,), "float32"), K: T.Buffer((8,), "int32"), B: T.Buffer((3, 8), "bool")):
    B[0, 0:8] = X[0:8] > 2.0 and K[0:8]
    B[1, 0:8] = X[0:8] > 2.0 or K[0] < 0 or K[0:8] == 3
    B[2, 0:8] = not K[0:8] and True

@R.function
def f(x: R.Tensor((8,), "float32"), k: R.Tensor((8,), "int32")):
    return R.call_tir(kernel, (x, k), out_ty=R.Tensor((3, 8), "bool"))
"""


def test_conditions_lane_by_lane():
    expected = [(X > 2) & (K != 0), (X > 2) | (K == 3), K == 0]
    np.testing.assert_array_equal(run_in_turn(parse(CONDITIONS), "f", [X, K]), expected)


REFUSED = {
    "A[0:4] = T.Cast('float32x4', T.pow(K[0:4], K[0:4]))": "not computed of vectors",
    "A[0:4] = T.reinterpret('float32x4', T.Broadcast(T.int64(1), 4))": "as many bits as float32x4 has",
    "A[0:3] = T.vectorlow('float32x3', A[0:5])": "even number of lanes",
    "A[0:4] = A[0:4] + A[0:8]": "as many lanes, got 4, 8",
    "A[0:4] = T.if_then_else(K[0:4] > 0, A[0:8], 0.0)": "a mask of type vector<8xi1>",
    "A.vstore([0], A[0:4], predicate=T.Broadcast(True, 8))": "a mask of 4 lanes, got 8",
    "A[0:4] = A.vload([0], 'int32x4')": "the dtype of the buffer",
    "A[0:4] = T.Shuffle(A[0:4], 0)": "a list of vectors",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_vectors_are_not(body: str):
    head = "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32'), K: T.Buffer((8,), 'int32')):\n    "
    with pytest.raises(TVMScriptError, match=REFUSED[body]):
        parse(head + body)
