"""Numbers whose dtype the text names, `T.float32(2)`: values that a program makes of them have it."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute


class TypedInt(int):
    """An integer of a dtype."""

    dtype: Attribute


class TypedFloat(float):
    """A floating-point number of a dtype."""

    dtype: Attribute


def typed(value: float, dtype: Attribute) -> int | float:
    """A number that remembers its dtype; an integer becomes a floating-point number if the dtype is of these."""
    made = TypedFloat(value) if isinstance(dtype, AnyFloat) else TypedInt(value)
    made.dtype = dtype
    return made


def dtype_of(value: object) -> Attribute | None:
    """The dtype that the text names for a number, if it does."""
    return value.dtype if isinstance(value, TypedInt | TypedFloat) else None
