"""What the numbers of a target may be: errors for those that would end in wrong or slow code, or in none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tir_dialect.target import Target

MOST_STEPS = 64
"""Of a turn of a product's loop: the code of each step is written out."""


def check_numbers(target: Target, least: Mapping[str, int]) -> None:
    """Refuses settings that are no integers, or smaller than the least of their name."""
    for key, low in least.items():
        value = getattr(target, key)
        if key in ("triple", "cpu", "features"):
            if not isinstance(value, str):
                raise ValueError(f'target setting "{key}" expects a text, got {value!r}')
        elif not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise ValueError(f'target setting "{key}" expects an integer of at least {low}, got {value!r}')
    for feature in filter(None, target.features.split(",")):
        if feature[0] not in "+-":  # which LLVM takes for a minus
            raise ValueError(f'target setting "features" expects + or - before a feature, got "{feature}"')
    bits = target.vector_bits
    if bits < 64 or bits & (bits - 1):
        raise ValueError(f'target setting "vector_bits" expects a power of two of at least 64, got {bits}')
    if target.tile_steps > MOST_STEPS:
        raise ValueError(
            f'target setting "tile_steps" expects an integer of at most {MOST_STEPS}, got {target.tile_steps}'
        )


def check_registers(target: Target) -> None:
    """Refuses settings that ask for more registers than there are: sums would move to memory and back."""
    vectors, (rows, *_), _ = target.usual_tile
    rows, vectors = target.tile_rows or rows, target.tile_vectors or vectors
    needed, there = rows * vectors + vectors, target.tile_registers
    if (target.tile_rows or target.tile_vectors) and needed > there:
        key = "tile_rows" if target.tile_rows else "tile_vectors"
        raise ValueError(
            f'target setting "{key}" expects a tile for {there} vector registers, '
            f"got {rows} rows of {vectors} sums and one of {vectors} factors, which is {needed}"
        )
    if target.turn_registers > target.vector_registers:
        raise ValueError(
            f'target setting "turn_registers" expects at most {target.vector_registers}, got {target.turn_registers}'
        )
