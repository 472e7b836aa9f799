"""Validation of target descriptions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tir_dialect.schedule_options import check_integer

if TYPE_CHECKING:
    from tir_dialect.target import Target


def check_texts(target: Target, names: Iterable[str]) -> None:
    """ValueError for names that are no strings, and features without a sign."""
    for name in names:
        if not isinstance(value := getattr(target, name), str):
            raise ValueError(f'target setting "{name}" expects a text, got {value!r}')
    for feature in filter(None, target.features.split(",")):
        if feature[0] not in "+-":  # which LLVM takes for a minus
            raise ValueError(f'target setting "features" expects + or - before a feature, got "{feature}"')


def check_numbers(target: Target, names: Iterable[str]) -> None:
    """ValueError for sizes and counts below one, and vector widths that are no power of two."""
    for name in names:
        check_integer(name, getattr(target, name), 1)
    bits = target.vector_bits
    if bits < 64 or bits & (bits - 1):
        raise ValueError(f'target setting "vector_bits" expects a power of two of at least 64, got {bits}')


def check_registers(target: Target) -> None:
    """ValueError for options that need more registers than the target has, so that accumulators would be spilled."""
    options = target.schedule
    vectors, (rows, *_), _ = target.usual_tile
    rows, vectors = options.tile_rows or rows, options.tile_vectors or vectors
    needed, there = rows * vectors + vectors, target.tile_registers
    if (options.tile_rows or options.tile_vectors) and needed > there:
        key = "tile_rows" if options.tile_rows else "tile_vectors"
        raise ValueError(
            f'target setting "{key}" expects a tile for {there} vector registers, '
            f"got {rows} rows of {vectors} sums and one of {vectors} factors, which is {needed}"
        )
    if options.map_vectors > target.vector_registers:
        raise ValueError(
            f'target setting "map_vectors" expects at most {target.vector_registers}, got {options.map_vectors}'
        )
