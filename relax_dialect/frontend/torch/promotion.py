"""The dtype that operands of different ones have in common, as PyTorch has it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from xdsl.dialects.builtin import f32, i1, i16, i64
from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.library import torch
from tir_dialect.dtypes import is_bool, is_float, is_unsigned, lookup


class Weight(IntEnum):
    """How much an operand has to say: the dtype of a number only counts if no tensor is of its category or above."""

    NUMBER = 0
    SCALAR_TENSOR = 1
    TENSOR = 2


def promoted(operands: Iterable[Any]) -> Attribute:
    """The dtype in which tensors and numbers are combined."""
    kinds: dict[Weight, Attribute] = {}
    for operand in operands:
        weight, dtype = _described(operand)
        kinds[weight] = _common(kinds[weight], dtype) if weight in kinds else dtype
    found: Attribute | None = None
    for _, dtype in sorted(kinds.items()):
        found = dtype if found is None else _outranked(dtype, found)
    return i64 if found is None else found


def _described(operand: Any) -> tuple[Weight, Attribute]:
    if isinstance(operand, Expr) and operand.dtype is not None:
        return (Weight.TENSOR if operand.ndim else Weight.SCALAR_TENSOR), operand.dtype
    if isinstance(operand, bool | torch().SymBool):
        return Weight.NUMBER, i1
    return Weight.NUMBER, i64 if isinstance(operand, int | torch().SymInt) else f32


def _outranked(higher: Attribute, lower: Attribute) -> Attribute:
    """The common dtype where `higher` decides, unless `lower` is of a category above."""
    if is_float(higher):
        return higher
    return _common(higher, lower) if is_bool(higher) or is_float(lower) else higher


def _common(one: Attribute, other: Attribute) -> Attribute:
    """The common dtype of operands of equal weight."""
    if one == other or is_bool(other):
        return one
    if is_bool(one):
        return other
    if is_float(one) != is_float(other):
        return one if is_float(one) else other
    wide, narrow = (one, other) if _bits(one) >= _bits(other) else (other, one)
    if is_float(one):
        return f32 if _bits(one) == _bits(other) else wide
    if _bits(wide) > _bits(narrow) and not is_unsigned(wide):
        return wide
    if is_unsigned(wide) == is_unsigned(narrow):
        return wide
    return i16 if _bits(wide) == 8 else i64


def _bits(dtype: Attribute) -> int:
    return lookup(dtype).bits
