"""Programs to schedule, and the check that a schedule does not change what they compute."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import numpy as np

from lowering.verify import VerifyDominancePass
from tir_dialect import te
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import compile_prim_func
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule import Schedule
from tir_dialect.types import BufferType

SIZES = (
    {"n": 1, "m": 1, "k": 1},
    {"n": 8, "m": 16, "k": 4},
    {"n": 7, "m": 13, "k": 5},
    {"n": 17, "m": 3, "k": 9},
    {"n": 4, "m": 6, "k": 0},
    {"n": 5, "m": 0, "k": 2},
)
"""Values of the symbols: units, multiples of the usual factors, odd ones, and empty ones."""

NOT_EMPTY = SIZES[:4]

n, m, k = te.var("n"), te.var("m"), te.var("k")


def arguments(func: PrimFuncOp, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Small integers in arrays of the parameters' shapes and dtypes: sums and products of them are exact."""
    rng = np.random.default_rng(seed)
    arrays = []
    for param in func.params:
        type = param.type
        assert isinstance(type, BufferType)
        shape = [dim.evaluate(sizes) for dim in type.shape]
        arrays.append(rng.integers(-4, 5, shape).astype(numpy_dtype(type.dtype)))
    return arrays


def run(func: PrimFuncOp, sizes: Mapping[str, int], **options) -> list[np.ndarray]:
    """The arguments after a run."""
    return _compiled(func, **options)(sizes)


def _compiled(func: PrimFuncOp, **options) -> Callable[[Mapping[str, int]], list[np.ndarray]]:
    """`run` for many sizes."""
    execute = compile_prim_func(func, **options)

    def run(sizes: Mapping[str, int]) -> list[np.ndarray]:
        arrays = arguments(func, sizes)
        execute(arrays, {name: sizes[name] for name in func.symbol_names})
        return arrays

    return run


def shuffled(iterations: range) -> list[int]:
    """The iterations of a parallel loop in another order."""
    order = list(iterations)
    random.Random(len(order)).shuffle(order)
    return order


def check_valid(func: PrimFuncOp) -> None:
    """The function verifies, every value dominates its uses, and its text reads back."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from tests.support.tir import parse_prim_func

    func.verify()
    module = ModuleOp([func.clone()])
    VerifyDominancePass().apply(Context(), module)
    assert str(parse_prim_func(str(func))) == str(func)


def check_same(before: PrimFuncOp, after: PrimFuncOp, sizes=SIZES) -> None:
    """Both functions leave the same values, whatever the order of parallel iterations."""
    check_valid(after)
    wanted = _compiled(before)
    found = [_compiled(after, parallel_order=order) for order in (iter, shuffled)]
    for values in sizes:
        expected = wanted(values)
        for runs in found:
            for want, have in zip(expected, runs(values), strict=True):
                np.testing.assert_array_equal(have, want, str(values))


def scheduled(before: PrimFuncOp, transform: Callable[[Schedule], object], sizes=SIZES) -> Schedule:
    """The schedule after `transform`, which must not change what `before` computes, nor must its replayed trace."""
    schedule = Schedule(before.clone())
    transform(schedule)
    check_same(before, schedule.func, sizes)
    again = Schedule(before.clone())
    schedule.trace.replay(again)
    assert str(again.func) == str(schedule.func)
    return schedule


def matmul(dtype: str = "i32", **bounds) -> PrimFuncOp:
    """`C = A @ B` with symbolic sizes."""
    a, b = te.placeholder((n, k), dtype, "A"), te.placeholder((k, m), dtype, "B")
    r = te.reduce_axis(k, "r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], r), name="C")
    return te.create_prim_func([a, b, c], name="matmul", bounds=bounds)


def elementwise() -> PrimFuncOp:
    """Two elementwise stages over an intermediate."""
    a = te.placeholder((n, m), "i32", "A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + 1, name="C")
    return te.create_prim_func([a, c], name="elementwise")


def row_sum(**bounds) -> PrimFuncOp:
    """Sums of rows."""
    a = te.placeholder((n, m), "i32", "A")
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: te.sum(a[i, r], r), name="B")
    return te.create_prim_func([a, b], name="row_sum", bounds=bounds)


def scan() -> PrimFuncOp:
    """Running sums of rows."""
    a = te.placeholder((n, m), "i32", "A")

    def body(b, ins, outs):
        (x,), (y,) = ins, outs
        with b.block("scan", ("spatial", n, "i"), ("scan", m, "j")) as (i, j):
            b.store(y, (i, j), te.if_then_else(j > 0, y[i, j - 1], 0) + x[i, j])

    (b,) = te.extern([((n, m), "i32")], [a], body, name="Y")
    return te.create_prim_func([a, b], name="scan")


def blur():
    """A stencil of a stencil: neighbours need the same elements."""
    x = te.placeholder((n + 4, m), "i32", "X")
    b = te.compute((n + 2, m), lambda i, j: x[i, j] + x[i + 1, j] + x[i + 2, j], name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + b[i + 1, j] + b[i + 2, j], name="C")
    return te.create_prim_func([x, c], name="blur")


def pools():
    """A pooling of a pooling."""
    a = te.placeholder((n + 4, m + 4), "i32", "A")
    r, q = te.reduce_axis(3, "r"), te.reduce_axis(3, "q")
    b = te.compute((n + 2, m + 2), lambda i, j: te.max(a[i + r, j + q], (r, q)), name="B")
    c = te.compute((n, m), lambda i, j: te.max(b[i + r, j + q], (r, q)), name="C")
    return te.create_prim_func([a, c], name="pools")


def home(sch, name):
    """The loop in which a buffer is allocated, `None` for the function."""
    op = next(op for op in sch.func.walk() if isinstance(op, AllocBufferOp) and op.buffer.name_hint == name)
    parent = op.parent_op()
    return parent.induction_var.name_hint if isinstance(parent, ForOp) else None
