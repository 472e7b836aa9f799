"""Numbers as attributes of a dtype: a number that the dtype does not have is refused, not changed."""

from __future__ import annotations

from math import isfinite

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from tir_dialect.dtypes import is_bool, is_dtype, range_in_i64, rounded

I64_RANGE = (-(2**63), 2**63 - 1)
"""What an integer of the run time may be: tvm-ffi has no others."""


def integer_range(dtype: Attribute) -> tuple[int, int]:
    """The least and the greatest scalar of an integer dtype; of `ui64` those that a signed integer of 64 bits holds."""
    if is_bool(dtype):
        return (0, 1)
    low, high = range_in_i64(dtype) or I64_RANGE
    return (low, I64_RANGE[1] if high is None else high)


def number_attr(number: float, dtype: Attribute) -> IntegerAttr | FloatAttr:
    """The number with a dtype, a float rounded to it; `ValueError` if the dtype has no such number."""
    if isinstance(dtype, AnyFloat):
        if not is_float_of(number, dtype):
            raise ValueError(f"the number {number} is too large for {dtype}")
        return FloatAttr(rounded(number, dtype), dtype)
    if not isa(dtype, IntegerType) or isinstance(number, float):
        raise ValueError(f"the number {number} is no {dtype}")
    if is_dtype(dtype) and (limits := outside(number, dtype)) is not None:
        raise ValueError(limits)
    return IntegerAttr(int(number), dtype)  # A subclass of int would be what a program returns.


def is_float_of(number: float, dtype: AnyFloat) -> bool:
    """Whether a number, rounded to a floating-point dtype, is finite if it was."""
    try:
        return isfinite(rounded(number, dtype)) or not isfinite(number)
    except OverflowError:
        return False


def outside(number: int, dtype: Attribute) -> str | None:
    """What is wrong with a scalar of an integer dtype, or `None`."""
    low, high = integer_range(dtype)
    return None if low <= number <= high else f"expected {dtype} in the range {low} to {high}, got {number}"
