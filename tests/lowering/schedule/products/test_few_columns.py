"""Products with very few columns: tiles of rows and all columns, with the sums of a tile in a vector."""

from __future__ import annotations

import numpy as np
import pytest
from tvm_ffi import from_dlpack
from xdsl.dialects.builtin import UnknownLoc, f32

from lowering.schedule.cpu.emit.code import Code
from lowering.schedule.cpu.emit.transpose import row_sums
from lowering.schedule.schedule_cpu import schedule
from tests.lowering.schedule.products.support import Sum, check_guarded, compiled, kernel
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType

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


def known(n: int, dtype: str = "f32") -> str:
    """A product of which the number of columns is known."""
    return f"""
relax.func @main[%m, %k](%x: !relax.tensor<[m, k], {dtype}>, %y: !relax.tensor<[k, {n}], {dtype}>) -> !relax.object {{
  %0 = relax.matmul %x, %y
  relax.return %0
}}"""


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_any_number_of_rows(n: int) -> None:
    for m, k in SIZES:
        check_guarded(PRODUCT, {"m": m, "n": n, "k": k})


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_all_vectors(target: str, dtype: str) -> None:
    """Two lanes are fewer than rows are read side by side."""
    case = Sum("mk,kn->mn", dtype)
    func = kernel(case.text)
    schedule(func, Target.parse(f"{target} cores=2"))
    for m, k, n in ((7, 70, 1), (7, 70, 2), (9, 65, 3), (5, 64, 4), (6, 70, 35)):
        arrays = case.arrays({"m": m, "k": k, "n": n})
        result = np.full((m, n), np.nan, arrays[0].dtype)
        run_prim_func(func, [*arrays, result])
        case.check(result, arrays)


@pytest.mark.parametrize("place", ["nn.relu", "astype"])
def test_what_is_around(place: str) -> None:
    """Rows that are computed on the way, and results that something follows."""
    text = AROUND.replace("relax.PLACE %x", "relax.astype %x dtype = f32" if place == "astype" else f"relax.{place} %x")
    rng = np.random.default_rng(0)
    for m, k, n in ((20, 3, 1), (21, 70, 2), (33, 600, 3), (40, 64, 4), (19, 512, 1)):
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
    func = kernel(known(n))
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
