"""Pooling in registers, with AVX-512: values of rows of all lengths, and no row buffer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.dialects import arith
from xdsl.dialects.vector import ShuffleOp

from lowering.kernels.schedule_cpu import schedule
from tests.support.kernels import kernel_of_program
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.target import Target

AVX512 = Target.parse("x86-64-v4")
LENGTHS = (1, 2, 16, 17, 31, 32, 33, 50)


def scheduled(pooling: str, target: Target = AVX512) -> PrimFuncOp:
    func = kernel_of_program(
        f"relax.func @main[%m, %n](%x: !relax.tensor<[1, 2, m, n], f32>) {{\n"
        f"%y = relax.nn.{pooling}\nrelax.return %y\n}}"
    )
    schedule(func, target)
    return func


def windows(x: npt.NDArray[np.float32], size: int, stride: int, pad: int, dilation: int, outside: float):
    around = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=outside)
    reach = dilation * (size - 1) + 1
    return sliding_window_view(around, (reach, reach), (2, 3))[:, :, ::stride, ::stride, ::dilation, ::dilation]


def check(func: PrimFuncOp, x: npt.NDArray[np.float32], expected: npt.NDArray[np.float32]) -> None:
    result = np.full(expected.shape, 99, np.float32)
    with np.errstate(invalid="ignore"):
        run_prim_func(func, [x, result])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("size", "stride", "pad", "dilation"),
    [(2, 2, 0, 1), (2, 2, 1, 1), (3, 2, 1, 1), (3, 3, 0, 1), (7, 1, 3, 1), (5, 4, 2, 1), (2, 1, 1, 3)],
)
def test_maxima(size: int, stride: int, pad: int, dilation: int) -> None:
    """Of rows with NaN, too, that fit an iteration, or do not."""
    settings = f"pool_size = {[size] * 2} strides = {[stride] * 2} padding = {[pad] * 4} dilation = {[dilation] * 2}"
    func = scheduled(f"max_pool2d %x {settings}")
    reach = dilation * (size - 1) + 1
    for length in LENGTHS:
        if length + 2 * pad >= reach:
            x = np.random.default_rng(length).standard_normal((1, 2, reach, length), np.float32)
            x[0, 0, 0, length // 2] = np.nan
            check(func, x, windows(x, size, stride, pad, dilation, -np.inf).max((-2, -1)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("size", "stride", "pad"), [(2, 2, 0), (3, 1, 1), (3, 2, 1), (7, 1, 3), (7, 7, 0), (4, 3, 2)])
@pytest.mark.parametrize("includes_padding", [False, True])
def test_means(size: int, stride: int, pad: int, includes_padding: bool) -> None:
    settings = f"pool_size = {[size] * 2} strides = {[stride] * 2} padding = {[pad] * 4}"
    func = scheduled(f"avg_pool2d %x {settings}{' count_include_pad' if includes_padding else ''}")
    for length in LENGTHS:
        if length + 2 * pad >= size:
            x = np.random.default_rng(length).standard_normal((1, 2, size, length), np.float32)
            total = windows(x, size, stride, pad, 1, 0).sum((-2, -1))
            count = windows(np.ones_like(x), size, stride, pad, 1, float(includes_padding)).sum((-2, -1))
            check(func, x, total / count)


def rows_in_memory(func: PrimFuncOp) -> bool:
    return any(isinstance(op, StoreOp) and op.buffer.name_hint == "row" for op in func.walk())


def test_sums_of_columns_stay_in_registers() -> None:
    """Long rows, too; but what takes more than an addition is not done again for the next iteration."""
    mean, maximum = "avg_pool2d %x pool_size = [3, 3]", "max_pool2d %x pool_size = [3, 3]"
    assert not rows_in_memory(scheduled(mean))
    assert rows_in_memory(scheduled(maximum))
    assert all(any(isinstance(op, ShuffleOp) for op in scheduled(each).walk()) for each in (mean, maximum))


@pytest.mark.parametrize(("size", "stride", "count"), [(2, 2, 16), (3, 1, 30), (3, 2, 15)])
def test_an_iteration_has_all_results_whose_windows_are_in_two_vectors(size: int, stride: int, count: int) -> None:
    func = scheduled(f"max_pool2d %x pool_size = {[size] * 2} strides = {[stride] * 2}")
    fits = next(op for op in func.walk() if isinstance(op, arith.CmpiOp) and op.predicate.value.data == 3)
    assert isinstance(fits.rhs.owner, arith.ConstantOp)
    assert fits.rhs.owner.value.value.data == count


@pytest.mark.parametrize(("size", "dtype"), [(17, "f32"), (3, "f16")])
def test_windows_of_more_than_a_vector_and_short_elements_are_not_shuffled(size: int, dtype: str) -> None:
    func = kernel_of_program(
        f"relax.func @main[%m, %n](%x: !relax.tensor<[1, 2, m, n], {dtype}>) {{\n"
        f"%y = relax.nn.max_pool2d %x pool_size = {[1, size]}\nrelax.return %y\n}}"
    )
    schedule(func, AVX512)
    assert not any(isinstance(op, ShuffleOp) for op in func.walk())


def test_other_processors_do_not_shuffle_at_will() -> None:
    func = scheduled("avg_pool2d %x pool_size = [3, 3]", Target.parse("x86-64-v3"))
    assert rows_in_memory(func)
    assert not any(isinstance(op, ShuffleOp) for op in func.walk())


def test_results_of_windows_are_divided_in_registers() -> None:
    """Unless the numbers of elements differ: then for short rows only, beside loops that know where they do not."""

    def has_totals(pooling: str) -> bool:
        func = scheduled(f"avg_pool2d %x pool_size = [3, 3] {pooling}")
        return any(isinstance(op, AllocBufferOp) and op.buffer.name_hint == "totals" for op in func.walk())

    assert not has_totals("")
    assert not has_totals("padding = [1, 1, 1, 1] count_include_pad")
    assert has_totals("padding = [1, 1, 1, 1]")
