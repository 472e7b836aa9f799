"""Calls of C functions and packed functions, as expressions or as statements of an extern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, overload

from tir_dialect.dims import Dim
from tir_dialect.te import conversions
from tir_dialect.te.coerce import as_index
from tir_dialect.te.conversions import DTypeLike
from tir_dialect.te.expr import Expr
from tir_dialect.te.statements import Call
from tir_dialect.te.tensor import Tensor

Argument: TypeAlias = "Tensor | Expr | Dim | int"


@overload
def call_extern(dtype: DTypeLike, symbol: str, *args: Expr) -> Expr: ...
@overload
def call_extern(dtype: DTypeLike, symbol: str, *args: Argument) -> Expr | Call: ...
def call_extern(dtype: DTypeLike, symbol: str, *args: Argument) -> Expr | Call:
    """A call of the C function `symbol`. With scalar arguments it is an expression; the function must be pure, since it
    may be called any number of times.

    With a tensor among the arguments, which is passed as the address of its data, it is a statement for `te.extern`.
    """
    known = arguments(args)
    scalars = [arg for arg in known if isinstance(arg, Expr)]
    if len(scalars) == len(known):
        return conversions.call_extern(dtype, symbol, *scalars)
    return Call(symbol, known, packed=False)


def call_packed(symbol: str, *args: Argument) -> Call:
    """A statement for `te.extern` that calls a function of the tvm-ffi registry; tensors are passed as tensors."""
    return Call(symbol, arguments(args), packed=True)


def arguments(args: Sequence[Argument]) -> tuple[Tensor | Expr, ...]:
    """The arguments of a call as expressions; sizes and Python integers are passed as 64-bit integers (`index`)."""
    return tuple(arg if isinstance(arg, Tensor | Expr) else as_index("te: an argument of a call", arg) for arg in args)
