"""GEMV and GEMM with very small M or N, which read a matrix once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm_ffi import from_dlpack
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.math import FmaOp
from xdsl.utils.hints import isa

from lowering.kernels.emit.kernel import outside_modules
from lowering.kernels.gemm import gemv, small_n
from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import (
    DTYPES,
    LANES,
    SUMS,
    Sum,
    check_guarded,
    compiled,
    kernel,
    known,
    shifted,
)
from tir_dialect.codegen_hints import PLAIN_ADDRESSES
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.calls import ROUTINE
from tir_dialect.ops.control_flow import ForOp, LoopKind
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.raw_memory import MisalignmentOp, PrefetchOp
from tir_dialect.target import KIB, Target

pytestmark = pytest.mark.sampled(2)

MATRICES = ("mk,kn->mn", "mk,nk->mn")


@pytest.mark.parametrize("n", [0, 1, 3, 15, 16, 17, 63, 65, 130, 1030, 2100])
def test_one_row_and_any_number_of_columns(n: int) -> None:
    for k in (0, 1, 6, 7, 20):
        check_guarded(Sum("mk,kn->mn"), {"m": 1, "n": n, "k": k})


@pytest.mark.parametrize(("n", "is_split"), [(9, False), (16, False), (17, True)])
def test_rows_of_b_no_longer_than_a_vector_are_one(n: int, is_split: bool) -> None:
    """Else those before the first aligned position are a vector of their own."""
    func = kernel(known(1, 500, n))
    schedule(func, Target.parse("x86-64-v4 cores=1"))
    assert any(isinstance(op, MisalignmentOp) for op in func.walk()) == is_split


@pytest.mark.parametrize("shift", [0, 4, 9])
def test_short_rows_of_b_of_any_alignment(shift: int) -> None:
    for n in (1, 9, 16, 17):
        rng = np.random.default_rng(n)
        x, y = rng.standard_normal((1, 50), np.float32), shifted(rng.standard_normal((50, n), np.float32), shift)
        result = np.from_dlpack(compiled(Sum("mk,kn->mn").text)(*map(from_dlpack, (x, y))))
        np.testing.assert_allclose(result, x.astype("f8") @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_one_row_and_a_matrix_from_memory(dtype: str) -> None:
    """As on a machine with wide vectors whose last-level cache holds next to nothing."""
    target = replace(Target.host(), vector_bits=512, vector_registers=32, l3_bytes=4 * KIB)
    for k, n in ((6, 100), (7, 64), (15, 130), (22, 1031), (80, 33), (530, 7)):
        for case, m in (Sum("mk,kn->mn", dtype), 1), (Sum("mk,nk->mn", dtype), 1), (Sum("mk,nk->mn", dtype), 3):
            check_guarded(case, {"m": m, "n": n, "k": k}, target)
        check_guarded(Sum("mk,kn->mn", dtype), {"m": n, "n": 1, "k": k}, target)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_one_row_of_any_float(dtype: str) -> None:
    for n in (1, 33, 300):
        check_guarded(Sum("mk,kn->mn", dtype), {"m": 1, "n": n, "k": 37})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("subscripts", ["mk,nk->mn", "mk,kn->mn"])
def test_small_m_or_n_and_long_rows(subscripts: str, dtype: str) -> None:
    """The lines are whole vectors (512, 560), or not; there are some after whole vectors of results, or none."""
    for k in (512, 560, 563):
        for few, many in ((1, 1), (1, 16), (2, 17), (3, 40), (4, 40)):
            sizes = {"m": few, "n": many} if subscripts == "mk,nk->mn" else {"m": many, "n": few}
            check_guarded(Sum(subscripts, dtype), {**sizes, "k": k})


@pytest.mark.parametrize("shift", range(LANES))
@pytest.mark.parametrize("subscripts", MATRICES)
def test_matrices_may_begin_anywhere(subscripts: str, shift: int) -> None:
    case = Sum(subscripts)
    for m, k, n in ((1, 528, 20), (20, 528, 1), (1, 30, 2 * LANES), (1, 9, 5), (1, 20, 1040)):
        arrays = case.arrays({"m": m, "k": k, "n": n})
        result = compiled(case.text)(*[from_dlpack(shifted(array, shift)) for array in arrays])
        case.check(np.from_dlpack(result), arrays)


def test_what_is_not_there_is_not_multiplied() -> None:
    """Infinity times a zero in place of an element would be no number; blocks of columns meet at 1024 and so on."""
    x = np.ones((1, 30), np.float32)
    x[0, 3] = np.inf
    for n in (1000, 2100, 3072, 5000):
        result = compiled(Sum("mk,kn->mn").text)(*map(from_dlpack, (x, np.ones((30, n), np.float32))))
        assert np.isposinf(np.from_dlpack(result)).all()


def test_sums_of_bytes_in_one_row() -> None:
    text = """
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], i8>, %y: !relax.tensor<[k, n], i8>) -> !relax.object {
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}"""
    rng = np.random.default_rng(0)
    for k, n in ((1, 1), (700, 33), (2000, 1100)):
        x, y = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((1, k), (k, n)))
        result = compiled(text)(from_dlpack(x), from_dlpack(y))
        assert np.array_equal(np.from_dlpack(result), x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize("machine", ["x86-64-v4 cores=3", "x86-64-v3 cores=3", "neoverse-n1 cores=3"])
@pytest.mark.parametrize(
    ("name", "k", "n"), [("row vector", 30, 37), ("column vector", 512, 7), ("column vector", 70, 9)]
)
def test_tasks_of_several_threads(name: str, k: int, n: int, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter runs the tasks, of which there are some for small products here."""
    for module in (gemv, small_n):
        monkeypatch.setattr(module, "TASK_MACS", 1 << 8)
    case = SUMS[name]
    func = kernel(case.text)
    schedule(func, Target.parse(machine))
    assert any(isinstance(op, MisalignmentOp) for op in func.walk())
    arrays = case.arrays({"m": 1, "k": k, "n": n})
    result = np.full(case.expected(arrays).shape, np.nan, DTYPES[case.dtype])
    run_prim_func(func, [*arrays, result])
    case.check(result, arrays)


def test_sums_of_tasks_are_added_by_one_thread() -> None:
    """One row: threads meet once, and what follows the product is computed after that."""
    func = kernel(SUMS["row vector"].text)
    schedule(func, Target.parse("x86-64-v4 cores=4"))
    loops = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL]
    assert len(loops) == 1
    behind = [op.induction_var.name_hint for op in func.body.block.ops if isinstance(op, ForOp)]
    assert behind == ["task", "part", "v"]


@pytest.mark.parametrize(("machine", "lines", "vectors"), [("x86-64-v4", 1, 4), ("x86-64-v3", 4, 2)])
def test_long_rows_of_b_side_by_side(machine: str, lines: int, vectors: int) -> None:
    """One row after the other where a vector is a whole cache line; shorter vectors come from several rows."""
    func = kernel(SUMS["column vector"].text)
    schedule(func, Target.parse(machine))
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    (lines_of,) = [op for op in module.ops if isinstance(op, PrimFuncOp) and ".lines." in op.sym_name.data]
    groups = [op for op in lines_of.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "group"]
    assert [sum(isinstance(op, FmaOp) for op in group.walk()) for group in groups] == [lines * vectors]


def test_long_rows_of_b_leave_addresses_of_other_loops_alone() -> None:
    """Where they are no function of their own, and few: the hint is one for all of a kernel."""
    func = kernel(SUMS["bf16"].text)
    schedule(func, Target.parse("x86-64-v4"))
    groups = [op for op in func.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "group"]
    assert groups
    assert PLAIN_ADDRESSES not in str(func)


@pytest.mark.parametrize(("machine", "asked"), [("x86-64-v4", [28, 0]), ("x86-64-v3", [0])])
def test_rows_of_b_from_memory_are_prefetched(machine: str, asked: list[int]) -> None:
    """Seven lines of four vectors that are whole cache lines, in a loop beside that for a matrix in the cache."""
    func = kernel(SUMS["row vector"].text)
    with outside_modules() as routines:
        schedule(func, Target.parse(machine))
    (sums,) = [routine for name, routine in routines.items() if name.startswith(f"{ROUTINE}vector.")]
    groups = [op for op in sums.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "group"]
    assert [sum(isinstance(op, PrefetchOp) for op in group.walk()) for group in groups] == asked


@pytest.mark.parametrize(("machine", "vectors"), [("x86-64-v4", {64, 256}), ("x86-64-v3", {512, 256})])
def test_shorter_vectors_take_longer_blocks(machine: str, vectors: set[int]) -> None:
    """Blocks of a row's sums: a page of a matrix in the cache, else four; four of any where vectors are shorter.

    Where that is one number, half of it is a constant, too.
    """
    func = kernel(SUMS["row vector"].text)
    schedule(func, Target.parse(machine))
    divisors = {op.value.value.data for op in func.walk() if isinstance(op, ConstantOp) and isa(op.value, IntegerAttr)}
    assert divisors & {64, 256, 512} == vectors


def test_the_sums_of_a_row_are_a_routine() -> None:
    """One function for kernels of all sizes; where numbers are widened first, the kernel has the code itself."""
    for case, there in ((Sum("k,kn->n"), True), (Sum("k,kn->n", "f16"), False)):
        func = kernel(case.text)
        with outside_modules() as routines:
            schedule(func, Target.parse("x86-64-v3"))
        assert any(name.startswith(f"{ROUTINE}vector.") for name in routines) is there
        assert any(isinstance(op, FmaOp) for op in func.walk()) is not there
