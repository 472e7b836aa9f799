"""Floats of 8 and 4 bits and integers of 4 in tensors, buffers, casts, constants and vectors, in every mode."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.narrow import Array, every_value, same_bits
from tests.support.programs import EXACT, run_in_turn

E4M3, E5M2, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
F4, I4, U4 = ml_dtypes.float4_e2m1fn, ml_dtypes.int4, ml_dtypes.uint4


def values(name: str, count: int, seed: int) -> Array:
    found = every_value(name)
    return np.random.default_rng(seed).choice(found[np.isfinite(found.astype(np.float32))], count)


GRAPH = """
@R.function
def f(x: R.Tensor(("n", 4), dtype="float8_e4m3fn"), w: R.Tensor((4, 2), "e5m2_float8")):
    with R.dataflow():
        c = R.matmul(R.astype(x, dtype="float16"), R.astype(w, "float16"), out_dtype="float32")
        d = R.astype(R.clip(c, -8, 7), "int4")
        e = R.multiply(x, R.const(2.0, "float8_e4m3fn"))
        R.output(c, d, e)
    return (c, d, e)
"""


def test_operators_of_relax():
    x, w = values("f8E4M3FN", 12, 1).reshape(3, 4), values("f8E5M2", 8, 2).reshape(4, 2)
    w = np.clip(w.astype(np.float32), -100, 100).astype(E5M2)
    c, d, e = run_in_turn(parse(GRAPH), "f", [x, w], EXACT)
    np.testing.assert_allclose(c, x.astype(np.float32) @ w.astype(np.float32), rtol=1e-5)
    assert same_bits(d, np.clip(c, -8, 7).astype(I4))
    with np.errstate(all="ignore"):
        assert same_bits(e, x * E4M3(2))


KERNELS = """
@T.prim_func
def add(A: T.Buffer((64,), "float8_e4m3fn"), s: T.float8_e4m3fn, C: T.Buffer((64,), "float8_e4m3fn"),
        D: T.Buffer((7,), "float8_e4m3fn")):
    for i in range(64):
        with T.block("C"):
            v = T.axis.spatial(64, i)
            C[v] = A[v] * s + T.float8_e4m3fn(1)
    D[0] = T.Cast("float8_e4m3fn", T.float32(0.3))
    D[1] = T.reinterpret("float8_e4m3fn", T.uint8(56))
    D[2] = T.cast(T.int4(-3), "float8_e4m3fn")
    D[3] = T.max_value("float8_e4m3fn")
    D[4] = T.min_value("e4m3_float8")
    D[5] = T.Cast("e4m3_float8", T.e5m2_float8(0.75))
    D[6] = T.Cast("float8_e4m3fn", T.Cast("int4", T.uint8(15)))

@T.prim_func
def vectors(A: T.Buffer((64,), "float8_e4m3fn"), H: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float8_e5m2")):
    for i in range(16):
        H[i * 4:i * 4 + 4] = T.Cast("float16x4", A[i * 4:i * 4 + 4])
        B[i * 4:i * 4 + 4] = T.Cast("float8_e5m2x4", H[i * 4:i * 4 + 4])

@T.prim_func
def decode(W: T.Buffer((8, 2), "uint32"), Q: T.Buffer((8, 16), "int4"), F: T.Buffer((16,), "float4_e2m1fn"),
           C: T.Buffer((8, 16), "float32"), U: T.Buffer((8, 16), "uint4"), S: T.Buffer((16,), "float8_e8m0fnu")):
    for i, j in T.grid(8, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.Cast("float32", Q[vi, vj]) * T.float32(0.25) + T.Cast("float32", F[vj])
            U[vi, vj] = T.Cast("uint4", T.shift_right(W[vi, vj // 8], T.Cast("uint32", vj % 8) * T.uint32(4))
                               & T.uint32(15)) + T.uint4(3)
    for j in range(16):
        S[j] = T.Cast("float8_e8m0fnu", T.abs(T.Cast("float32", F[j])) + T.float32(0.5))

@R.function
def f(a: R.Tensor((64,), "float8_e4m3fn"), w: R.Tensor((8, 2), "uint32"), q: R.Tensor((8, 16), "int4"),
      k: R.Tensor((16,), "float4_e2m1fn")):
    c = R.call_tir(add, (a, R.prim_value(T.float8_e4m3fn(1.3))),
                   out_sinfo=[R.Tensor((64,), "float8_e4m3fn"), R.Tensor((7,), "float8_e4m3fn")])
    v = R.call_tir(vectors, (a,), out_sinfo=[R.Tensor((64,), "float16"), R.Tensor((64,), "float8_e5m2")])
    d = R.call_tir(decode, (w, q, k), out_sinfo=[R.Tensor((8, 16), "float32"), R.Tensor((8, 16), "uint4"),
                                                 R.Tensor((16,), "float8_e8m0fnu")])
    return (c, v, d)
"""


def test_kernels():
    a, q = values("f8E4M3FN", 64, 3), values("i4", 128, 4).reshape(8, 16)
    w, k = np.random.default_rng(5).integers(0, 1 << 32, (8, 2), dtype=np.uint32), every_value("f4E2M1FN")
    (c, d), (h, b), (numbers, nibbles, scales) = run_in_turn(parse(KERNELS), "f", [a, w, q, k], EXACT)
    with np.errstate(all="ignore"):
        assert same_bits(c, a * E4M3(1.3) + E4M3(1))
    assert same_bits(d, np.array([0.3, 1.0, -3, 448, -448, 0.75, -1], np.float32).astype(E4M3))
    assert same_bits(h, a.astype(np.float16))
    assert same_bits(b, h.astype(E5M2))
    np.testing.assert_array_equal(numbers, q.astype(np.float32) / 4 + k.astype(np.float32))
    shifted = np.repeat(w, 8, 1) >> (np.arange(16, dtype=np.uint32) % 8 * 4)
    assert same_bits(nibbles, ((shifted & 15) + 3).astype(np.uint8).astype(U4))
    assert same_bits(scales, (np.abs(k.astype(np.float32)) + 0.5).astype(E8M0))


@pytest.mark.parametrize("dtype", ["float8_e6m1", "int3", "float4"])
def test_dtypes_that_there_are_not(dtype: str):
    with pytest.raises(TVMScriptError, match=f"unsupported dtype '{dtype}'"):
        parse(GRAPH.replace("e5m2_float8", dtype))
