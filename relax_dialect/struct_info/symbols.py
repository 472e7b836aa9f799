"""Symbols in types: which are free, substitution that respects the symbols a function binds, and erasure.

Erasure forgets what cannot be said in a scope, or what is not static. The result is always a supertype.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias, TypeVar, cast

from xdsl.ir import Attribute

from relax_dialect.struct_info.types import (
    FuncType,
    PrimType,
    Shape,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
    shape_symbols,
)
from tir_dialect.dims import Dim, symbol
from tir_dialect.types import SymbolAttr

StructInfoT = TypeVar("StructInfoT", bound=StructInfo)


def iter_symbols(info: Attribute) -> Iterator[str]:
    """The free symbols of a type, in order of occurrence, with repetitions; none for what is not a relax type."""
    if isinstance(info, TensorType | ShapeType):
        yield from shape_symbols(info.dims)
        if isinstance(info, TensorType) and info.sharding is not None:
            yield from info.sharding.symbols
    elif isinstance(info, PrimType):
        yield from shape_symbols((info.value,))
    elif isinstance(info, TupleType):
        for field in info.fields:
            yield from iter_symbols(field)
    elif isinstance(info, FuncType):
        bound = set(info.symbol_names)
        for part in (*info.params, info.ret):
            yield from (name for name in iter_symbols(part) if name not in bound)


def iter_bare_symbols(info: Attribute) -> Iterator[str]:
    """The symbols that are a whole dimension or prim value, outside of function types: those that a match binds
    first.
    """
    dims: Shape = None
    if isinstance(info, TensorType | ShapeType):
        dims = info.dims
    elif isinstance(info, PrimType):
        dims = (info.value,)
    elif isinstance(info, TupleType):
        for field in info.fields:
            yield from iter_bare_symbols(field)
    yield from (dim.as_symbol for dim in dims or () if dim is not None and dim.as_symbol is not None)


def free_symbols(info: Attribute) -> frozenset[str]:
    """The free symbols of a type: those that the surrounding scope has to witness."""
    return frozenset(iter_symbols(info))


def substitute(info: StructInfoT, mapping: Mapping[str, Dim]) -> StructInfoT:
    """`info` with every free symbol replaced at once; symbols bound by a function type are renamed out of the way."""
    if not mapping or free_symbols(info).isdisjoint(mapping):
        return info
    return cast("StructInfoT", _substitute(info, mapping))


def substitute_shape(shape: Shape, mapping: Mapping[str, Dim]) -> Shape:
    """`shape` with every symbol replaced at once."""
    return shape and tuple(None if dim is None else dim.substitute(mapping) for dim in shape)


def _substitute(info: StructInfo, mapping: Mapping[str, Dim]) -> StructInfo:
    if isinstance(info, TensorType):
        sharding = info.sharding and info.sharding.substitute(mapping)
        return TensorType(substitute_shape(info.dims, mapping), info.dtype, info.device, sharding)
    if isinstance(info, ShapeType):
        return ShapeType(substitute_shape(info.dims, mapping))
    if isinstance(info, PrimType) and info.value is not None:
        return PrimType(info.dtype, info.value.substitute(mapping))
    if isinstance(info, TupleType):
        return TupleType(_substitute(field, mapping) for field in info.fields)
    if isinstance(info, FuncType):
        return _substitute_function(info, mapping)
    return info


def _substitute_function(func: FuncType, mapping: Mapping[str, Dim]) -> FuncType:
    inner = {name: dim for name, dim in mapping.items() if name not in func.symbol_names}
    incoming = {name for dim in inner.values() for name in dim.symbols}
    taken = incoming | free_symbols(func) | set(func.symbol_names)
    symbols: list[SymbolAttr] = []
    for bound in func.symbols:
        name = bound.symbol.data
        if name in incoming:
            name = fresh_name(name, taken)
            taken.add(name)
            inner[bound.symbol.data] = symbol(name)
        symbols.append(SymbolAttr(name, *bound.interval))
    return FuncType(
        None if func.opaque else [_substitute(param, inner) for param in func.params],
        _substitute(func.ret, inner),
        pure=func.pure,
        symbols=symbols,
        derive=func.derive,
    )


def fresh_name(base: str, taken: Collection[str]) -> str:
    """`base` if it is free, else `base_1`, `base_2`, ..."""
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


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
