"""Unroll and jam: two rows at a time."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context

from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.kernels.memory_bound import kernel
from tests.lowering.kernels.memory_bound_programs import arguments
from tests.lowering.tir_to_llvm.conftest import find
from tir_dialect import te
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.target import Target

AVX2, AVX512 = "x86-64-v3 cores=1", "x86-64-v4 cores=1"


def rms_norm(columns: str) -> PrimFuncOp:
    module = parse_module(
        f"""relax.func @main[%m, %n](%x: !relax.tensor<[m, {columns}], f32>, %y: !relax.tensor<[{columns}], f32>)
          -> !relax.object {{
          %0 = relax.nn.rms_norm %x, %y axes = [-1]
          relax.return %0
        }}"""
    )
    LegalizeOpsPass().apply(Context(), module)
    return find(module)


def centred() -> PrimFuncOp:
    """Rows less their mean, times factors of columns, and the sum of their squares: a map and a sum in one pass."""
    m, n = te.var("m"), te.var("n")
    x, factors = te.placeholder((m, n), "f32", "x"), te.placeholder((n,), "f32", "factors")
    i, j = te.reduce_axis(n, "i"), te.reduce_axis(n, "j")
    total = te.compute((m,), lambda row: te.sum(x[row, i], i), name="total")
    y = te.compute((m, n), lambda row, place: (x[row, place] - total[row]) * factors[place], name="y")
    z = te.compute((m,), lambda row: te.sum(y[row, j] * y[row, j], j), name="z")
    return te.create_prim_func([x, factors, y, z], name="centred")


def pair_loops(func: PrimFuncOp, machine: str) -> list[ForOp]:
    schedule(func, Target.parse(machine))
    return [op for op in func.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "pair"]


@pytest.mark.parametrize(
    ("func", "machine", "by_pairs"),
    [
        (kernel("layer norm"), AVX512, True),
        (kernel("layer norm"), AVX2, False),  # too few registers
        (kernel("group norm"), AVX512, False),  # rows have no operand in common
        (kernel("softmax"), AVX512, False),  # which computes much
        (rms_norm("n"), AVX512, True),
        (rms_norm("4096"), AVX512, True),
        (rms_norm("768"), AVX512, False),
        (centred(), AVX512, False),  # lanes of a pass that writes and adds up are not known to be apart
    ],
)
def test_rows_that_share_operands_are_jammed(func: PrimFuncOp, machine: str, by_pairs: bool) -> None:
    assert bool(pair_loops(func.clone(), machine)) == by_pairs


def test_no_load_is_after_a_store_to_the_other_row() -> None:
    func = kernel("layer norm").clone()
    (pairs,) = pair_loops(func, AVX512)
    x, y = func.params[0].name_hint, func.params[-1].name_hint
    orders: list[str] = []
    for turn in (op for op in pairs.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "v"):
        accesses = [op for op in turn.walk() if isinstance(op, LoadOp | StoreOp) and op.buffer.name_hint in (x, y)]
        orders.append("".join("x" if isinstance(op, LoadOp) else "y" for op in accesses))
    assert orders.count("xxyyyy") == 1  # stores past the caches, and others
    assert orders.count("xy") == 1  # the row that is left


@pytest.mark.parametrize("name", ["layer norm", "rms norm"])
def test_pairs_and_a_row_that_is_left(name: str) -> None:
    func = kernel(name).clone()
    schedule(func, Target.parse("x86-64-v4 cores=2 task-percent=1"))
    for m, n in ((1, 300), (2, 257), (7, 270)):
        inputs, expected = arguments(name, m, n)
        given = [*inputs, np.full_like(expected, 77)]
        run_prim_func(func, given, {"m": m, "n": n})
        np.testing.assert_allclose(given[-1], expected, rtol=2e-5, atol=5e-6)
