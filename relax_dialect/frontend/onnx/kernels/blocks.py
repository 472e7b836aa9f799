"""Axes of blocks."""

from __future__ import annotations

from collections.abc import Sequence

from tir_dialect.dims import Dim
from tir_dialect.te.nodes import IterKind


def spatial(shape: Sequence[Dim]) -> list[tuple[IterKind, Dim, str]]:
    """The axes of a block over all of `shape`, independent of each other."""
    return [("spatial", extent, f"i{axis}") for axis, extent in enumerate(shape)]
