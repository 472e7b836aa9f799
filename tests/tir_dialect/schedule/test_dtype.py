"""unsafe_set_dtype: values are kept in another dtype, and converted where they are stored and loaded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import check_valid, elementwise, matmul, run, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect.schedule import Schedule


@pytest.mark.parametrize("dtype", ["i16", "int64", "f32", "float16", "bf16"])
def test_small_numbers_are_the_same(dtype):
    sch = scheduled(elementwise(), lambda sch: sch.unsafe_set_dtype("B", 0, dtype))
    (kind,) = allocations(sch).values()
    short = {"int64": "i64", "float16": "f16"}.get(dtype, dtype)
    assert f", {short}" in kind


def test_sums_are_rounded_in_each_step():
    def transform(sch):
        sch.cache_write("C", 0, "local")
        sch.unsafe_set_dtype("C", 0, "f16")

    scheduled(matmul("f32"), transform)
    sch = Schedule(matmul("f32"))
    transform(sch)
    check_valid(sch.func)
    sizes = {"n": 1, "m": 1, "k": 3}
    sch.func.verify()
    *_, c = run(sch.func, sizes)
    assert c.dtype == np.float32


ROUNDED = """
tir.prim_func @rounded[%n](%A: !tir.buffer<[n], f32>, %C: !tir.buffer<[n], f32>) {
  %B = tir.alloc_buffer : !tir.buffer<[n], f32, align = 128>
  tir.for (%i) in (%n) {
    tir.block "B" (%vi = spatial %i in %n) {
      %view = tir.match_buffer %B[%vi] : !tir.buffer<[], f32>
      %a = tir.load %A[%vi]
      %third = arith.constant 3.0 : f32
      %b = arith.divf %a, %third : f32
      tir.store %b, %view[]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%vi = spatial %i in %n) {
      %b = tir.load %B[%vi]
      tir.store %b, %C[%vi]
    }
  }
}"""


def test_values_are_rounded_through_views():
    func = parse_prim_func(ROUNDED)
    sch = Schedule(func)
    sch.unsafe_set_dtype("B", 0, "f16")
    check_valid(func)
    assert "!tir.buffer<[n], f16, align = 128>" in str(func)
    assert "!tir.buffer<[], f16>" in str(func)
    a, c = run(func, {"n": 9})
    np.testing.assert_array_equal(c, (a / np.float32(3)).astype(np.float16).astype(np.float32))


def test_what_cannot_have_another_dtype():
    sch = Schedule(elementwise())
    refuses(sch, 'buffer "C" is a parameter', "unsafe_set_dtype", "C", 0, "f16")
    refuses(sch, "unsupported dtype 'f17'", "unsafe_set_dtype", "B", 0, "f17")
    refuses(sch, "expected numbers, got elements of i32 and the dtype i1", "unsafe_set_dtype", "B", 0, "bool")
    refuses(sch, 'expected a buffer that block "B" writes, got 3', "unsafe_set_dtype", "B", 3, "f16")
