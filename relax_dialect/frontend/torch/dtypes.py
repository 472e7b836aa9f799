"""Element types of PyTorch, the one that operands of different types have in common, and tensors as arrays on the same
memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from xdsl.dialects.builtin import f32, i1, i16, i64
from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.program import Refusal, torch
from tir_dialect.dtypes import ElementType, is_bool, is_float, is_unsigned, lookup, numpy_dtype, parse_dtype

_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def is_complex(value: Any) -> bool:
    """Whether a value of PyTorch is a complex number, or a tensor of them."""
    return isinstance(value, complex) or (isinstance(value, torch().Tensor) and value.is_complex())


def element_type(dtype: Any) -> ElementType:
    """The element type that is a `torch.dtype`, of complex numbers that of their parts; `Refusal` if there is none."""
    name = str(dtype).removeprefix("torch.")
    try:
        return parse_dtype(_PARTS.get(name, name))
    except ValueError:
        raise Refusal(f"elements of type {name} are not supported") from None


def to_array(tensor: Any) -> Any:
    """A tensor as an array on its memory; it is copied if it is not on the CPU, or not in order.

    Complex numbers have their two parts as last dimension.
    """
    dtype = numpy_dtype(element_type(tensor.dtype))
    if tensor.layout is not torch().strided:
        raise Refusal(f"tensors of layout {str(tensor.layout).removeprefix('torch.')} are not supported")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    plain = torch().view_as_real(plain) if plain.is_complex() else plain
    if dtype.type.__module__ == "ml_dtypes":  # NumPy has no such dtype of its own
        return plain.view(torch().int16 if dtype.itemsize == 2 else torch().uint8).numpy().view(dtype)
    return plain.numpy()


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
