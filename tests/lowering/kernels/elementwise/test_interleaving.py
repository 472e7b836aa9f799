"""Copies that interleave or deinterleave a few components; rows may have any strides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from tests.lowering.tir_to_llvm.conftest import call, parse, run_both
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.programs import run_pipeline
from tests.support.sweeps import in_turn
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

ROWS = """
tir.prim_func @rows[%m, %n, %k](%X: !tir.buffer<[m, n], f32>, %I: !tir.buffer<[k], i64>,
                                %Y: !tir.buffer<[k, 2 * n], f32>) {
  %c2 = arith.constant 2 : index
  tir.for (%i, %j, %l) in (%k, %n, %c2) {
    tir.block "twice" (%vi = spatial %i in %k, %vj = spatial %j in %n, %vl = spatial %l in %c2) {
      %row = tir.load %I[%vi]
      %r = arith.index_cast %row : i64 to index
      %x = tir.load %X[%r, %vj]
      %two = arith.constant 2 : index
      %a = arith.muli %vj, %two : index
      %b = arith.addi %a, %vl : index
      tir.store %x, %Y[%vi, %b]
    }
  }
}"""
COLUMNS = ROWS.replace("%X[%r, %vj]", "%X[%vi, %r]").replace("%I[%vi]", "%I[%vj]").replace("<[k], i64>", "<[n], i64>")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", [ROWS, COLUMNS])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 1, 3), (4, 16, 4), (5, 37, 5), (2, 0, 2)])
def test_values(text: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    length = k if text is ROWS else n
    indices = rng.integers(0, m if text is ROWS else max(n, 1), length)
    arguments = [rng.standard_normal((m, n), np.float32), indices, np.zeros((k, 2 * n), np.float32)]
    native, interpreted = run_both(text, arguments, {"m": m, "n": n, "k": k})
    np.testing.assert_array_equal(native[2], interpreted[2])


def test_rows_are_read_in_vectors() -> None:
    (func,) = parse(ROWS).ops
    schedule(func, Target.parse("x86-64-v4"))
    assert any(isinstance(op, LoadOp) and op.lanes == 16 for op in func.walk())
    (func,) = parse(COLUMNS).ops
    schedule(func, Target.parse("x86-64-v4"))
    assert not any(isinstance(op, LoadOp) and op.lanes for op in func.walk()), "neighbours come from anywhere"
    assert any(isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED for op in func.walk())


TURNED = """
relax.func @main[SYMBOLS](%x: !relax.tensor<[DIMS], DTYPE>) {
  %0 = relax.permute_dims %x axes = [0, 2, 1]
  relax.return %0
}
"""
TYPES = {"f32": np.float32, "ui8": np.uint8, "f64": np.float64}


def turned(dims: str, dtype: str = "f32") -> PrimFuncOp:
    """A change of the order of the last two dimensions."""
    symbols = ", ".join(f"%{each}" for each in dims.split(", ") if each.isalpha())
    module = parse_module(TURNED.replace("SYMBOLS", symbols).replace("DIMS", dims).replace("DTYPE", dtype))
    run_pipeline(module, "legalize-ops,fuse-ops,fuse-tir")
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    return func.clone()


CHANNELS = [f"{side} {count}" for side in ("LAST", "FIRST") for count in range(2, 9)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("channels", "dtype"), in_turn(CHANNELS, list(TYPES)))
def test_adjacent_channels(channels: str, dtype: str) -> None:
    """A picture's channels become planes, or planes become channels, whatever the number of pixels, within memory."""
    side, count = channels.split()
    check_turned(turned(f"b, n, {count}" if side == "LAST" else f"b, {count}, n", dtype), side, [int(count)], dtype)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("side", ["LAST", "FIRST"])
def test_how_many_channels_there_are_may_be_known_to_the_call_only(side: str, dtype: str) -> None:
    dims = ("b, n, c") if side == "LAST" else ("b, c, n")
    check_turned(turned(dims, dtype), side, range(6), dtype)


def check_turned(func: PrimFuncOp, side: str, counts: Sequence[int], dtype: str) -> None:
    kernels = compile_prim_funcs(ModuleOp([func]))
    for n, count in product((0, 1, 7, 15, 16, 17, 31, 100, 40_007), counts):
        b = 1 if n > 100 else 2  # threads share one picture
        shape = (b, n, count) if side == "LAST" else (b, count, n)
        x = np.arange(b * n * count).reshape(shape).astype(TYPES[dtype])
        y = np.zeros((b, shape[2], shape[1]), TYPES[dtype])
        for at_end in (True, False):
            guarded = [Guarded(array, at_end) for array in (x, y)]
            assert call(kernels, func, [each.array for each in guarded], {"b": b, "n": n, "c": count}) == 0
            np.testing.assert_array_equal(guarded[1].array, x.transpose(0, 2, 1))
            for each in guarded:
                each.release()


@pytest.mark.parametrize(("dims", "loads"), [("b, n, 3", 3), ("b, 8, n", 8), ("b, n, c", 18), ("b, n, 40", 0)])
def test_each_element_is_read_once(dims: str, loads: int) -> None:
    """Vectors side by side hold all lines; unknown numbers of lines, of either dimension, have code for 2, 3 and 4."""
    func = turned(dims)
    schedule(func, Target.parse("x86-64-v4 cores=1"))
    vectors = [op for op in func.walk() if isinstance(op, LoadOp) and op.lanes == 16 and op.mask is None]
    loops = [op.parent_op() for op in vectors]
    assert sum(isinstance(loop, ForOp) and loop.induction_var.name_hint == "v" for loop in loops) == loads


@pytest.mark.parametrize("dims", ["b, n, 3", "b, n, 64"])
@pytest.mark.parametrize(("b", "n", "tasks"), [(1, 100_000, 2), (2, 100_000, 2), (8, 10_000, 2), (1, 10, 1)])
def test_threads_partition_one_image(dims: str, b: int, n: int, tasks: int) -> None:
    func = turned(dims)
    schedule(func, Target.parse("x86-64-v4 cores=2"))
    (loop,) = (op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL)
    assert isinstance(loop.upper.owner, DimOp)
    assert loop.upper.owner.dim.evaluate({"b": b, "n": n}) == tasks
