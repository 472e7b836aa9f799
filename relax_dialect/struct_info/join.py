"""Join and meet of types, and refinement of what is declared by what is known."""

from __future__ import annotations

from typing import TypeVar

from relax_dialect.struct_info.match import Verdict, is_subtype, sharding_verdict
from relax_dialect.struct_info.sharding import ShardingAttr
from relax_dialect.struct_info.symbols import erase_symbols, free_symbols, substitute
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    PrimType,
    Shape,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
)
from tir_dialect.dims import Dim, Prover, symbol

T = TypeVar("T")


def join(left: StructInfo, right: StructInfo, prover: Prover | None = None) -> StructInfo:
    """The most precise type of which both are subtypes (TVM `TypeLCA`), dimension by dimension.

    J1: types of different kinds, and prims of different dtypes, have only object in common.
    J2: of tensors, shapes and prims the facts stay that provably agree: rank, each dimension, dtype, device, sharding,
    value.
    J3: tuples of one length are joined field by field; of different lengths they have only object in common.
    J4: of functions see `_join_functions`.
    """
    if left == right:
        return left
    prover = prover or Prover()
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        return TensorType(
            _join_shapes(left.dims, right.dims, prover),
            _agreed(left.dtype, right.dtype),
            _agreed(left.device, right.device),
            _join_shardings(left.sharding, right.sharding, prover),
        )  # J2
    if isinstance(left, ShapeType) and isinstance(right, ShapeType):
        return ShapeType(_join_shapes(left.dims, right.dims, prover))  # J2
    if isinstance(left, PrimType) and isinstance(right, PrimType) and left.dtype == right.dtype:
        return PrimType(left.dtype, _join_dims(left.value, right.value, prover))  # J2
    if isinstance(left, TupleType) and isinstance(right, TupleType) and len(left.fields) == len(right.fields):
        return TupleType(join(*pair, prover) for pair in zip(left.fields, right.fields, strict=True))  # J3
    if isinstance(left, FuncType) and isinstance(right, FuncType):
        return _join_functions(left, right, prover)  # J4
    return ObjectType()  # J1


def meet(left: StructInfo, right: StructInfo, prover: Prover | None = None) -> StructInfo | None:
    """The type of the values that have both types; `None` if it is empty or cannot be written.

    M1: facts that one type knows are added to the other.
    M2: facts that contradict each other, or are not provably the same, leave nothing.
    """
    if left == right or isinstance(right, ObjectType):
        return left
    if isinstance(left, ObjectType):
        return right
    prover = prover or Prover()
    try:
        if isinstance(left, TensorType) and isinstance(right, TensorType):
            shape = _meet_shapes(left.dims, right.dims, prover)
            if left.sharding is None or right.sharding is None:
                sharding = right.sharding if left.sharding is None else left.sharding
            else:
                if sharding_verdict(left.sharding, right.sharding, prover) is not Verdict.YES:
                    raise _Contradiction
                sharding = left.sharding
            return TensorType(shape, _both(left.dtype, right.dtype), _both(left.device, right.device), sharding)
        if isinstance(left, ShapeType) and isinstance(right, ShapeType):
            return ShapeType(_meet_shapes(left.dims, right.dims, prover))
        if isinstance(left, PrimType) and isinstance(right, PrimType) and left.dtype == right.dtype:
            return PrimType(left.dtype, _meet_dims(left.value, right.value, prover))
        if isinstance(left, TupleType) and isinstance(right, TupleType) and len(left.fields) == len(right.fields):
            fields = [meet(*pair, prover) for pair in zip(left.fields, right.fields, strict=True)]
            met = [field for field in fields if field is not None]
            if len(met) == len(fields):
                return TupleType(met)
        raise _Contradiction
    except _Contradiction:
        return None


class _Contradiction(Exception):
    """Two facts are not provably the same."""


def _agreed(left: T | None, right: T | None) -> T | None:
    return left if left == right else None


def _both(left: T | None, right: T | None) -> T | None:
    if left is not None and right is not None and left != right:
        raise _Contradiction
    return right if left is None else left


def _join_shardings(left: ShardingAttr | None, right: ShardingAttr | None, prover: Prover) -> ShardingAttr | None:
    if left is None or right is None:
        return None
    return left if sharding_verdict(left, right, prover) is Verdict.YES else None


def _join_dims(left: Dim | None, right: Dim | None, prover: Prover) -> Dim | None:
    if left is None or right is None:
        return None
    return left if prover.equal(left, right) else None


def _join_shapes(left: Shape, right: Shape, prover: Prover) -> Shape:
    if left is None or right is None or len(left) != len(right):
        return None
    return tuple(_join_dims(*pair, prover) for pair in zip(left, right, strict=True))


def _meet_dims(left: Dim | None, right: Dim | None, prover: Prover) -> Dim | None:
    if left is None or right is None:
        return right if left is None else left
    if not prover.equal(left, right):
        raise _Contradiction
    return left


def _meet_shapes(left: Shape, right: Shape, prover: Prover) -> Shape:
    if left is None or right is None:
        return right if left is None else left
    if len(left) != len(right):
        raise _Contradiction
    return tuple(_meet_dims(*pair, prover) for pair in zip(left, right, strict=True))


def _join_functions(left: FuncType, right: FuncType, prover: Prover) -> FuncType:
    """A function that is either of two can be called only as both can.

    J5: it is pure if both are.
    J6: its parameters are what both accept, the meet; if there is no such type, or only one binds the same symbols,
    or one is opaque, the function becomes opaque.
    J7: it returns the join of what both return.
    """
    pure = left.pure and right.pure
    derive = _agreed(left.derive, right.derive)
    # `func` with the names of the bound symbols of `other`, if both have equally many symbols and parameters.
    if (
        right.opaque
        or left.opaque
        or len(right.params) != len(left.params)
        or [bound.interval for bound in right.symbols] != [bound.interval for bound in left.symbols]
        or not free_symbols(right).isdisjoint(left.symbol_names)
    ):
        renamed = None
    else:
        renaming = {old: symbol(new) for old, new in zip(right.symbol_names, left.symbol_names, strict=True)}
        params = [substitute(param, renaming) for param in right.params]
        renamed = FuncType(params, substitute(right.ret, renaming), pure=right.pure, symbols=left.symbols)
    if renamed is not None:
        params = [meet(*pair, prover) for pair in zip(left.params, renamed.params, strict=True)]
        met = [param for param in params if param is not None]
        if len(met) == len(params):
            return FuncType(met, join(left.ret, renamed.ret, prover), pure=pure, symbols=left.symbols)
    ret = join(erase_symbols(left.ret, left.symbol_names), erase_symbols(right.ret, right.symbol_names), prover)
    return FuncType(None, ret, pure=pure, derive=derive)


def refine(declared: StructInfo, known: StructInfo) -> StructInfo:
    """`declared` with the facts that it leaves open filled in from `known`, another type of the same value.

    What both say stays as it is declared, also where they cannot be shown to agree: then a check is left for run time.

    R1: of an object everything is open.
    R2: of tensors, shapes and prims the rank, each dimension, dtype, device, sharding and value are filled in.
    R3: tuples of one length are refined field by field.
    R4: a function type gives way to another one that is provably a subtype.
    R5: types of different kinds, ranks or lengths leave what is declared.
    """
    if declared == known or isinstance(declared, ObjectType):
        return known  # R1
    if isinstance(declared, TensorType) and isinstance(known, TensorType):
        return TensorType(
            _shape(declared.dims, known.dims),
            _first(declared.dtype, known.dtype),
            _first(declared.device, known.device),
            _first(declared.sharding, known.sharding),
        )  # R2
    if isinstance(declared, ShapeType) and isinstance(known, ShapeType):
        return ShapeType(_shape(declared.dims, known.dims))  # R2
    if isinstance(declared, PrimType) and isinstance(known, PrimType) and declared.dtype == known.dtype:
        return PrimType(declared.dtype, _first(declared.value, known.value))  # R2
    if isinstance(declared, TupleType) and isinstance(known, TupleType) and len(declared.fields) == len(known.fields):
        return TupleType(refine(*pair) for pair in zip(declared.fields, known.fields, strict=True))  # R3
    if isinstance(declared, FuncType) and isinstance(known, FuncType) and is_subtype(known, declared) is Verdict.YES:
        return known  # R4
    return declared  # R5


def _first(declared: T | None, known: T | None) -> T | None:
    return known if declared is None else declared


def _shape(declared: Shape, known: Shape) -> Shape:
    if declared is None or known is None or len(declared) != len(known):
        return known if declared is None else declared
    return tuple(_first(*pair) for pair in zip(declared, known, strict=True))
