"""Placeholders, elements of tensors, and what users give as extents and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IndexType

from tir_dialect.dims import Dim, DimLike, constant, symbol, to_dim
from tir_dialect.dtypes import ElementType
from tir_dialect.te import nodes
from tir_dialect.te.coerce import as_index, is_integer
from tir_dialect.te.expr import OPERATORS, Expr, Operand
from tir_dialect.te.nodes import Tensor
from tir_dialect.te.operators import DTypeLike, to_dtype

SIZE_DTYPES = ("index", "int32", "int64", "i32", "i64")
"""The dtypes that users may give to sizes."""

ExtentLike: TypeAlias = "DimLike | Expr"
"""An integer, a dimension, its text (`"2 * n"`), or index arithmetic on those."""

ShapeLike: TypeAlias = "Sequence[ExtentLike] | ExtentLike"
"""A sequence of extents, or a single extent for rank 1."""


def var(name: str, dtype: str = "index") -> Dim:
    """A symbolic size: a non-negative integer that is known when the kernel runs. Equal names are the same symbol.

    Sizes have 64 bits, whichever integer dtype is given; ValueError for a float dtype, for which there is `te.scalar`.
    """
    if not isinstance(cast("object", name), str):
        raise TypeError(f"te: expected the name of a size, got {name!r}")
    if dtype not in SIZE_DTYPES:
        raise ValueError(f'te: the size "{name}" expected one of {", ".join(SIZE_DTYPES)}, got {dtype}; use te.scalar')
    return symbol(name)


size_var = var
"""TVM's name for a size that is not negative, as all of ours are."""


def to_dimension(what: str, value: ExtentLike) -> Dim:
    """`value` as a dimension; TypeError if it is none, or depends on iteration variables or elements."""
    if not isinstance(value, Expr):
        try:
            return to_dim(value)
        except TypeError:
            raise TypeError(f'te: the extents of "{what}" must be integers or dimensions, got {value!r}') from None
    if isinstance(value, nodes.Const) and is_integer(value.dtype):
        return constant(int(value.value))
    if not isinstance(value, nodes.Size):
        raise TypeError(f'te: the extents of "{what}" must be computed from dimensions alone')
    return value.dim


def is_varying(value: ExtentLike) -> bool:
    """Whether a bound depends on iteration variables or elements."""
    return isinstance(value, Expr) and not isinstance(value, nodes.Size | nodes.Const)


def to_index(what: str, value: ExtentLike) -> Expr:
    """A bound of `what` as an `index` expression."""
    return as_index(f'te: a bound of "{what}"', value if isinstance(value, Expr) else to_dim(value))


def to_extent(what: str, extent: ExtentLike) -> Dim:
    """An extent as a dimension; ValueError for a negative one, and for one of more than 64 bits."""
    dim = to_dimension(what, extent)
    if (known := dim.constant_value) is not None and not 0 <= known < 1 << 63:
        raise ValueError(f'te: an extent of "{what}" is {known}, expected at least 0 and less than 2**63')
    return dim


def to_shape(what: str, shape: ShapeLike) -> tuple[Dim, ...]:
    """A shape from one extent or several; TypeError or ValueError as `to_extent`."""
    if isinstance(shape, Sequence) and not isinstance(shape, str):
        return tuple(to_extent(what, extent) for extent in shape)
    return (to_extent(what, shape),)


def element(tensor: Tensor, indices: Operand | tuple[Operand, ...]) -> Expr:
    """`tensor[indices]`."""
    given = indices if isinstance(indices, tuple) else (indices,)
    if given and len(given) < tensor.ndim:
        return nodes.Slice(tensor, given)
    if len(given) != tensor.ndim:
        raise IndexError(f'te: tensor "{tensor.name}" has rank {tensor.ndim}, got {len(given)} indices')
    return nodes.load(tensor, tuple(as_index(f'te: tensor "{tensor.name}"', index) for index in given))


OPERATORS["element"] = element


def to_element_type(what: str, dtype: DTypeLike) -> ElementType:
    """A dtype that a buffer can hold; TypeError for `index`."""
    kind = to_dtype(dtype)
    if isinstance(kind, IndexType):
        raise TypeError(f'te: "{what}" cannot have elements of dtype index, use te.cast to choose a width')
    return kind


def placeholder(shape: ShapeLike, dtype: DTypeLike = "f32", name: str = "placeholder") -> Tensor:
    """An input with the given shape, such as `(n, 4)` or `("2 * n", m)`."""
    return Tensor(name, to_shape(name, shape), to_element_type(name, dtype))
