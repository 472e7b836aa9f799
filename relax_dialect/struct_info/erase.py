"""Erasure: forgetting what cannot be said in a scope, or what is not static. The result is always a supertype."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from relax_dialect.struct_info.base import Shape, StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType

_Keep: TypeAlias = Callable[[frozenset[str]], bool]
"""Whether a dimension over these symbols may stay."""


def erase_to_scope(info: StructInfo, scope: Collection[str]) -> StructInfo:
    """`info` without the dimensions that use a symbol outside `scope` (TVM `EraseToWellDefined`).

    Only those dimensions are forgotten, not the whole shape.

    E1: a dimension with a symbol out of scope becomes unknown; a sharding with such a size of its mesh is forgotten.
    E2: a prim value with a symbol out of scope is forgotten, its dtype stays.
    E3: tuples are erased field by field.
    E4: a function of which a parameter would have to be erased becomes opaque, because forgetting what a parameter
    must be would let it accept more than it can; otherwise only its result is erased.
    """
    return _erase(info, lambda symbols: all(name in scope for name in symbols))


def erase_symbols(info: StructInfo, symbols: Collection[str]) -> StructInfo:
    """`info` without the dimensions that use one of `symbols`."""
    forbidden = frozenset(symbols)
    return _erase(info, forbidden.isdisjoint) if forbidden else info


def erase_static(info: StructInfo) -> StructInfo:
    """`info` with its kind, rank, dtype, device and structure only (TVM `GetStaticType`).

    E5: constants are forgotten as well as symbols.
    """
    return _erase(info, lambda symbols: False)


def _erase(info: StructInfo, keep: _Keep) -> StructInfo:
    if isinstance(info, TensorType):
        shape = _erase_shape(info.dims, keep)
        sharding = info.sharding
        if sharding is not None and not keep(frozenset(sharding.symbols)):
            sharding = None
        if (shape, sharding) == (info.dims, info.sharding):
            return info
        return TensorType(shape, info.dtype, info.device, sharding)  # E1
    if isinstance(info, ShapeType):
        shape = _erase_shape(info.dims, keep)
        return info if shape == info.dims else ShapeType(shape)  # E1
    if isinstance(info, PrimType):
        return info if info.value is None or keep(info.value.symbols) else PrimType(info.dtype)  # E2
    if isinstance(info, TupleType):
        return TupleType(_erase(field, keep) for field in info.fields)  # E3
    if isinstance(info, FuncType):
        return _erase_function(info, keep)  # E4
    return info


def _erase_shape(shape: Shape, keep: _Keep) -> Shape:
    return shape and tuple(dim if dim is not None and keep(dim.symbols) else None for dim in shape)


def _erase_function(func: FuncType, keep: _Keep) -> StructInfo:
    bound = frozenset(func.symbol_names)

    def keep_inside(symbols: frozenset[str]) -> bool:
        return keep(symbols - bound)

    ret = _erase(func.ret, keep_inside)
    if any(_erase(param, keep_inside) != param for param in func.params):
        return FuncType(None, erase_symbols(ret, bound), pure=func.pure)
    if func.opaque:
        return FuncType(None, ret, pure=func.pure, derive=func.derive)
    return FuncType(func.params, ret, pure=func.pure, symbols=func.symbols)
