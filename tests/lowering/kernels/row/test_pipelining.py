"""Software pipelining: rows that are finished while the next ones are begun."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.kernels.memory_bound import kernel
from tests.lowering.kernels.memory_bound_programs import arguments
from tests.lowering.tir_to_llvm.conftest import call, find
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect import te
from tir_dialect.analysis.dims import dim_of
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.target import Target


def ranges() -> PrimFuncOp:
    """Where numbers are between the least and the greatest of their row, which are needed at the end."""
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), "f32", "x")
    i, j = te.reduce_axis(n, "i"), te.reduce_axis(n, "j")
    low = te.compute((m,), lambda row: te.min(x[row, i], i), name="low")
    high = te.compute((m,), lambda row: te.max(x[row, j], j), name="high")
    y = te.compute((m, n), lambda row, place: (x[row, place] - low[row]) / (high[row] - low[row]), name="y")
    return te.create_prim_func([x, y], name="ranges")


def overlap(func: PrimFuncOp, machine: str) -> int:
    """Of how many elements of the result a loop writes at once, and reads two elements of the argument for each."""
    schedule(func, Target.parse(machine))
    x, y = func.params[0].name_hint, func.params[-1].name_hint
    lengths = [0]
    for loop in (op for op in func.walk() if isinstance(op, ForOp)):
        ops = list(loop.body.block.ops)
        loads = [op for op in ops if isinstance(op, LoadOp) and op.buffer.name_hint == x]
        stores = [op for op in ops if isinstance(op, StoreOp) and op.buffer.name_hint == y]
        if stores and len({load.indices[0] for load in loads}) == 2:
            lengths.append(dim_of(loop.upper).constant_value or 1)
    return max(lengths)


@pytest.mark.parametrize(
    ("name", "machine", "elements"),
    [
        ("layer norm", "x86-64-v3 cores=1", 2 * 8),  # of 16 registers 4 are for sums
        ("layer norm", "x86-64-v4 cores=1", 0),  # whose rows go by pairs
        ("rms norm", "x86-64-v3 cores=2", 4 * 8),
        ("group norm", "x86-64-v3 cores=1", 2 * 8),
        ("group norm", "x86-64-v4 cores=1", 4 * 16),
        ("softmax", "x86-64-v3 cores=1", 0),  # its exponentials take longer than memory
        ("layer norm", "x86-64-v2 cores=1", 0),  # ends of rows would take long
    ],
)
def test_light_passes_over_two_rows_are_one(name: str, machine: str, elements: int) -> None:
    assert overlap(kernel(name), machine) == elements


@pytest.mark.parametrize("name", ["layer norm", "rms norm"])
def test_any_number_of_rows(name: str) -> None:
    module = ModuleOp([kernel(name)])
    kernels, func = compile_prim_funcs(module, cache=NO_CACHE), find(module)
    for m, n in ((0, 300), (1, 300), (2, 1000), (3, 257), (5, 1003), (70, 515)):
        inputs, expected = arguments(name, m, n)
        memory = [Guarded(each, at_end=True) for each in (*inputs, np.full_like(expected, 77))]
        assert call(kernels, func, [each.array for each in memory], {"m": m, "n": n}) == 0
        np.testing.assert_allclose(memory[-1].array, expected, rtol=2e-5, atol=5e-6)
        for each in memory:
            each.release()


def test_what_the_next_row_overwrites_is_read_before() -> None:
    module = ModuleOp([ranges()])
    assert overlap(find(module).clone(), "x86-64-v3 cores=1")
    kernels, func = compile_prim_funcs(module, cache=NO_CACHE), find(module)
    for m, n in ((1, 40), (3, 300), (4, 1000)):
        x = np.random.default_rng(n).standard_normal((m, n), np.float32)
        got, low = np.zeros_like(x), x.min(1, keepdims=True)
        assert call(kernels, func, [x, got], {"m": m, "n": n}) == 0
        np.testing.assert_allclose(got, (x - low) / (x.max(1, keepdims=True) - low), rtol=1e-6)
