"""Pooling: what is known about most windows is not computed, and rows are stored whole."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.dialects import arith

from lowering.kernels.emit.vector_loop import constant_of
from lowering.kernels.schedule_cpu import schedule
from tests.support.kernels import kernel_of_program
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.control_flow import ForOp, IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

TARGET = Target.parse("x86-64-v3")


def kernel_of(pooling: str) -> PrimFuncOp:
    return kernel_of_program(
        f"relax.func @main[%m, %n](%x: !relax.tensor<[2, m, n], f32>) {{\n%y = relax.nn.{pooling}\nrelax.return %y\n}}"
    )


@pytest.mark.parametrize("strides", [1, 2])
def test_windows_are_counted_at_the_edges_only(strides: int) -> None:
    func = kernel_of(f"avg_pool1d %x pool_size = [3] strides = [{strides}] padding = [1, 1]")
    schedule(func, TARGET)
    vectors = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED]
    quotients = [loop for loop in vectors if any(isinstance(op, arith.DivfOp) for op in loop.walk())]
    assert quotients
    for loop in quotients:
        assert constant_of(loop.upper) == 8, "lanes are those of the elements, not of their numbers"
        assert not any(
            isinstance(op, arith.MinSIOp | arith.MaxSIOp) and op.result.type.name == "index" for op in loop.walk()
        )


@pytest.mark.parametrize("settings", ["", "padding = [2, 2] count_include_pad"])
def test_whole_windows_have_a_known_number_of_elements(settings: str) -> None:
    func = kernel_of(f"avg_pool1d %x pool_size = [3] {settings}")
    (quotient,) = (op for op in func.walk() if isinstance(op, arith.DivfOp))
    divisor = quotient.rhs.owner
    while isinstance(divisor, arith.SIToFPOp | arith.MaxSIOp | arith.IndexCastOp):
        divisor = divisor.operands[0].owner
    assert isinstance(divisor, arith.ConstantOp)


@pytest.mark.parametrize(("height", "window"), [(1, 1), (3, 3)])
def test_planes_of_windows_that_follow_each_other(height: int, window: int) -> None:
    """Where windows are as high as the data, their lines are evenly apart across planes."""
    func = kernel_of_program(
        f"relax.func @main[%n](%x: !relax.tensor<[1, 2, 7, {height}, n], f32>) {{\n"
        f"%y = relax.nn.max_pool3d %x pool_size = [4, {window}, 2]\nrelax.return %y\n}}"
    )
    schedule(func, TARGET)
    x = np.random.default_rng(0).permutation(14 * height * 9).astype("f4").reshape(1, 2, 7, height, 9)
    result = np.zeros((1, 2, 4, 1, 8), np.float32)
    run_prim_func(func, [x, result])
    np.testing.assert_array_equal(result, sliding_window_view(x, (4, window, 2), (2, 3, 4)).max((-3, -2, -1)))


def test_a_row_of_windows_is_stored_without_masks() -> None:
    """A store under a mask has to reach the cache before the row is loaded."""
    func = kernel_of("max_pool1d %x pool_size = [3] padding = [1, 1]")
    schedule(func, TARGET)
    stores = [op for op in func.walk() if isinstance(op, StoreOp) and op.buffer.name_hint == "row"]
    assert stores
    assert not any(isinstance(store.parent_op(), IfOp) for store in stores)


@pytest.mark.parametrize("pooling", ["max_pool2d %x pool_size = [5, 5]", "avg_pool2d %x pool_size = [4, 4]"])
def test_large_windows_have_lanes_along_the_results(pooling: str) -> None:
    """One result takes a vector of which half is not used, but a row of them one step for each side of the window."""
    func = kernel_of_program(
        f"relax.func @main[%m, %n](%x: !relax.tensor<[1, 2, m, n], f32>) {{\n"
        f"%y = relax.nn.{pooling} strides = [2, 2]\nrelax.return %y\n}}"
    )
    schedule(func, TARGET)
    assert any(isinstance(op, StoreOp) and op.buffer.name_hint == "row" for op in func.walk())


def test_short_rows_of_windows_are_work_as_well() -> None:
    """1,024 rows of four results are too few additions for two threads, but take as long as twice as many."""
    func = kernel_of_program(
        "relax.func @main(%x: !relax.tensor<[1, 256, 13, 13], f32>) {\n"
        "%y = relax.nn.max_pool2d %x pool_size = [3, 3] strides = [3, 3]\nrelax.return %y\n}"
    )
    schedule(func, Target.parse("x86-64-v3 cores=2"))
    assert any(isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL for op in func.walk())
