"""Chains over short rows, which go in blocks of as many as a vector has lanes."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from xdsl.context import Context

from lowering import build
from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.kernels.memory_bound import native_kernel
from tests.lowering.kernels.memory_bound_programs import PROGRAMS, arguments
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

SHARES = """
relax.func @main[%m, %n](%x: !relax.tensor<[m, n], f32>) -> !relax.object {
  %0 = relax.sum %x axes = [1] keepdims
  %1 = relax.divide %x, %0
  relax.return %1
}
"""


@cache
def compiled(text: str):
    return VirtualMachine(build(parse_module(text)))["main"]


def scheduled(shape: str, machine: str = "x86-64-v4 cores=1", op: str = "relax.nn.softmax %x") -> str:
    text = f"relax.func @main[%m, %n](%x: !relax.tensor<[{shape}], f32>) -> !relax.object {{\n"
    module = parse_module(f"{text}  %0 = {op}\n  relax.return %0\n}}")
    LegalizeOpsPass().apply(Context(), module)
    func = next(op for op in module.ops if isinstance(op, PrimFuncOp))
    schedule(func, Target.parse(machine))
    return str(func)


@pytest.mark.parametrize(
    ("shape", "in_blocks", "alone"),
    [
        ("m, n", True, True),
        ("100, 64", True, False),
        ("2, 100, 10", True, False),
        ("m, 64", True, True),
        ("m, 1000", False, True),
        ("4, n", False, True),
    ],
)
def test_rows_are_blocked_if_they_are_short_and_many(shape: str, in_blocks: bool, alone: bool) -> None:
    text = scheduled(shape)
    assert ("(%block" in text) == in_blocks
    assert ("tir.prefetch" in text) == alone  # where the next row is asked for


@pytest.mark.parametrize("machine", ["x86-64-v3 cores=1", "x86-64-v4 cores=2"])
def test_accumulators_are_folded_into_one_vector(machine: str) -> None:
    lanes = Target.parse(machine).lanes(32)
    # For the greatest elements and for the sums, a tree of pairs.
    assert scheduled("100, 64", machine).count("vector.shuffle") == 2 * 2 * (lanes - 1)


@pytest.mark.parametrize(("rows", "tasks"), [(512, 1), (4096, 2)])
def test_the_ends_of_rows_are_work_too(rows: int, tasks: int) -> None:
    text = scheduled(f"{rows}, 7", "x86-64-v4 cores=2", "relax.max %x axes = [1]")
    assert text.count("tir.for parallel") == tasks - 1


def test_exponentials_are_work_where_they_are_not_stored() -> None:
    text = scheduled("4096, 10", "x86-64-v3 cores=2", "relax.nn.log_softmax %x")
    assert text.count("tir.for parallel") == 1


@pytest.mark.parametrize(("machine", "stores"), [("x86-64-v3 cores=2", 4), ("x86-64-v4 cores=2", 3)])
def test_the_end_of_a_row_needs_no_mask_where_the_next_one_comes(machine: str, stores: int) -> None:
    text = scheduled("m, n", machine, "relax.cumsum %x axis = 1")
    assert len(re.findall(r"tir.store .*%cumsum", text)) == stores
    # The last rows of a thread's part are followed by those of another thread.
    assert len(re.findall(r"tir.store .*%cumsum.* mask", text)) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["softmax", "log softmax", "layer norm", "rms norm", "running sums"])
@pytest.mark.parametrize("m", [1, 7, 8, 15, 16, 17, 40])
def test_any_number_of_rows_of_any_length(name: str, m: int) -> None:
    kernels, func = native_kernel(name)
    for n in (1, 2, 15, 16, 17, 64, 100, 255, 256, 257):
        inputs, expected = arguments(name, m, n)
        for at_end in (True, False):
            guarded = [Guarded(np.ascontiguousarray(each), at_end) for each in (*inputs, np.zeros_like(expected))]
            assert call(kernels, func, [each.array for each in guarded], {"m": m, "n": n}) == 0
            np.testing.assert_allclose(guarded[-1].array, expected, rtol=3e-5, atol=3e-6)
            for each in guarded:
                each.release()


def test_rows_of_a_block_keep_their_special_numbers_to_themselves() -> None:
    (x,), _ = arguments("softmax", 37, 19)
    x[3, 5], x[16, 0], x[20, 18], x[36, 18] = np.nan, -np.inf, 1e38, -np.nan
    expected = PROGRAMS["softmax"].numpy(x)
    got = np.from_dlpack(compiled(PROGRAMS["softmax"].text)(x))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-38)
    assert np.isnan(got).any(axis=1).nonzero()[0].tolist() == [3, 36]


def test_what_has_no_normal_reciprocal_is_divided_by() -> None:
    x = np.random.default_rng(0).random((40, 21), np.float32) + 1
    x[7] *= np.float32(1e-39)
    x[23] *= np.float32(1e37)
    got = np.from_dlpack(compiled(SHARES)(x))
    np.testing.assert_allclose(got, x / x.sum(1, keepdims=True), rtol=1e-6)


def test_rows_without_elements() -> None:
    assert np.from_dlpack(compiled(SHARES)(np.zeros((20, 0), np.float32))).shape == (20, 0)
    assert np.from_dlpack(compiled(SHARES)(np.zeros((0, 20), np.float32))).shape == (0, 20)


PICTURE = """
relax.func @main[%m, %n](%x: !relax.tensor<[1, 64, m, n], f32>, %y: !relax.tensor<[64], f32>) -> !relax.object {
  %0 = relax.nn.instance_norm %x, %y, %y channel_axis = 1 axes = [2, 3]
  relax.return %0
}
"""


def test_threads_share_the_first_axis_with_several_values() -> None:
    module = parse_module(PICTURE)
    LegalizeOpsPass().apply(Context(), module)
    func = next(op for op in module.ops if isinstance(op, PrimFuncOp))
    schedule(func, Target.parse("x86-64-v3 cores=2"))
    assert str(func).count("tir.for parallel") == 1
    x = np.random.default_rng(0).standard_normal((1, 64, 40, 41), np.float32)
    y = np.random.default_rng(1).standard_normal(64, np.float32)
    scaled = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    expected = scaled * y[:, None, None] + y[:, None, None]
    np.testing.assert_allclose(np.from_dlpack(compiled(PICTURE)(x, y)), expected, rtol=1e-4, atol=1e-5)
