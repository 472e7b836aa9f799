"""Names of dtypes of vectors."""

from __future__ import annotations

import re

MAX_LANES = 1 << 16
"""The longest vector that is read."""

_LANES = re.compile(r"([a-z]+\d*(?:_\w+)?)x(\d+)")


def split_dtype(name: str) -> tuple[str, int | None]:
    """`float32x4` as the dtype of an element and the number of lanes, which `float32` has none of."""
    found = _LANES.fullmatch(name)
    return (name, None) if found is None else (found[1], int(found[2]))
