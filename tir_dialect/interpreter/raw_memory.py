"""Memory by its address, as arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np


def memory_at(address: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
    """The value of a `tir.memory_at`, its strides in elements; an array that nobody can access if the address is null.

    The memory is not looked at, and does not live longer through the array.
    """
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    if address == 0 or min(shape, default=1) <= 0:
        return np.empty([0] * max(len(shape), 1), dtype)
    memory = memoryview((ctypes.c_uint8 * (span * dtype.itemsize)).from_address(address))
    return np.ndarray(shape, dtype, memory, 0, [stride * dtype.itemsize for stride in strides])


def address_of(array: np.ndarray, position: Sequence[int]) -> int:
    """The value of a `tir.address_of`: where an element lies, also one after the last."""
    return array.ctypes.data + sum(index * stride for index, stride in zip(position, array.strides, strict=True))


def read_text(address: int) -> str:
    """A text that ends in a zero byte."""
    return ctypes.string_at(address).decode()
