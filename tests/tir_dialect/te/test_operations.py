"""What makes a tensor, by TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

from tir_dialect import te
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.te.nodes import Reduce

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), "f32", "A")


def test_placeholders():
    assert isinstance(A.op, te.PlaceholderOp)
    assert A.op == A.op
    assert (A.op.name, A.op.shape, A.op.dtype) == ("A", A.shape, A.dtype)
    assert (A.op.num_outputs, A.op.output(0), A.op.input_tensors, dict(A.op.attrs)) == (1, A, (), {})
    assert A.op != te.placeholder((n, m), "f32", "A").op


def test_computes():
    r = te.reduce_axis(m, "r")
    said = {"depth": 3, "sizes": [1, 2], "fast": True, "more": {"x": 0.5, "y": "z"}}
    b = te.compute((n,), lambda i: te.sum(A[i, r] * A[i, 0], r), name="B", attrs=said, tag="rows")
    op = b.op
    assert isinstance(op, te.ComputeOp)
    assert isinstance(op.body[0], Reduce)
    assert ([axis.name for axis in op.axis], op.reduce_axis) == (["i"], (r,))
    assert (op.input_tensors, op.attrs, op.tag) == ((A,), said, "rows")
    assert (op.output(0), op.output_shape(0), op.output_dtype(0)) == (b, b.shape, b.dtype)
    pair = te.compute((n,), lambda i: (A[i, 0], A[i, 1]), name="P")
    assert [each.value_index for each in (b, *pair)] == [0, 0, 1]


def test_other_operations():
    (e,) = te.extern([((n,), "f32")], [A], lambda b, ins, outs: None, name="E")
    assert isinstance(e.op, te.ExternOp)
    assert e.op.input_tensors == (A,)
    s = te.placeholder((n, m), "f32", "s")
    init = te.compute((1, m), lambda _, j: A[0, j])
    scanned = te.scan(init, te.compute((n, m), lambda t, j: s[t - 1, j] + A[t, j]), s)
    assert isinstance(scanned.op, te.ScanOp)
    assert scanned.op.input_tensors == (A,)
    assert all(isinstance(each.op, te.Operation) for each in (A, e, scanned, init))
    assert isinstance(A[0], te.TensorSlice)


@pytest.mark.parametrize(("dtype", "expected"), [("i32", [-3, 3, 0]), ("f32", [-3.5, 3.5, 0.25])])
def test_quotients_as_in_c(dtype, expected):
    x, y = te.placeholder((3,), dtype, "x"), te.placeholder((3,), dtype, "y")
    func = te.create_prim_func([x, y, te.compute((3,), lambda i: te.div(x[i], y[i]), name="z")])
    z = np.zeros(3, "i4" if dtype == "i32" else "f4")
    run_prim_func(func, [np.array([-7, 7, 1], z.dtype), np.array([2, 2, 4], z.dtype), z])
    assert z.tolist() == expected


def test_reductions_have_the_parameters_of_tvm() -> None:
    x, r = te.placeholder((4,), name="x"), te.reduce_axis((0, 4), "r")
    for reduced in (te.sum, te.prod, te.max, te.min):
        assert repr(reduced(expr=x[r], axis=r)) == repr(reduced(x[r], r))


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorized", "unrolled"])
def test_loops_of_a_kind(kind) -> None:
    def body(b, ins, outs):
        with b.for_range(0, n, "i", kind) as i:
            b.store(outs[0], i, ins[0][i, 0])

    (e,) = te.extern([((n,), "f32")], [A], body, name="E")
    func = te.create_prim_func([A, e], visibility="private")
    (loop,) = (op for op in func.walk() if isinstance(op, ForOp))
    assert loop.kind.data == kind
    assert func.sym_visibility is not None
    assert func.sym_visibility.data == "private"


def test_conditions_that_hold_for_some_or_all_that_count() -> None:
    r = te.reduce_axis(m, "r")
    some = te.compute((n,), lambda i: te.any(A[i, r] > 0, r, where=r > 1), name="some")
    every = te.compute((n,), lambda i: te.all(A[i, r] > 0, r, where=r > 1), name="every")
    found = np.empty(3, bool), np.empty(3, bool)
    a = np.array([[1, 1, -1, -1], [-1, -1, -1, 1], [-1, -1, 1, 1]], np.float32)
    run_prim_func(te.create_prim_func([A, some, every]), [a, *found])
    assert [each.tolist() for each in found] == [[False, True, True], [False, False, True]]
