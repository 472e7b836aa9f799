"""How the packed GEMM is partitioned among threads."""

from __future__ import annotations

from math import prod

import pytest

from lowering.kernels.emit.kernel import buffer_type
from lowering.kernels.gemm.packed import partition
from lowering.kernels.schedule_cpu import schedule
from tests.lowering.kernels.gemm.support import SUMS, kernel
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import MatchBufferOp
from tir_dialect.ops.control_flow import ForOp, LoopKind
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.target import Target


def grid(threads: int, strips: int, panels: int, given: bool = False) -> tuple[int | None, int | None]:
    rows, columns = partition(constant(threads), constant(strips), constant(panels), given)
    return rows.constant_value, columns.constant_value


@pytest.mark.parametrize(
    ("threads", "strips", "panels", "expected"),
    [
        (1, 1000, 1000, (1, 1)),  # one thread packs everything once
        (2, 10, 4, (2, 1)),  # as many strips as panels take as much to pack
        (2, 10, 24, (1, 2)),
        (2, 147, 64, (2, 1)),  # 2048 x 2048
        (2, 300, 1, (4, 1)),  # long tasks: more of them, equally many for each thread
        (2, 10, 600, (1, 8)),
        (4, 1, 1, (1, 1)),  # no more than there is
        (4, 3, 2, (2, 2)),
        (4, 0, 0, (1, 1)),
    ],
)
def test_a_grid(threads: int, strips: int, panels: int, expected: tuple[int, int]) -> None:
    assert grid(threads, strips, panels) == expected


@pytest.mark.parametrize(
    ("strips", "panels", "expected"),
    [
        (342, 128, (1, 2)),  # 2048 x 2048: packed rows are read in long runs, which takes less
        (86, 32, (2, 1)),  # 512 x 512
        (130, 49, (2, 1)),  # 777 x 777: 24 and 25 panels would be less even than strips
        (342, 64, (4, 1)),
    ],
)
def test_columns_are_partitioned_sooner_where_a_row_of_a_panel_is_one_cache_line(
    strips: int, panels: int, expected: tuple[int, int]
) -> None:
    found = partition(constant(2), constant(strips), constant(panels), False, square=3)
    assert tuple(each.constant_value for each in found) == expected


def test_given_panels_are_read_by_one_thread() -> None:
    assert grid(2, 100, 8, given=True) == (1, 2)
    assert grid(2, 100, 1, given=True) == (2, 1)


def test_threads_meet_once() -> None:
    """Rows are packed by the tasks that use them, in the one loop that threads share."""
    func = kernel(SUMS["product"].text)
    schedule(func, Target.parse("x86-64-v4 cores=4"))
    loops = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL]
    assert len([loop for loop in loops if _packs(loop)]) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", [(512, 512, 512), (2048, 2048, 2048), (16384, 512, 16384), (40, 4096, 1 << 20)])
def test_memory_for_packed_columns_is_kept_between_calls(sizes: tuple[int, int, int]) -> None:
    """The run-time support gives blocks above 16 MiB back, whose pages are then made anew in each call."""
    func = kernel(SUMS["product"].text)
    schedule(func, Target.parse("x86-64-v4 cores=2 l2-bytes=1048576 l3-bytes=33554432"))
    values = dict(zip(("m", "k", "n"), sizes, strict=True))
    buffers = [buffer_type(op.buffer) for op in func.walk() if isinstance(op, AllocBufferOp)]
    packed = [buffer for buffer in buffers if len(buffer.shape) == 3 and buffer.shape[-1].constant_value == 32]
    assert packed
    for buffer in packed:
        assert 4 * prod(dim.evaluate(values) for dim in buffer.shape) <= 1 << 24


def _packs(loop: ForOp) -> bool:
    parts = (op for op in loop.walk() if isinstance(op, MatchBufferOp))
    return any((op.buffer.name_hint or "").startswith("packed") for op in parts)
