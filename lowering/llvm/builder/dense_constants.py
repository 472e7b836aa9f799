"""Vector constants as attributes, cached for all functions: making one takes longer than any op."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IntegerType, VectorType


def dense_integers(values: Sequence[int], element: IntegerType) -> DenseIntOrFPElementsAttr:
    """A vector of integers, which fit the type."""
    return _integers(tuple(map(int, values)), element)


def dense_floats(values: Sequence[float], element: AnyFloat) -> DenseIntOrFPElementsAttr:
    """A vector of floats, rounded to the type."""
    # By their bits: zeros of both signs are equal.
    return _floats(struct.pack(f"{len(values)}d", *values), element)


@lru_cache(maxsize=1024)
def _integers(values: tuple[int, ...], element: IntegerType) -> DenseIntOrFPElementsAttr:
    return DenseIntOrFPElementsAttr.from_list(VectorType(element, [len(values)]), values)


@lru_cache(maxsize=1024)
def _floats(values: bytes, element: AnyFloat) -> DenseIntOrFPElementsAttr:
    numbers = struct.unpack(f"{len(values) // 8}d", values)
    return DenseIntOrFPElementsAttr.from_list(VectorType(element, [len(numbers)]), numbers)
