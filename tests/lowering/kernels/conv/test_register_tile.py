"""The register tile of direct convolutions, for machines with few and with many registers."""

from __future__ import annotations

import pytest

from lowering.kernels.conv.channel_blocks import RegisterTile, choose_register_tile, remainder_blocks
from lowering.kernels.cost_model import CONV_MAX_BLOCKS, TYPICAL_IMAGE_SIDES

REGISTERS = (16, 32)


def tiles_of(shape: RegisterTile, row: int) -> list[int]:
    """The MR of the tiles of a row: of each, the smallest that suits its part."""
    count = -(-row // shape.pixels)
    parts = [(number + 1) * row // count - number * row // count for number in range(count)]
    return [min(mr for mr in shape.mr_choices if mr >= part) for part in parts]


@pytest.mark.parametrize("registers", REGISTERS)
def test_rows_of_typical_images_compute_no_pixel_twice(registers: int) -> None:
    for side in (7, 14, 28, 56, 112):
        for blocks in (12, 16, 64):
            shape = choose_register_tile(registers, 1, side, blocks, False)
            assert sum(tiles_of(shape, side)) <= 1.02 * side, (side, blocks, shape)


def test_rows_of_unknown_length_have_tiles_for_typical_lengths() -> None:
    shape = choose_register_tile(16, 1, None, 32, False)
    assert [sum(tiles_of(shape, side)) for side in (7, 14, 28, 56)] == [7, 14, 28, 56]


@pytest.mark.parametrize("blocks", [2, 3, 4, 5, 11, 32])
def test_with_many_registers_any_row_is_divided_without_overlap(blocks: int) -> None:
    mr_choices = choose_register_tile(32, 1, None, blocks, False).mr_choices
    for row in range(4, 200):
        parts = [(row // tiles, -(-row // tiles)) for tiles in range(1, row)]
        assert any(low in mr_choices and high in mr_choices for low, high in parts if low > 2), (row, mr_choices)


def test_remainder_blocks() -> None:
    assert [remainder_blocks(32, blocks, 2) for blocks in (None, 1, 4, 5, 15, 33)] == [0, 0, 0, 1, 1, 0]
    assert remainder_blocks(16, 5, 2) == 0


def test_smallest_consecutive_mr() -> None:
    shape = RegisterTile((14, 7, 6, 5, 4, 2, 1), 2)
    assert [shape.smallest_consecutive_mr(mr) for mr in shape.mr_choices] == [None, 4, 4, 4, None, None, None]


@pytest.mark.parametrize("registers", REGISTERS)
def test_accumulators_and_operands_fit_the_registers(registers: int) -> None:
    for row in (None, *range(1, 40), *TYPICAL_IMAGE_SIDES):
        for blocks in (None, 1, 2, 3, 8):
            shape = choose_register_tile(registers, 1, row, blocks, False)
            assert 1 <= shape.blocks <= min(blocks or 1, CONV_MAX_BLOCKS)
            assert shape.pixels * shape.blocks + shape.blocks < registers
            assert row is None or shape.pixels <= row


def test_loads_are_fewer_than_multiply_adds() -> None:
    """As many as 14 elements for each vector of weights would keep the ports for loads busy, not the multipliers."""
    assert [choose_register_tile(16, 1, side, 8, False) for side in (14, 28, 56)] == [
        RegisterTile((5, 4), 2),
        RegisterTile((6, 5), 2),
        RegisterTile((6, 5), 2),
    ]
    assert choose_register_tile(32, 1, 56, 8, False) == RegisterTile((14,), 2)


def test_no_pixels() -> None:
    assert choose_register_tile(16, 1, 0, 8, False) == RegisterTile((1,), 1)
