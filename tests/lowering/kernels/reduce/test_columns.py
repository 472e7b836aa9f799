"""Reductions of columns that are wider than the registers: bands of rows, with the sums in the results in between."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.cost_model import SUM_BLOCK_STEPS
from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from tests.lowering.kernels.memory_bound import kernel
from tests.lowering.tir_to_llvm.conftest import call, find, parse
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine


@cache
def native(name: str) -> tuple[Kernels, PrimFuncOp]:
    func = kernel(name).clone()
    return compile_prim_funcs(ModuleOp([func]), Target.parse("host cores=1")), func


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize(
    ("m", "n"),
    [
        *((0, 300), (1, 129), (7, 300), (8, 128), (9, 257), (40, 131), (517, 1029)),
        *((3, 1), (40, 1), (1, 5), (2, 7), (9, 3), (100, 5), (33, 9), (5, 0)),
    ],
)
def test_columns_are_added_in_the_order_of_the_rows_in_blocks(m: int, n: int, at_end: bool) -> None:
    x = np.random.default_rng(m).standard_normal((m, n), np.float32)
    blocks = []
    for first in range(0, max(m, 1), SUM_BLOCK_STEPS):
        block = np.zeros(n, np.float32)
        for row in x[first : first + SUM_BLOCK_STEPS]:
            block += row
        blocks.append(block)
    expected = sum(blocks[1:], start=blocks[0])
    kernels, func = native("sum of columns")
    source, target = Guarded(x, at_end), Guarded(np.full(n, np.nan, np.float32), at_end)
    assert call(kernels, func, [source.array, target.array], {"m": m, "n": n}) == 0
    np.testing.assert_array_equal(target.array, expected)
    source.release()
    target.release()


def test_widths_that_are_known() -> None:
    """Blocks of several vectors, single vectors after them, and what is left."""
    widths = (33, 70, 100, 117, 150)
    functions = [
        f"relax.func @of{n}(%x: !relax.tensor<[9, {n}], f32>) -> !relax.object {{\n"
        "  %s = relax.sum %x axes = [0]\n  relax.return %s\n}"
        for n in widths
    ]
    machine = VirtualMachine(build(parse_module("\n".join(functions)), target=Target.parse("host cores=1")))
    for n in widths:
        x = np.random.default_rng(n).standard_normal((9, n), np.float32)
        np.testing.assert_allclose(np.from_dlpack(machine[f"of{n}"](x)), x.sum(0), rtol=1e-5, atol=1e-5)


COLUMNS = """
tir.prim_func @columns[%m, %n, %s](%X: !tir.buffer<[m * s + 1, n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%j, %r) in (%n, %m) {
    tir.block "sums" (%vj = spatial %j in %n, %vr = reduce %r in %m) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %Y[%vj]
      }
      %step = tir.dim s
      %end = tir.dim m * s
      ROW
      %y = tir.load %Y[%vj]
      %x = tir.load %X[%row, %vj]
      %z = arith.addf %y, %x : f32
      tir.store %z, %Y[%vj]
    }
  }
}"""
ROWS = {
    "forwards": "%row = arith.muli %vr, %step : index",
    "backwards": "%t = arith.muli %vr, %step : index\n      %row = arith.subi %end, %t : index",
}


@pytest.mark.parametrize(("machine", "beyond"), [("x86-64-v3 cores=1", True), ("x86-64-v4 cores=1", False)])
def test_lanes_without_a_column_read_the_next_rows(machine: str, beyond: bool) -> None:
    func = kernel("sum of columns").clone()
    schedule(func, Target.parse(machine))
    assert ("m + floordiv(-8, max(n, 1))" in str(func)) == beyond


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ROWS)
@pytest.mark.parametrize(("m", "n", "s"), [(40, 5, 1), (40, 5, 2), (9, 3, 0), (12, 13, 0), (30, 9, 3)])
def test_rows_in_any_order_and_distance(way: str, m: int, n: int, s: int) -> None:
    module = parse(COLUMNS.replace("ROW", ROWS[way]))
    func = find(module)
    kernels = compile_prim_funcs(module)
    x = np.random.default_rng(n).standard_normal((m * s + 1, n), np.float32)
    rows = [m * s - i * s if way == "backwards" else i * s for i in range(m)]
    for at_end in (True, False):
        source, target = Guarded(x, at_end), Guarded(np.full(n, np.nan, np.float32), at_end)
        assert call(kernels, func, [source.array, target.array], {"m": m, "n": n, "s": s}) == 0
        np.testing.assert_allclose(target.array, x[rows].sum(0), rtol=1e-5, atol=1e-5)
        source.release()
        target.release()
