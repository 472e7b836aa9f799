"""The tiles of convolutions in blocks, for machines with few and with many registers."""

from __future__ import annotations

import pytest

from lowering.kernels.cpu.conv.shape import (
    MOST_BLOCKS,
    USUAL_SIDES,
    Shape,
    last_blocks,
    tile_shape,
)

REGISTERS = (16, 32)


def tiles_of(shape: Shape, line: int) -> list[int]:
    """The heights of the tiles of a line: of each, the least for its share."""
    count = -(-line // shape.pixels)
    shares = [(number + 1) * line // count - number * line // count for number in range(count)]
    return [min(height for height in shape.heights if height >= share) for share in shares]


@pytest.mark.parametrize("registers", REGISTERS)
def test_the_lines_of_usual_pictures_make_no_sum_twice(registers: int) -> None:
    for side in (7, 14, 28, 56, 112):
        for blocks in (12, 16, 64):
            shape = tile_shape(registers, 1, side, blocks, False)
            assert sum(tiles_of(shape, side)) <= 1.02 * side, (side, blocks, shape)


def test_lines_of_unknown_length_have_tiles_for_the_usual_ones() -> None:
    shape = tile_shape(16, 1, None, 32, False)
    assert [sum(tiles_of(shape, side)) for side in (7, 14, 28, 56)] == [7, 14, 28, 56]


@pytest.mark.parametrize("blocks", [2, 3, 4, 5, 11, 32])
def test_a_line_of_unknown_length_can_be_divided_without_remainder_with_many_registers(blocks: int) -> None:
    heights = tile_shape(32, 1, None, blocks, False).heights
    for line in range(4, 200):
        shares = [(line // tiles, -(-line // tiles)) for tiles in range(1, line)]
        assert any(low in heights and high in heights for low, high in shares if low > 2), (line, heights)


def test_blocks_after_the_last_group() -> None:
    assert [last_blocks(32, blocks, 2) for blocks in (None, 1, 4, 5, 15, 33)] == [0, 0, 0, 1, 1, 0]
    assert last_blocks(16, 5, 2) == 0


def test_from_which_share_on_tiles_are_as_high() -> None:
    shape = Shape((14, 7, 6, 5, 4, 2, 1), 2)
    assert [shape.least_of_shares(height) for height in shape.heights] == [None, 4, 4, 4, None, None, None]


@pytest.mark.parametrize("registers", REGISTERS)
def test_sums_and_factors_fit_the_registers(registers: int) -> None:
    for line in (None, *range(1, 40), *USUAL_SIDES):
        for blocks in (None, 1, 2, 3, 8):
            shape = tile_shape(registers, 1, line, blocks, False)
            assert 1 <= shape.blocks <= min(blocks or 1, MOST_BLOCKS)
            assert shape.pixels * shape.blocks + shape.blocks < registers
            assert line is None or shape.pixels <= line


def test_loads_are_fewer_than_products() -> None:
    """As many as 14 elements for each vector of weights would keep the ports for loads busy, not the multipliers."""
    assert [tile_shape(16, 1, side, 8, False) for side in (14, 28, 56)] == [
        Shape((5, 4), 2),
        Shape((6, 5), 2),
        Shape((6, 5), 2),
    ]
    assert tile_shape(32, 1, 56, 8, False) == Shape((14,), 2)


def test_no_pixels() -> None:
    assert tile_shape(16, 1, 0, 8, False) == Shape((1,), 1)
