"""GEMM with two to sixteen rows: B has long rows, or is transposed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm_ffi import from_dlpack
from xdsl.dialects.math import FmaOp

from lowering.kernels.emit.kernel import outside_modules
from lowering.kernels.gemm import small_m
from lowering.kernels.schedule_cpu import schedule
from lowering.parsing import parse_module
from lowering.relax.memory.plan_memory import memory_report
from tests.lowering.kernels.gemm.support import LANES, Sum, check_guarded, compiled, kernel, known, shifted
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.calls import ROUTINE
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.raw_memory import MisalignmentOp, PrefetchOp
from tir_dialect.target import KIB, Target

pytestmark = pytest.mark.sampled(2)

PRODUCT = Sum("mk,kn->mn")
TARGET, WIDE = Target.parse("x86-64-v3 cores=1"), Target.parse("x86-64-v4 cores=1")


def routines(text: str, target: Target = TARGET) -> dict[str, PrimFuncOp]:
    """The routines for small M that a kernel calls."""
    with outside_modules() as found:
        schedule(kernel(text), target)
    return {name: function for name, function in found.items() if name.startswith(f"{ROUTINE}rows.")}


@pytest.mark.parametrize("n", [63, 64, 65, 71, 79, 130, 1031])
def test_any_number_of_rows_and_columns(n: int) -> None:
    for m, k in ((2, 0), (2, 5), (3, 1), (4, 8), (5, 7), (7, 3), (9, 70), (3, 100), (16, 6), (17, 6)):
        check_guarded(PRODUCT, {"m": m, "n": n, "k": k})


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_wide_vectors_from_memory_and_nearby(dtype: str) -> None:
    """With a last-level cache that holds some of the matrices only; each host has such vectors, if as several."""
    target = replace(Target.host(), vector_bits=512, vector_registers=32, l3_bytes=32 * KIB)
    for m, k, n in (
        (2, 96, 72),
        (3, 97, 1031),
        (4, 99, 160),
        (5, 98, 300),
        (7, 130, 577),
        (8, 98, 513),
        (16, 102, 1200),
    ):
        check_guarded(Sum("mk,kn->mn", dtype), {"m": m, "n": n, "k": k}, target)


@pytest.mark.parametrize(
    ("subscripts", "dtype"), [("mk,kn->mn", "f64"), ("km,kn->mn", "f32"), ("bmk,bkn->bmn", "f32"), ("mk,kn->nm", "f32")]
)
def test_other_types_and_layouts(subscripts: str, dtype: str) -> None:
    check_guarded(Sum(subscripts, dtype), {"b": 2, "m": 6, "n": 77, "k": 18})


@pytest.mark.parametrize("shift", range(LANES))
def test_matrices_may_begin_anywhere(shift: int) -> None:
    for m, k, n in ((2, 5, 64), (5, 9, 200), (8, 4, 67), (2, 97, 75)):
        arrays = PRODUCT.arrays({"m": m, "k": k, "n": n})
        result = compiled(PRODUCT.text)(*[from_dlpack(shifted(array, shift)) for array in arrays])
        PRODUCT.check(np.from_dlpack(result), arrays)


@pytest.mark.parametrize("shift", range(LANES))
def test_columns_along_k_may_begin_anywhere(shift: int) -> None:
    case = Sum("mk,nk->mn")
    for m, k, n in ((2, 528, 20), (3, 512, 5), (5, 544, 33)):
        arrays = case.arrays({"m": m, "k": k, "n": n})
        result = compiled(case.text)(*[from_dlpack(shifted(array, shift)) for array in arrays])
        case.check(np.from_dlpack(result), arrays)


def test_what_follows_is_computed_once_for_each_column() -> None:
    """Vectors at both ends begin early to be whole; results go to where what is added lies, so twice would show."""
    text = """
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], f32>, %y: !relax.tensor<[k, n], f32>,
    %z: !relax.tensor<[m, n], f32>) -> !relax.object {
  %0 = relax.cumsum %z axis = 0
  %1 = relax.matmul %x, %y
  %2 = relax.add %1, %0
  %3 = relax.cumsum %2 axis = 0
  relax.return %3
}"""
    assert memory_report(parse_module(text))["main"].reused == 1
    rng = np.random.default_rng(0)
    for shift, n in ((0, 67), (3, 64), (3, 67)):
        x, y, z = (shifted(rng.random(shape, np.float32), shift) for shape in ((3, 5), (5, n), (3, n)))
        result = np.from_dlpack(compiled(text)(*map(from_dlpack, (x, y, z))))
        np.testing.assert_allclose(result, (x @ y + z.cumsum(0)).cumsum(0), rtol=1e-4, atol=1e-4)


def test_what_is_not_there_is_not_multiplied() -> None:
    """Infinity times a zero in place of an element would be no number."""
    x, expected = np.ones((6, 7), np.float32), np.full((6, 99), 7, np.float32)
    x[0, 3], x[5, 6], expected[0], expected[5] = (np.inf,) * 4
    result = compiled(PRODUCT.text)(*map(from_dlpack, (x, np.ones((7, 99), np.float32))))
    np.testing.assert_array_equal(np.from_dlpack(result), expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("m", "n", "machine"),
    [(2, 200, "x86-64-v3"), (5, 131, "x86-64-v3"), (16, 64, "x86-64-v3"), (2, 200, "x86-64-v4"), (9, 340, "x86-64-v4")],
)
def test_blocks_of_several_tasks(m: int, n: int, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine whose second level holds few sums; the interpreter runs the tasks."""
    monkeypatch.setattr(small_m, "TASK_MACS", 1 << 8)
    monkeypatch.setattr(small_m, "SMALL_M_MIN_K", 1)
    for text in (PRODUCT.text, known(m, 6, n)):
        func = kernel(text)
        schedule(func, replace(Target.parse(f"{machine} cores=3"), l2_bytes=4 * KIB))
        arrays = PRODUCT.arrays({"m": m, "k": 6, "n": n})
        result = np.full((m, n), np.nan, np.float32)
        run_prim_func(func, [*arrays, result])
        PRODUCT.check(result, arrays)


@pytest.mark.parametrize(
    ("m", "n", "machine", "are_few"),
    [
        (2, 64, "x86-64-v3", True),
        (16, 4096, "x86-64-v3", True),
        (8, 4096, "neoverse-n1", True),
        (7, 4096, "x86-64-v4 l3-bytes=33554432", True),
        (8, 4096, "x86-64-v4 l3-bytes=33554432", False),  # fills the tallest tile, from nearby
        (8, 4096, "x86-64-v4 l3-bytes=8388608", True),
        (2, 72, "x86-64-v4", True),
        (2, 71, "x86-64-v4", False),
        (12, 1727, "x86-64-v4 cores=4", False),  # too short in each thread
        (12, 1728, "x86-64-v4 cores=4", True),
        (8, 4096, "x86-64-v3 unpacked-rows=4", False),
        (1, 4096, "x86-64-v3", False),
        (17, 4096, "x86-64-v3", False),
        (8, 63, "x86-64-v3", False),
    ],
)
def test_which_gemm_has_small_m(m: int, n: int, machine: str, are_few: bool) -> None:
    assert bool(routines(known(m, 768, n), Target.parse(machine))) is are_few


def test_short_k_along_wide_vectors_are_streamed() -> None:
    assert [bool(routines(known(7, k, 4096), WIDE)) for k in (95, 96)] == [False, True]
    assert routines(known(7, 20, 4096))


def test_a_row_of_b_is_used_by_all_rows_of_a_group() -> None:
    """Four lines for four, three or two rows at once; what is left of the lines is one for one row. Results follow."""
    (routine,) = routines(PRODUCT.text).values()
    loops = [op for op in routine.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "v"]
    assert [sum(isinstance(op, FmaOp) for op in loop.walk()) for loop in loops] == [16, 12, 8, 1, 0]


def test_wide_vectors_use_more_rows_of_b_and_prefetch_the_next_ones() -> None:
    """Six lines for six to two rows at once. Where these are more than four, a loop asks for the next lines in each
    turn, beside one without; else another loop asks for some vectors of these before their products.
    """
    (routine,) = routines(PRODUCT.text, WIDE).values()
    loops = [op for op in routine.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "v"]
    counts = [sum(isinstance(op, kind) for op in loop.walk()) for loop in loops for kind in (FmaOp, PrefetchOp)]
    evenly = [count for height in (6, 5) for count in (6 * height, 1, 6 * height, 0)]
    assert counts == [*evenly, 24, 0, 18, 0, 12, 0, 1, 0, 0, 0]
    asking = [op for op in routine.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "asked"]
    assert [sum(isinstance(op, PrefetchOp) for op in loop.walk()) for loop in asking] == [1, 1, 1]


def test_kernels_of_all_sizes_share_a_routine() -> None:
    texts = PRODUCT.text, known(3, 768, 3072), known(7, 100, 1024)
    for target in (TARGET, WIDE):
        assert len({frozenset(routines(text, target)) for text in texts}) == 1


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_columns_along_k(dtype: str) -> None:
    for m, k, n in ((2, 9, 1), (3, 40, 7), (4, 5, 9), (5, 8, 20), (6, 0, 3), (16, 23, 17)):
        check_guarded(Sum("mk,nk->mn", dtype), {"m": m, "n": n, "k": k})


@pytest.mark.parametrize(("rows", "products"), [(3, {12}), (5, {12, 8}), (7, {12, 4})])
def test_columns_along_k_are_shared_by_three_rows(rows: int, products: set[int]) -> None:
    """Four columns at a time: their sums fill the registers."""
    func = kernel(known(rows, 80, 100, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"'))
    schedule(func, TARGET)
    loops = [op for op in func.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "v"]
    assert {sum(isinstance(op, FmaOp) for op in loop.walk()) for loop in loops} == products


@pytest.mark.parametrize(("rows", "products"), [(1, {4}), (2, {8}), (3, {12}), (4, {16}), (7, {16, 12})])
def test_columns_along_k_are_shared_by_four_rows(rows: int, products: set[int]) -> None:
    """With 32 registers; loops ask for as many of the next columns as they read, and begin where these are aligned."""
    func = kernel(known(rows, 80, 100, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"'))
    schedule(func, WIDE)
    loops = [op for op in func.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "v"]
    sums = [op for op in loops if any(isinstance(each, FmaOp) for each in op.walk())]
    assert {sum(isinstance(op, FmaOp) for op in loop.walk()) for loop in sums} == products
    assert {sum(isinstance(op, PrefetchOp) for op in loop.walk()) for loop in sums} == {4}
    assert any(isinstance(op, MisalignmentOp) for op in func.walk())


@pytest.mark.parametrize(("m", "k", "are_dots"), [(4, 8, True), (8, 64, True), (8, 63, False), (16, 128, True)])
def test_short_k_of_many_rows_are_packed(m: int, k: int, are_dots: bool) -> None:
    func = kernel(known(m, k, 100, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"'))
    schedule(func, TARGET)
    assert ("routine.tile" not in str(func)) is are_dots
