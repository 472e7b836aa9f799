"""GEMM on dot-product groups, one artefact for all sizes: bytes are exact, whatever the signs; bf16 adds in f32."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.interpreter import compile_prim_func
from tir_dialect.ops.control_flow import ForOp, LoopKind
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.tile_registers import DotTilesOp
from tir_dialect.ops.vectors import DotOp
from tir_dialect.target import Target

DTYPES = {"i8": np.int8, "ui8": np.uint8}
PAIRS = [(left, right) for left in DTYPES for right in DTYPES]
SIZES = [(1, 1, 2), (3, 5, 7), (0, 4, 4), (4, 0, 5), (17, 131, 65), (15, 64, 32)]
PRODUCT = """
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], LEFT>, %y: !relax.tensor<[k, n], RIGHT>) {
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}"""
TRANSPOSED = """
tir.prim_func @product[%m, %k, %n](%X: !tir.buffer<[m, k], LEFT>, %Y: !tir.buffer<[n, k], RIGHT>,
                                   %Z: !tir.buffer<[m, n], i32>) {
  tir.for (%i, %j, %r) in (%m, %n, %k) {
    tir.block "product" (%vi = spatial %i in %m, %vj = spatial %j in %n, %vr = reduce %r in %k) {
      tir.init {
        %zero = arith.constant 0 : i32
        tir.store %zero, %Z[%vi, %vj]
      }
      %z = tir.load %Z[%vi, %vj]
      %x = tir.load %X[%vi, %vr]
      %y = tir.load %Y[%vj, %vr]
      %a = arith.extsi %x : i8 to i32
      %b = arith.extsi %y : i8 to i32
      %p = arith.muli %a, %b : i32
      %s = arith.addi %z, %p : i32
      tir.store %s, %Z[%vi, %vj]
    }
  }
}"""


def function(text: str, left: str, right: str) -> PrimFuncOp:
    return kernel_of_program(text.replace("LEFT", left).replace("RIGHT", right))


@cache
def kernels_of(text: str, left: str, right: str) -> tuple[PrimFuncOp, Kernels]:
    func = function(text, left, right)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)


def arrays(left: str, right: str, sizes: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands of the least and the greatest numbers, and their product."""
    rng, (m, k, n) = np.random.default_rng(0), sizes
    ends = [
        np.array([np.iinfo(DTYPES[each]).min, np.iinfo(DTYPES[each]).max, 3], DTYPES[each]) for each in (left, right)
    ]
    x, y = rng.choice(ends[0], (m, k)), rng.choice(ends[1], (k, n))
    return x, y, x.astype(np.int32) @ y.astype(np.int32)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("text", "left", "right"), [*((PRODUCT, *pair) for pair in PAIRS), (TRANSPOSED, "i8", "i8")])
def test_values_and_bounds(text: str, left: str, right: str) -> None:
    func, kernels = kernels_of(text, left, right)
    for m, k, n in SIZES:
        x, y, expected = arrays(left, right, (m, k, n))
        y = np.ascontiguousarray(y.T) if text == TRANSPOSED else y
        for at_end in (True, False):
            guarded = [Guarded(each, at_end) for each in (x, y, np.zeros_like(expected))]
            assert call(kernels, func, [each.array for each in guarded], {"m": m, "k": k, "n": n}) == 0
            np.testing.assert_array_equal(guarded[2].array, expected)
            for each in guarded:
                each.release()


SHARED = "host cores=5 task-percent=1"
"""A task for each twenty thousand products."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", [SHARED, f"{SHARED} l2-bytes=4096", f"{SHARED} l2-bytes=4096 l3-bytes=20000"])
def test_tasks_have_tiles_side_by_side(machine: str) -> None:
    """Of panels or of strips of rows, in one block or several; columns are packed once or for each block."""
    func = function(PRODUCT, "i8", "i8")
    kernels = compile_prim_funcs(ModuleOp([func.clone()]), Target.parse(machine), cache=NO_CACHE)
    for m, k, n in [(57, 30, 64), (14, 9, 700), (15, 200, 33), (730, 31, 33), (260, 40, 70), (0, 4, 4), (3, 5, 7)]:
        x, y, expected = arrays("i8", "i8", (m, k, n))
        guarded = [Guarded(each, True) for each in (x, y, np.zeros_like(expected))]
        assert call(kernels, func, [each.array for each in guarded], {"m": m, "k": k, "n": n}) == 0
        np.testing.assert_array_equal(guarded[2].array, expected)
        for each in guarded:
            each.release()


def test_threads_meet_once() -> None:
    """Rows and columns are packed by the tasks that use them, in the one loop that threads share."""
    func = function(PRODUCT, "i8", "i8")
    schedule(func, Target.parse("znver4 cores=2"))
    assert len([op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL]) == 1


def used(func: PrimFuncOp) -> set[type[Operation]]:
    """The ops for dot products of groups."""
    return {type(op) for op in func.walk() if isinstance(op, DotOp | DotTilesOp)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("machine", "ops"),
    [
        ("sapphirerapids", {DotTilesOp, DotOp}),  # the latter for small M
        ("sapphirerapids features=-amx-int8", {DotOp}),
        ("alderlake cores=2", {DotOp}),
        ("haswell", {DotOp}),  # of 16 bits
        ("x86-64-v2", set[type[Operation]]()),
    ],
)
def test_machines_agree(machine: str, ops: set[type[Operation]]) -> None:
    func = function(PRODUCT, "i8", "i8")
    schedule(func, Target.parse(machine))
    assert used(func) == ops
    run = compile_prim_func(func)
    for m, k, n in ((1, 3, 2), (16, 9, 33), (33, 64, 2), (3, 70, 34)):
        x, y, expected = arrays("i8", "i8", (m, k, n))
        result = np.zeros_like(expected)
        run([x, y, result])
        np.testing.assert_array_equal(result, expected)


FLOATS = """
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], bf16>, %y: !relax.tensor<[k, n], bf16>) {
  %0 = relax.matmul %x, %y out_dtype = f32
  relax.return %0
}"""


def floats(sizes: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands, an infinity and a NaN among the rows, and their product."""
    rng, (m, k, n) = np.random.default_rng(0), sizes
    x, y = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    if m > 2 and k:
        x[1, -1], x[2, 0] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        return x, y, x.astype(np.float32) @ y.astype(np.float32)


def test_floats_and_their_bounds() -> None:
    """What lies after a row of odd length, here infinities of the call before, is not multiplied."""
    func = kernel_of_program(FLOATS)
    kernels = compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)
    infinite = np.full((33, 64), np.inf, ml_dtypes.bfloat16)
    assert (
        call(kernels, func, [infinite, infinite.T.copy(), np.zeros((33, 33), np.float32)], {"m": 33, "k": 64, "n": 33})
        == 0
    )
    for m, k, n in [(33, 63, 70), *SIZES, (2, 33, 40), (5, 1, 3)]:
        x, y, expected = floats((m, k, n))
        for at_end in (True, False):
            guarded = [Guarded(each, at_end) for each in (x, y, np.zeros_like(expected))]
            assert call(kernels, func, [each.array for each in guarded], {"m": m, "k": k, "n": n}) == 0
            np.testing.assert_allclose(guarded[2].array, expected, rtol=1e-5, atol=1e-5)
            for each in guarded:
                each.release()


@pytest.mark.parametrize(
    ("machine", "ops"),
    [("znver4", {DotOp}), ("sapphirerapids cores=2", {DotTilesOp}), ("znver3", set[type[Operation]]())],
)
def test_machines_agree_on_floats(machine: str, ops: set[type[Operation]]) -> None:
    func = kernel_of_program(FLOATS)
    schedule(func, Target.parse(machine))
    assert used(func) == ops
    run = compile_prim_func(func)
    for sizes in ((2, 5, 3), (16, 9, 33), (15, 1, 65)):
        x, y, expected = floats(sizes)
        result = np.zeros_like(expected)
        with np.errstate(invalid="ignore"):
            run([x, y, result])
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
