"""GEMM with small N: tiles of rows and all columns, with the results of a tile in a vector."""

from __future__ import annotations

import numpy as np
import pytest
from tvm_ffi import from_dlpack
from xdsl.dialects.builtin import UnknownLoc, f32

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.vectorization import row_sums
from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import Sum, check_guarded, compiled, kernel, known
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType

pytestmark = pytest.mark.sampled(3)

PRODUCT = Sum("mk,kn->mn")
SIZES = ((0, 7), (1, 64), (3, 0), (5, 1), (16, 33), (17, 64), (23, 100), (40, 600))
AROUND = """
relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], f32>, %y: !relax.tensor<[k, n], f32>,
                             %z: !relax.tensor<[m, n], f32>) -> !relax.object {
  %0 = relax.PLACE %x
  %1 = relax.matmul %0, %y
  %2 = relax.add %1, %z
  %3 = relax.nn.relu %2
  relax.return %3
}"""


def of_columns(n: int) -> str:
    """A product of which the number of columns is known."""
    return f"""
relax.func @main[%m, %k](%x: !relax.tensor<[m, k], f32>, %y: !relax.tensor<[k, {n}], f32>) -> !relax.object {{
  %0 = relax.matmul %x, %y
  relax.return %0
}}"""


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("subscripts", ["mk,kn->mn", "mk,nk->mn"])
def test_any_number_of_rows(subscripts: str, n: int) -> None:
    for m, k in SIZES:
        check_guarded(Sum(subscripts), {"m": m, "n": n, "k": k})


def ways(text: str, target: str = "x86-64-v4") -> set[str]:
    """The routines that a kernel calls."""
    func = kernel(text)
    schedule(func, Target.parse(f"{target} cores=2"))
    return {word.partition(".")[0] for word in str(func).split("relax.routine.")[1:]}


@pytest.mark.parametrize(
    ("m", "k", "n", "are_few"),
    [(200, 56, 7, True), (200, 55, 7, False), (200, 100, 8, False), (200, 40, 5, True), (40, 100, 5, True)],
)
def test_up_to_seven_columns_have_no_tile_of_a_vector(m: int, k: int, n: int, are_few: bool) -> None:
    assert ("columns" in ways(known(m, k, n))) == are_few


def test_copies_of_more_than_four_columns_are_not_profitable_for_few_rows() -> None:
    assert "columns" not in ways(known(39, 100, 5))
    in_place = known(39, 100, 5, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"')
    assert "columns" in ways(in_place)


def test_columns_along_k_are_not_copied() -> None:
    """But a single one of long sums, whose copy is aligned."""
    for n in (1, 3):
        func = kernel(known(200, 1024, n, "[{n}, {k}]", 'relax.einsum %x, %y subscripts = "mk,nk->mn"'))
        schedule(func, Target.parse("x86-64-v4 cores=2"))
        assert ("%copies" in str(func)) == (n == 1)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_all_vectors(target: str, dtype: str) -> None:
    """Two lanes are fewer than rows are read side by side."""
    case = Sum("mk,kn->mn", dtype)
    func = kernel(case.text)
    schedule(func, Target.parse(f"{target} cores=2"))
    for m, k, n in ((7, 70, 1), (7, 70, 2), (9, 65, 3), (5, 64, 4), (41, 64, 5), (65, 70, 7), (6, 70, 35)):
        arrays = case.arrays({"m": m, "k": k, "n": n})
        result = np.full((m, n), np.nan, arrays[0].dtype)
        run_prim_func(func, [*arrays, result])
        case.check(result, arrays)


@pytest.mark.parametrize("place", ["nn.relu", "astype"])
def test_what_is_around(place: str) -> None:
    """Rows that are computed on the way, and results that something follows."""
    text = AROUND.replace("relax.PLACE %x", "relax.astype %x dtype = f32" if place == "astype" else f"relax.{place} %x")
    rng = np.random.default_rng(0)
    for m, k, n in ((20, 3, 1), (21, 70, 2), (33, 600, 3), (40, 64, 4), (60, 64, 7), (19, 512, 1)):
        x, y, z = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
        result = np.from_dlpack(compiled(text)(*map(from_dlpack, (x, y, z))))
        rows = np.maximum(x, 0) if place == "nn.relu" else x
        np.testing.assert_allclose(result, np.maximum(rows.astype("f8") @ y + z, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("n", "target", "tile"),
    [
        (2, "x86-64-v4", "f32.4x2"),
        (3, "x86-64-v4", "f32.4x4"),
        (4, "x86-64-v4", "f32.4x4"),
        (2, "x86-64-v3", "f32.4x2"),
        (4, "x86-64-v3", "f32.2x4"),  # of 16 registers, four times four sums would take all
    ],
)
def test_the_tile_has_all_columns(n: int, target: str, tile: str) -> None:
    func = kernel(of_columns(n))
    schedule(func, Target.parse(f"{target} cores=2"))
    found = [word for word in str(func).split("relax.routine.") if word.startswith("columns.")]
    assert found
    assert all(word.startswith(f"columns.{tile}.") for word in found)


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_sums_of_fewer_vectors_than_lanes(count: int) -> None:
    rng, lanes = np.random.default_rng(count), 8
    rows, out = BufferType([count, lanes], f32), BufferType([count], f32)
    func = PrimFuncOp("sums", [], [("rows", rows), ("out", out)])
    code, (source, target) = Code(func.body.block, UnknownLoc()), func.body.block.args
    vectors = [code.load(source, [code.index(i), code.index(0)], lanes) for i in range(count)]
    code.store(row_sums(code, vectors), target, [code.index(0)])
    values, result = rng.standard_normal((count, lanes)).astype("f4"), np.zeros(count, "f4")
    run_prim_func(func, [values, result])
    np.testing.assert_allclose(result, values.sum(axis=1), rtol=1e-5)
