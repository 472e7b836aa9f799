"""Which places of a window are within zero-padded data, tile by tile."""

from __future__ import annotations

import pytest

from lowering.kernels.cpu.conv.bordered_windows import Border
from tir_dialect.dims import constant, symbol


@pytest.mark.parametrize("number", [1, 2, 4, 5, 7])
@pytest.mark.parametrize(("stride", "step", "low"), [(1, 12, 12), (1, 6, 6), (2, 5, 3), (1, 4, 0)])
def test_tiles_leave_out_places_that_meet_only_zeros(stride: int, step: int, low: int, number: int) -> None:
    """The count in a symbol is that of the tiles which have a pixel whose place of the window is data."""
    n = symbol("n")
    border = Border(0, stride, 1, step, low, n)
    for length in (8, 13, 28, 33):
        extent = max((length + 2 * low - 2 * step - 1) // stride + 1, 0)
        if extent < number:
            continue
        edges = [tile * extent // number for tile in range(number + 1)]
        expected = sum(
            any(0 <= stride * pixel + step * place - low < length for pixel in range(edges[tile], edges[tile + 1]))
            for tile in range(number)
            for place in range(3)
        )
        results = (n + 2 * low - 2 * step - 1) // stride + 1
        assert border.tiles(3, results, constant(number)).substitute({"n": constant(length)}).constant_value == expected
