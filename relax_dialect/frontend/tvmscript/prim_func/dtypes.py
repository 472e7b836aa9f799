"""Names of dtypes of vectors."""

from __future__ import annotations

import re

MAX_LANES = 1 << 16
"""The longest vector that is read."""

_LANES = re.compile(r"([a-z]+\d*(?:_\w+)?)x(\d+)")


def split_dtype(name: str) -> tuple[str, int | None]:
    """`float32x4` as the dtype of an element and the number of lanes, which `float32` has none of."""
    found = _LANES.fullmatch(name)
    return (name, None) if found is None else (_SHORT.get(found[1], found[1]), int(found[2]))


_SHORT = {
    "boolean": "bool",
    "uint1": "bool",
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def element_name(name: str) -> str:
    """A dtype by the name that everything knows it under: `T.boolean` is `bool`, `T.u8` is `uint8`."""
    return _SHORT.get(name, name)
