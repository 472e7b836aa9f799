"""Reductions of columns of tall matrices: threads partition the rows, and bands from memory are prefetched."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.raw_memory import PrefetchOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

EAGER = "host cores=3 task-percent=1 l2-bytes=4096 l3-bytes=8192"
"""Threads for little work, and matrices of 4 KiB that come from memory."""

SHAPES = [(192, 1), (193, 7), (200, 130), (191, 130), (333, 257), (600, 16), (260, 0), (0, 5)]


def kernel_of(body: str, dtype: str = "f32", shape: str = "m, n") -> PrimFuncOp:
    symbols = ", ".join(f"%{name}" for name in shape.split(", ") if name.isidentifier())
    return kernel_of_program(
        f"relax.func @main[{symbols}](%x: !relax.tensor<[{shape}], {dtype}>) {{\n%y = relax.{body}\nrelax.return %y\n}}"
    )


@cache
def compiled(body: str, dtype: str) -> tuple[PrimFuncOp, Kernels]:
    func = kernel_of(body, dtype)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), Target.parse(EAGER), cache=NO_CACHE)


def check(body: str, dtype: str, x: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    func, kernels = compiled(body, dtype)
    for at_end in (True, False):
        data, result = Guarded(x, at_end), Guarded(np.full_like(expected, 77), at_end)
        assert call(kernels, func, [data.array, result.array], dict(zip("mn", x.shape, strict=True))) == 0
        np.testing.assert_array_equal(result.array, expected)
        data.release()
        result.release()


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_each_threads_rows_are_added_in_order(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)
    rows = 8 * -(-len(x) // 24) if len(x) >= 192 and x.size >= 3 * 327 else max(len(x), 1)
    expected = np.zeros(shape[1], np.float32)
    for number, start in enumerate(range(0, len(x), rows)):
        part = np.zeros(shape[1], np.float32)
        for row in x[start : start + rows]:
            part += row
        expected = expected + part if number else part
    check("sum %x axes = [0]", "f32", x, expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "kind"), [("f32", "f4"), ("i8", "i1"), ("f64", "f8")])
def test_first_index_of_the_maximum(shape: tuple[int, int], dtype: str, kind: str) -> None:
    if shape[0] == 0:
        return
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(-3, 3, shape).astype(kind)
    check("argmax %x axis = 0", dtype, x, x.argmax(0))
    if kind[0] == "f":
        x[rng.random(shape) < 0.01] = np.nan
        check("argmax %x axis = 0", dtype, x, x.argmax(0))


def test_integers_and_maxima() -> None:
    x = np.random.default_rng(0).integers(-99, 99, (300, 67), np.int32)
    check("sum %x axes = [0]", "i32", x, x.sum(0, dtype=np.int32))
    y = np.random.default_rng(1).choice(
        np.array([np.nan, -0.0, 0.0, 1, -np.inf], np.float32), (300, 67), p=[0.001, 0.3, 0.3, 0.1, 0.299]
    )
    check("max %x axes = [0]", "f32", y, y.max(0))


def scheduled(func: PrimFuncOp, machine: str) -> PrimFuncOp:
    schedule(func, Target.parse(machine))
    return func


@pytest.mark.parametrize(
    ("shape", "by_rows", "by_columns"),
    [
        ("m, n", True, True),
        ("m, 2048", True, True),
        ("127, n", False, True),
        ("127, 2048", False, True),
        ("136, 2048", True, False),  # from the last-level cache, a page for each thread
        ("128, 2048", False, True),  # from the second-level caches of two threads
        ("136, 2049", False, True),
        ("1000, 4096", True, False),  # from memory
        ("130, 20000", False, True),  # from memory, many pages for each thread
        ("10000, 16", True, False),  # columns for one thread
        ("10000, 17", False, True),
    ],
)
def test_rows_are_partitioned_where_there_are_enough(shape: str, by_rows: bool, by_columns: bool) -> None:
    func = scheduled(kernel_of("sum %x axes = [0]", shape=shape), "x86-64-v4 cores=2")
    loops = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL]
    assert len(loops) == by_rows + by_columns
    assert any(op.buffer.name_hint == "parts" for op in func.walk() if isinstance(op, LoadOp)) == by_rows


@pytest.mark.parametrize("body", ["sum %x axes = [0]", "argmax %x axis = 0"])
@pytest.mark.parametrize(
    ("machine", "lines"),
    [("x86-64-v4 cores=1", 4), ("x86-64-v4 cores=2", 4), ("x86-64-v3 cores=1", 0), ("neoverse-n1 cores=1", 0)],
)
def test_bands_are_prefetched_where_vectors_are_whole_cache_lines(body: str, machine: str, lines: int) -> None:
    func = scheduled(kernel_of(body), machine)
    asked = [op for op in func.walk() if isinstance(op, PrefetchOp)]
    assert len(asked) == lines
    assert all(op.level.value.data == 2 for op in asked)


def test_batched_matrices_are_prefetched_too() -> None:
    for body, shape in (("sum %x axes = [1]", "k, m, n"), ("max %x axes = [1]", "k, m, 512")):
        assert any(isinstance(op, PrefetchOp) for op in scheduled(kernel_of(body, shape=shape), "x86-64-v4").walk())
