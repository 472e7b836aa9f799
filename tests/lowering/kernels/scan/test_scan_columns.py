"""Scans of adjacent columns: threads, the buffer for the sums of a row, non-temporal stores, order of additions."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.codegen_hints import STREAMED_FROM
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.ops.raw_memory import PrefetchOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

EAGER = "host cores=2 task-percent=1 l3-bytes=512"
"""Threads for little work, and results that go past the caches from 256 bytes on."""

DTYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8"}
SHAPES = [
    (3, 40, 128),
    (1, 9, 2048),
    (2, 5, 4096),
    (4, 7, 131),
    (1, 40, 7),
    (5, 1, 256),
    (0, 3, 8),
    (3, 0, 8),
    (3, 2, 0),
]


def kernel_of(name: str, dtype: str, shape: str = "k, m, n", axis: int = 1) -> PrimFuncOp:
    symbols = ", ".join(f"%{each}" for each in shape.split(", ") if each.isidentifier())
    return kernel_of_program(
        f"relax.func @main[{symbols}](%x: !relax.tensor<[{shape}], {dtype}>) {{\n"
        f"%y = relax.{name} %x axis = {axis}\nrelax.return %y\n}}"
    )


@cache
def compiled(name: str, dtype: str, machine: str) -> tuple[PrimFuncOp, Kernels]:
    func = kernel_of(name, dtype)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), Target.parse(machine), cache=NO_CACHE)


def numbers(kind: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * 3).astype(kind)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("machine", [EAGER, "host cores=1"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_are_made_in_the_order_of_the_rows(dtype: str, machine: str) -> None:
    func, kernels = compiled("cumsum", dtype, machine)
    for shape in SHAPES:
        x = numbers(DTYPES[dtype], shape)
        wide = x.astype(np.float32) if dtype == "f16" else x
        expected = np.cumsum(wide, 1, dtype=wide.dtype).astype(x.dtype)
        for at_end in (True, False):
            data, result = Guarded(x, at_end), Guarded(np.full_like(x, 77), at_end)
            assert call(kernels, func, [data.array, result.array], dict(zip("kmn", shape, strict=True))) == 0
            np.testing.assert_array_equal(result.array, expected)
            data.release()
            result.release()


def test_products_and_signs_of_zeros() -> None:
    for name, numpy in (("cumprod", np.cumprod), ("cumsum", np.cumsum)):
        func, kernels = compiled(name, "f32", EAGER)
        x = np.random.default_rng(0).choice(
            np.array([-0.0, 1, -1, 0.5], np.float32), (1, 6, 2048), p=[0.7, 0.1, 0.1, 0.1]
        )
        got = np.empty_like(x)
        assert call(kernels, func, [x, got], {"k": 1, "m": 6, "n": 2048}) == 0
        np.testing.assert_array_equal(got.view("i4"), numpy(x, 1, dtype=np.float32).view("i4"))


def scheduled(name: str, dtype: str, shape: str, axis: int, machine: str) -> PrimFuncOp:
    func = kernel_of(name, dtype, shape, axis)
    schedule(func, Target.parse(machine))
    return func


def _made(func: PrimFuncOp) -> list[str]:
    return [str(op.buffer_type) for op in func.walk() if isinstance(op, AllocBufferOp)]


@pytest.mark.parametrize(
    ("shape", "axis", "parallel"), [("m, n", 0, 1), ("k, m, n", 1, 2), ("k, 100, 128", 1, 2), ("8, 100, 128", 1, 1)]
)
def test_non_temporal_results_keep_the_sums_of_a_row_in_memory(shape: str, axis: int, parallel: int) -> None:
    func = scheduled("cumsum", "f32", shape, axis, "x86-64-v4 cores=2")
    known = parallel == 1 and axis == 1  # that they are small
    last = shape.rpartition(", ")[2]
    assert (f"!tir.buffer<[{last}], f32, align = 64>" in _made(func)) == (not known)
    streamed = [op for op in func.walk() if isinstance(op, StoreOp) and STREAMED_FROM in op.attributes]
    assert bool(streamed) == (not known)
    assert sum(isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL for op in func.walk()) == parallel
    assert any(isinstance(op, PrefetchOp) for op in func.walk()) == (not known)


def test_rows_that_are_not_whole_vectors_are_left_to_the_caches() -> None:
    assert not any(
        STREAMED_FROM in op.attributes for op in scheduled("cumsum", "f32", "m, 4097", 0, "x86-64-v4").walk()
    )
    assert any(STREAMED_FROM in op.attributes for op in scheduled("cumsum", "f32", "m, 4096", 0, "x86-64-v4").walk())


@pytest.mark.parametrize("machine", ["x86-64-v3", "x86-64-v4", "neoverse-n1"])
def test_sums_of_halves_need_no_matrix_of_their_own(machine: str) -> None:
    made = _made(scheduled("cumsum", "f16", "m, n", 0, machine))
    assert not any("m" in kind.partition(">")[0].split(", f")[0] for kind in made), made
