"""Rows whose ends are copied from elsewhere: values, memory around buffers, and no gathers in the interior."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.emit.vector_loop import constant_of
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from relax_dialect.formulas import surrounded
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tests.support.tir import parse_prim_func
from tir_dialect import te
from tir_dialect.dims import symbol
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
WIDTHS = {
    "n": ((2, 3),),
    "m, n": ((1, 0), (0, 2)),
    "m, n, 3": ((0, 0), (40, 1), (0, 0)),
}


def function_of(mode: str, shape: str) -> PrimFuncOp:
    """The kernel of a padding."""
    symbols = ", ".join(f"%{name}" for name in shape.split(", ") if name.isalpha())
    widths = [width for pair in WIDTHS[shape] for width in pair]
    body = f'%y = relax.nn.pad %x pad_width = {widths} mode = "{mode}"\nrelax.return %y'
    return kernel_of_program(f"relax.func @main[{symbols}](%x: !relax.tensor<[{shape}], f32>) {{\n{body}\n}}")


@cache
def kernel_of(mode: str, shape: str) -> tuple[PrimFuncOp, Kernels]:
    """The function, and its code."""
    func = function_of(mode, shape)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", WIDTHS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (5, 16), (3, 50), (2, 70000)])
def test_values_and_memory(mode: str, shape: str, m: int, n: int) -> None:
    func, kernels = kernel_of(mode, shape)
    sizes = {name: size for name, size in (("m", m), ("n", n)) if name in func.symbol_names}
    x = np.random.default_rng(0).standard_normal(
        [extent.evaluate(sizes) for extent in func.params[0].type.shape], np.float32
    )
    expected = np.pad(x, WIDTHS[shape], mode=MODES[mode])
    for at_end in (True, False):
        data, result = Guarded(x, at_end), Guarded(np.full_like(expected, np.nan), at_end)
        assert call(kernels, func, [data.array, result.array], sizes) == 0
        np.testing.assert_array_equal(result.array, expected)
        data.release()
        result.release()


def test_the_interior_has_whole_vectors() -> None:
    func = function_of("reflect", "m, n")
    schedule(func, Target.parse("x86-64-v4"))
    vectors = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED]
    copies = [loop for loop in vectors if any(isinstance(op, LoadOp) for op in loop.walk())]
    assert len(copies) == 2  # whole vectors and the last one
    for loop in copies:
        assert constant_of(loop.upper) == 16, "lanes are those of the elements, not of the tables"
        assert len([op for op in loop.walk() if isinstance(op, LoadOp)]) == 1, "a table is read for each element"


def test_the_edges_have_no_conditions() -> None:
    func = function_of("replicate", "m, n")
    schedule(func, Target.parse("x86-64-v3 cores=1"))
    ends = [op for op in func.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "e"]
    assert len(ends) == 2
    assert not any(isinstance(op, IfOp) for loop in ends for op in loop.body.walk())
    assert [len([op for op in loop.body.walk() if isinstance(op, LoadOp)]) for loop in ends] == [
        2,
        2,
    ]  # position, element


EITHER = """
tir.prim_func @f[%n, %m](%I: !tir.buffer<[n], i64>, %X: !tir.buffer<[m], f32>, %Z: !tir.buffer<[n - m], f32>,
                         %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "f" (%v = spatial %i in %n) {
      %0 = arith.constant 0 : index
      %m_ = tir.dim m
      %c = arith.cmpi slt, %v, %m_ : index
      %y = tir.if %c -> (f32) {
        %a = tir.load %X[%v]
        %b = tir.load %X[%0]
        %s = arith.addf %a, %b : f32
        tir.yield %s
      } else {
        %j = tir.load %I[%v]
        %k = arith.index_cast %j : i64 to index
        %a = tir.load %Z[%k]
        %b = tir.load %Z[%0]
        %s = arith.addf %a, %b : f32
        tir.yield %s
      }
      tir.store %y, %Y[%v]
    }
  }
}
"""


@pytest.mark.parametrize(("n", "m"), [(5, 0), (5, 5), (70, 33), (0, 0)])
def test_an_empty_range_loads_nothing(n: int, m: int) -> None:
    func = parse_prim_func(EITHER)
    kernels = compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)
    indices, x, z = np.zeros(n, np.int64), np.arange(m, dtype=np.float32) + 1, np.arange(n - m, dtype=np.float32) + 50
    guarded = [Guarded(array, at_end=True) for array in (indices, x, z, np.zeros(n, np.float32))]
    assert call(kernels, func, [each.array for each in guarded], {"n": n, "m": m}) == 0
    np.testing.assert_array_equal(guarded[-1].array, [*(x + 1), *[100.0] * (n - m)])
    for each in guarded:
        each.release()


def test_threads_partition_the_rows_of_a_single_image() -> None:
    func = at_run_time("replicate")
    schedule(func, Target.parse("x86-64-v3 cores=2"))
    tasks = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL][-1].upper.owner
    assert isinstance(tasks, DimOp)
    for n, c, count in ((0, 64, 0), (1, 64, 2), (1, 1, 1), (2, 32, 2), (3, 30, 2), (65, 1, 2)):
        sizes = dict.fromkeys(func.symbol_names, 0) | {"N": n, "C": c, "H": 32, "W": 64}
        assert tasks.dim.evaluate(sizes) == count


def at_run_time(mode: str) -> PrimFuncOp:
    """The kernel of a padding whose widths are data: of `[n, c, h, w]` to `[N, C, H, W]`, where data ends at `e..`."""
    x = te.placeholder([symbol(name) for name in "nchw"], "f32", "x")
    shape, ends = [symbol(name) for name in "NCHW"], [symbol(f"e{name}") for name in "nchw"]
    before = [end - own for end, own in zip(ends, x.shape, strict=True)]
    return te.create_prim_func([x, surrounded(x, shape, before, mode, provable=True)], name="pad")


@cache
def kernel_at_run_time(mode: str) -> tuple[PrimFuncOp, Kernels]:
    func = at_run_time(mode)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 2, 3, 4), (3, 1, 2, 17), (1, 2, 5, 65), (1, 64, 33, 31)])
@pytest.mark.parametrize("widths", [(0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 1, 1, 0, 0, 1, 1), (1, 0, 0, 20, 0, 2, 7, 0)])
def test_widths_at_run_time(mode: str, shape: tuple[int, ...], widths: tuple[int, ...]) -> None:
    func, kernels = kernel_at_run_time(mode)
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    expected = np.pad(x, list(zip(widths[:4], widths[4:], strict=True)), mode=MODES[mode])
    sizes = dict(zip("nchwNCHW", (*shape, *expected.shape), strict=True))
    sizes |= {f"e{name}": own + width for name, own, width in zip("nchw", shape, widths[:4], strict=True)}
    for at_end in (True, False):
        data, result = Guarded(x, at_end), Guarded(np.full_like(expected, np.nan), at_end)
        assert call(kernels, func, [data.array, result.array], sizes) == 0
        np.testing.assert_array_equal(result.array, expected)
        data.release()
        result.release()


def test_elements_taken_away_from_an_edge() -> None:
    func, kernels = kernel_at_run_time("replicate")
    x, y = np.arange(30, dtype=np.float32).reshape(1, 1, 1, 30), np.zeros((1, 1, 2, 25), np.float32)
    sizes = {"n": 1, "c": 1, "h": 1, "w": 30, "N": 1, "C": 1, "H": 2, "W": 25, "en": 1, "ec": 1, "eh": 1, "ew": 23}
    assert call(kernels, func, [x, y], sizes) == 0
    np.testing.assert_array_equal(y[0, 0], [[*range(7, 30), 29, 29]] * 2)
