"""Errors of interpreted programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


class OutOfRangeError(IndexError):
    """An access outside its buffer, a view outside its source, or an iterator outside its domain."""


class UnsupportedOpError(NotImplementedError):
    """An op that has no reference semantics here."""


def fail_access(op: str, buffer: str, indices: Sequence[int], extents: Sequence[int]) -> NoReturn:
    """Raises the error of an access outside its buffer."""
    for axis, (index, extent) in enumerate(zip(indices, extents, strict=True)):
        if not 0 <= index < extent:
            raise OutOfRangeError(f"'{op}' of buffer {buffer}: index {axis} is {index}, expected 0 <= index < {extent}")
    raise AssertionError("unreachable: the access is in range")
