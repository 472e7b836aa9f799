"""Dimensions as numbers."""

from __future__ import annotations

from collections.abc import Mapping

from tir_dialect.dims import Dim


def evaluate(dim: Dim, symbols: Mapping[str, int]) -> int:
    """The value of a dimension; `ValueError` if it divides by zero, as in the virtual machine."""
    try:
        return dim.evaluate(symbols)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
