"""Argmax and argmin of all types, along rows and across them: values, memory around buffers, lanes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.emit.vector_loop import constant_of
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

DTYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "ui8": "u1", "i64": "i8"}
SHAPES = [(1, 1), (3, 7), (9, 33), (40, 5), (17, 100), (2, 129), (5, 0)]


def kernel_of(name: str, dtype: str, axis: int, rows: str = "m") -> PrimFuncOp:
    symbols = "%m, %n" if rows == "m" else "%n"
    return kernel_of_program(
        f"relax.func @main[{symbols}](%x: !relax.tensor<[{rows}, n], {dtype}>) {{\n"
        f"%y = relax.{name} %x axis = {axis}\nrelax.return %y\n}}"
    )


@cache
def compiled(name: str, dtype: str, axis: int) -> tuple[PrimFuncOp, Kernels]:
    func = kernel_of(name, dtype, axis)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)


def numbers(kind: np.dtype[Any], special: bool, shape: tuple[int, int]) -> npt.NDArray[Any]:
    rng = np.random.default_rng(sum(shape))
    if kind.kind == "f":
        some = [np.nan, np.inf, -np.inf, 0.0, -0.0] if special else rng.standard_normal(50)
        return rng.choice(np.array(some, kind), shape)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    return rng.choice(np.array([low, low + 1, high], kind), shape) if special else rng.integers(low, high, shape, kind)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("name", "dtype"), [*(("argmax", dtype) for dtype in DTYPES), ("argmin", "f32"), ("argmin", "ui8")]
)
def test_values_and_memory(name: str, dtype: str, axis: int) -> None:
    func, kernels = compiled(name, dtype, axis)
    for shape in SHAPES:
        for special in (False, True):
            x = numbers(np.dtype(DTYPES[dtype]), special, shape)
            filled = x.shape[axis] > 0
            expected: npt.NDArray[Any] = getattr(np, name)(x, axis) if filled else np.full(len(x), np.iinfo("i8").max)
            data, result = Guarded(x, True), Guarded(np.full_like(expected, -1), True)
            assert call(kernels, func, [data.array, result.array], dict(zip("mn", shape, strict=True))) == 0
            np.testing.assert_array_equal(result.array, expected)
            data.release()
            result.release()


@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 8), ("i8", 8), ("f64", 4), ("i64", 4)])
@pytest.mark.parametrize("axis", [0, 1])
def test_lanes_are_those_of_what_is_compared(dtype: str, lanes: int, axis: int) -> None:
    func = kernel_of("argmax", dtype, axis)
    schedule(func, Target.parse("x86-64-v3"))
    vectors = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED]
    reads = [loop for loop in vectors if any(isinstance(op, LoadOp) and _is_data(op) for op in loop.walk())]
    assert reads
    assert all((constant_of(loop.upper) or 0) % lanes == 0 for loop in reads)


def _is_data(op: LoadOp) -> bool:
    return (op.buffer.name_hint or "").startswith("x")


def test_more_rows_than_lanes_can_count_are_taken_one_by_one() -> None:
    func = kernel_of("argmax", "f32", 0, rows=str(1 << 31))
    schedule(func, Target.parse("x86-64-v3"))
    vectors = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED]
    assert all(constant_of(loop.upper) == 1 for loop in vectors)
