"""Refinement: what is declared of a value, with what is known about it besides."""

from __future__ import annotations

from typing import TypeVar

from relax_dialect.struct_info.base import Shape, StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType

T = TypeVar("T")


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
