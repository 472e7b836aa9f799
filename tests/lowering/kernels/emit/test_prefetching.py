"""Which pass over a row prefetches the memory of other passes, and how much of it."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call, find
from tir_dialect import te
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.raw_memory import PrefetchOp
from tir_dialect.target import Target


def deviations(length: int | None = None) -> PrimFuncOp:
    """How far the numbers of a row are from its mean, added up."""
    m, n = te.var("m"), te.var("n") if length is None else length
    x = te.placeholder((m, n), "f32", "x")
    i, j = te.reduce_axis(n, "i"), te.reduce_axis(n, "j")
    count = te.const(float(length), "f32") if length else te.cast(te.cast(n, "index"), "f32")
    total = te.compute((m,), lambda row: te.sum(x[row, i], i), name="total")
    mean = te.compute((m,), lambda row: total[row] / count, name="mean")
    spread = te.compute((m,), lambda row: te.sum(te.abs(x[row, j] - mean[row]), j), name="spread")
    return te.create_prim_func([x, spread], name="deviations")


def prefetched(func: PrimFuncOp) -> list[tuple[str, Operation | None]]:
    """What is asked for in which loop, in order."""
    schedule(func, Target.parse("x86-64-v3 cores=1 l2-bytes=524288"))
    return [(op.buffer.name_hint or "", op.parent_op()) for op in func.walk() if isinstance(op, PrefetchOp)]


def test_the_second_reduction_of_a_row_prefetches_the_next_row() -> None:
    found = prefetched(deviations())
    # Of both versions of the loop, in blocks and without: a turn of four vectors has two lines, a vector that is left
    # half of one.
    assert [name for name, _ in found] == ["x"] * 6
    assert [found[first][1] is loop for first, (_, loop) in zip((0, 0, 2, 3, 3, 5), found, strict=True)] == [True] * 6
    assert len({id(loop) for _, loop in found}) == 4


@pytest.mark.parametrize(("length", "prefetches"), [(1000, True), (4096, True), (4104, False)])
def test_rows_that_would_be_evicted_are_not_prefetched(length: int, prefetches: bool) -> None:
    assert bool(prefetched(deviations(length))) == prefetches


def test_values_of_rows_that_are_prefetched_or_too_long() -> None:
    module = ModuleOp([deviations()])
    kernels, func = compile_prim_funcs(module, cache=NO_CACHE), find(module)
    for n in (1, 300, 4100):
        x, got = np.random.default_rng(n).standard_normal((3, n), np.float32) + 1, np.zeros(3, np.float32)
        assert call(kernels, func, [x, got], {"m": 3, "n": n}) == 0
        apart = x - x.mean(1, keepdims=True, dtype=np.float64)
        np.testing.assert_allclose(got, np.abs(apart).sum(1), rtol=1e-5, atol=1e-6)
