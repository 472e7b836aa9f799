"""Which taps of a window are within zero-padded data, tile by tile."""

from __future__ import annotations

import pytest

from lowering.kernels.conv.micro_kernel import PaddedAxis
from tir_dialect.dims import constant, symbol


@pytest.mark.parametrize("number", [1, 2, 4, 5, 7])
@pytest.mark.parametrize(("stride", "dilation", "low"), [(1, 12, 12), (1, 6, 6), (2, 5, 3), (1, 4, 0)])
def test_tiles_skip_taps_that_are_in_the_padding(stride: int, dilation: int, low: int, number: int) -> None:
    """The symbolic count is that of the pairs of a tile and a tap with data."""
    n = symbol("n")
    padded_axis = PaddedAxis(0, stride, 1, dilation, low, n)
    for length in (8, 13, 28, 33):
        extent = max((length + 2 * low - 2 * dilation - 1) // stride + 1, 0)
        if extent < number:
            continue
        edges = [tile * extent // number for tile in range(number + 1)]
        expected = sum(
            any(0 <= stride * pixel + dilation * tap - low < length for pixel in range(edges[tile], edges[tile + 1]))
            for tile in range(number)
            for tap in range(3)
        )
        results = (n + 2 * low - 2 * dilation - 1) // stride + 1
        assert (
            padded_axis.tiles(3, results, constant(number)).substitute({"n": constant(length)}).constant_value
            == expected
        )
