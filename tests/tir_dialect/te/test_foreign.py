"""Functions that are there already, in tensor expressions: of the registry, of C, and PrimFuncs; slices and tags."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from tests.support.te_values import evaluate
from tir_dialect import Schedule, te
from vm_dialect import VirtualMachine

n, m, p, q = (te.var(name) for name in "nmpq")
X = te.placeholder((n,), "f32", "X")
A = te.placeholder((n, n), "f32", "A")


def doubled():
    K, M = te.placeholder((n, m), "f32", "K"), te.placeholder((m, n), "f32", "M")
    r = te.reduce_axis(m, "r")
    twice = te.compute((n, m), lambda i, j: K[i, j] * 2.0, name="twice")
    return te.create_prim_func(
        [K, M, te.compute((n, n), lambda i, j: te.sum(twice[i, r] * M[r, j], r), name="C")], name="doubled"
    )


def test_body_that_gives_calls():
    single = te.extern((n,), [X], lambda ins, outs: te.call_packed("f", ins[0], outs[0], n))
    assert isinstance(single, te.Tensor)
    assert 'tir.call_packed "f"(%X, %extern, %n)' in str(te.create_prim_func([X, single]))
    several = te.extern([X.shape, X.shape], [X], lambda ins, outs: te.call_extern("i32", "g", ins[0].data, *outs))
    assert isinstance(several, tuple)
    assert 'tir.call_extern "g"(%X, %extern_v0, %extern_v1)' in str(te.create_prim_func([X, *several]))


def test_body_that_gives_calls_runs():
    seen = []

    def fill(x, y, size):
        seen.append(size)
        np.from_dlpack(y)[:] = -np.from_dlpack(x)

    tvm_ffi.register_global_func("test.te.negate", fill, override=True)
    negated = te.extern((n,), [X], lambda ins, outs: te.call_packed("test.te.negate", ins[0], outs[0], n * 2))
    out = te.compute((n,), lambda i: negated[i] + 1.0)
    x, got = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    VirtualMachine(build(ModuleOp([te.create_prim_func([X, out])])))["main"](x, got)
    assert seen == [8]
    np.testing.assert_array_equal(got, 1 - x)


def test_dtype_of_calls():
    Y = te.placeholder((n,), "i32", "Y")
    with pytest.raises(TypeError, match='extern "extern" needs a dtype, its inputs have 2 of them'):
        te.extern((n,), [X, Y], lambda ins, outs: te.call_packed("f", *ins, *outs))
    given = te.extern([((n,), "i64")], [X], lambda ins, outs: [te.call_packed("f", *ins, *outs)])
    assert str(given) == "Tensor(extern: [n], i64)"


def test_prim_func_among_computes():
    x, y = te.placeholder((p, 2 * q), "f32", "x"), te.placeholder((2 * q, p), "f32", "y")
    before = te.compute((p, 2 * q), lambda i, j: x[i, j] + 1.0, name="twice")
    product = te.extern_primfunc([before, y], ModuleOp([doubled()]))
    after = te.compute((p, p), lambda i, j: product[i, j] - 1.0, name="after")
    func = te.create_prim_func([x, y, after])
    Schedule(func).compute_inline("twice_1")
    assert len([op for op in func.walk() if op.name == "tir.block"]) == 3
    a = np.random.default_rng(1).random((3, 4), np.float32)
    got = evaluate([x, y], after, a, a.reshape(4, 3), p=3, q=2)
    np.testing.assert_allclose(got, (a + 1) * 2 @ a.reshape(4, 3) - 1, rtol=1e-5)


WRONG = {
    "reads 2 buffers and writes 1, got 1 inputs": [X],
    "expected !tir.buffer": [te.placeholder((n, m), "f32"), te.placeholder((n, m), "f32", "t")],
    "buffer<\\[m, n\\], f32>, got Tensor": [te.placeholder((n, m), "f32"), te.placeholder((m, n), "f16")],
}


@pytest.mark.parametrize("message", WRONG)
def test_prim_func_that_does_not_fit(message):
    with pytest.raises(ValueError, match=message):
        te.extern_primfunc(WRONG[message], doubled())


def test_slices():
    diagonal = te.compute((n,), lambda i: A[i][i] + A[0][i])
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_array_equal(evaluate([A], diagonal, a, n=3), a.diagonal() + a[0])
    for body in (lambda i: A[i], lambda i: A[i] + 1.0, lambda i: te.exp(A[i])):
        with pytest.raises(IndexError, match='tensor "A" has rank 2, got 1 indices'):
            te.compute((n,), body)
    with pytest.raises(TypeError, match="has no elements"):
        te.compute((n,), lambda i: A[i][i][i])


def test_tags():
    with te.tag_scope(tag="product"):
        inside = te.compute((n,), lambda i: X[i])
        with pytest.raises(ValueError, match='the tag "own" is inside of the scope of tag "product"'):
            te.compute((n,), lambda i: X[i], tag="own")
    make = te.tag_scope(tag="made")(lambda: te.compute((n,), lambda i: X[i]))
    tags = [each.op.tag for each in (inside, make(), make(), te.compute((n,), lambda i: X[i], tag="own"))]
    assert tags == ["product", "made", "made", "own"]
    assert te.compute((n,), lambda i: X[i]).op.tag == ""


def test_constants_as_extents():
    assert te.placeholder((te.const(4, "i64"), 2), "f32").shape == te.placeholder((4, 2), "f32").shape
