"""The code of pooling: what is known of most windows is not computed, and rows are stored whole."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith

from lowering.schedule.cpu.memory.sweep import constant_of
from lowering.schedule.schedule_cpu import schedule
from tests.support.kernels import kernel_of_program
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

TARGET = Target.parse("x86-64-v3")


def kernel_of(pooling: str) -> PrimFuncOp:
    return kernel_of_program(
        f"relax.func @main[%m, %n](%x: !relax.tensor<[2, m, n], f32>) {{\n%y = relax.nn.{pooling}\nrelax.return %y\n}}"
    )


@pytest.mark.parametrize("strides", [1, 2])
def test_windows_are_counted_at_the_border_only(strides: int) -> None:
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


def test_a_row_of_windows_is_stored_without_masks() -> None:
    """A store under a mask has to reach the cache before the row is loaded."""
    func = kernel_of("max_pool1d %x pool_size = [3] padding = [1, 1]")
    schedule(func, TARGET)
    stores = [op for op in func.walk() if isinstance(op, StoreOp) and op.buffer.name_hint == "row"]
    assert stores
    assert not any(isinstance(store.parent_op(), IfOp) for store in stores)
