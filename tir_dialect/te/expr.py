"""Scalar expressions: small immutable trees, shared by construction.

Expressions are hash-consed: two with the same parts are one object, so a common subexpression is computed once and
equality is `is`. All operators build expressions, `==` included. A dtype is an element type of a buffer (signedness
kept) or `index`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import IndexType

from tir_dialect.dims import Dim
from tir_dialect.dtypes import ElementType

DType: TypeAlias = "ElementType | IndexType"
Scalar: TypeAlias = "int | float | bool"
Operand: TypeAlias = "Expr | Dim | Scalar"
"""What an operator accepts. A Python number takes the dtype of the other operand; a dimension is an `index`."""

INDEX = IndexType()

OPERATORS: dict[str, Callable[..., Any]] = {}
"""What the methods of expressions and tensors do, by name; the modules that compute it enter themselves here."""


class Expr:
    """A scalar value of dtype `dtype`, computed from `operands`."""

    __slots__ = ("__weakref__", "dtype", "operands")

    dtype: DType
    operands: tuple[Expr, ...]

    def __init__(self, dtype: DType, operands: tuple[Expr, ...] = ()):
        self.dtype = dtype
        self.operands = operands

    def __repr__(self) -> str:
        text: str = OPERATORS["text"](self)
        return text

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a te expression has no truth value while the program is built; "
            "use te.if_then_else or te.select, and & | ~ instead of and, or, not and chained comparisons"
        )

    def __iter__(self) -> Iterator[Expr]:
        raise TypeError("a te expression is a scalar and cannot be iterated over")

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr:
        """An element of a partially indexed tensor, `A[i][j]`."""
        raise TypeError("a te expression is a scalar and has no elements")

    def astype(self, dtype: str) -> Expr:
        """The value converted to a dtype, as by `te.cast`."""
        return OPERATORS["cast"](self, dtype)

    def __eq__(self, other: object) -> Any:
        return OPERATORS["compare"]("eq", self, cast("Operand", other))

    def __ne__(self, other: object) -> Any:
        return OPERATORS["compare"]("ne", self, cast("Operand", other))

    def __lt__(self, other: Operand) -> Expr:
        return OPERATORS["compare"]("lt", self, other)

    def __le__(self, other: Operand) -> Expr:
        return OPERATORS["compare"]("le", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return OPERATORS["compare"]("gt", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return OPERATORS["compare"]("ge", self, other)

    def __add__(self, other: Operand) -> Expr:
        return OPERATORS["add"](self, other)

    def __radd__(self, other: Operand) -> Expr:
        return OPERATORS["add"](other, self)

    def __sub__(self, other: Operand) -> Expr:
        return OPERATORS["subtract"](self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return OPERATORS["subtract"](other, self)

    def __mul__(self, other: Operand) -> Expr:
        return OPERATORS["multiply"](self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return OPERATORS["multiply"](other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return OPERATORS["divide"](self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return OPERATORS["divide"](other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return OPERATORS["floordiv"](self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return OPERATORS["floordiv"](other, self)

    def __mod__(self, other: Operand) -> Expr:
        return OPERATORS["floormod"](self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return OPERATORS["floormod"](other, self)

    def __pow__(self, other: Operand) -> Expr:
        return OPERATORS["power"](self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return OPERATORS["power"](other, self)

    def __and__(self, other: Operand) -> Expr:
        return OPERATORS["bitwise_and"](self, other)

    def __rand__(self, other: Operand) -> Expr:
        return OPERATORS["bitwise_and"](other, self)

    def __or__(self, other: Operand) -> Expr:
        return OPERATORS["bitwise_or"](self, other)

    def __ror__(self, other: Operand) -> Expr:
        return OPERATORS["bitwise_or"](other, self)

    def __xor__(self, other: Operand) -> Expr:
        return OPERATORS["bitwise_xor"](self, other)

    def __rxor__(self, other: Operand) -> Expr:
        return OPERATORS["bitwise_xor"](other, self)

    def __lshift__(self, other: Operand) -> Expr:
        return OPERATORS["left_shift"](self, other)

    def __rshift__(self, other: Operand) -> Expr:
        return OPERATORS["right_shift"](self, other)

    def __neg__(self) -> Expr:
        return OPERATORS["negative"](self)

    def __pos__(self) -> Expr:
        return self

    def __invert__(self) -> Expr:
        return OPERATORS["bitwise_not"](self)

    def __abs__(self) -> Expr:
        return OPERATORS["absolute"](self)
