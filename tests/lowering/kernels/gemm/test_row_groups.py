"""The blocks of rows of skinny GEMM."""

from __future__ import annotations

import pytest

from lowering.kernels.gemm.skinny import block_rows, max_rows_in
from tests.lowering.kernels.gemm.support import Sum, check_guarded
from tir_dialect.dims import constant


@pytest.mark.parametrize(
    ("m", "threads", "panels", "expected"),
    [
        (257, 1, 2, 136),  # two blocks that are about as high
        (257, 2, 2, 136),
        (4096, 2, 1, 256),
        (100, 2, 1, 56),  # one for each thread
        (100, 1, 1, 104),
        (100, 2, 3, 56),  # three panels for two threads are uneven
        (8, 2, 96, 8),
        (0, 1, 0, 8),
    ],
)
def test_rows_of_a_block(m: int, threads: int, panels: int, expected: int) -> None:
    assert block_rows(constant(m), constant(threads), constant(panels), 8, constant(256)).constant_value == expected


@pytest.mark.parametrize(("n", "expected"), [(1, 256), (100, 256), (600, 54), (1899, 17), (4096, 16), (0, 256)])
def test_large_outputs_are_written_row_by_row(n: int, expected: int) -> None:
    """A block's output stays in the second-level cache, however few rows that leaves it."""
    assert max_rows_in(1 << 15, constant(n), 8).constant_value == expected


def test_tasks_have_parts_of_blocks() -> None:
    """Nine blocks of rows, the fifth of which two threads share."""
    for m, n in ((137, 2100), (1, 2100), (0, 2100), (137, 0)):
        check_guarded(Sum("mk,kn->mn"), {"m": m, "n": n, "k": 3})
