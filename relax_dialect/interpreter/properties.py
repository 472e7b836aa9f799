"""Properties of operators as plain Python values."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType


def integers(values: DenseArrayBase[IntegerType] | None) -> tuple[int, ...] | None:
    """The elements of an integer list, `None` if it is absent."""
    return None if values is None else tuple(values.get_values())


def integer(value: IntegerAttr | None) -> int | None:
    """An integer, `None` if it is absent."""
    return None if value is None else value.value.data
