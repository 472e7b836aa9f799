"""Attributes of the functions and parameters that we emit."""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from lowering.tir_to_llvm.emitter import LoweringOptions
from tir_dialect.dtypes import byte_size
from tir_dialect.types import BufferType


def function_properties(options: LoweringOptions, crowded: bool = False) -> dict[str, Attribute]:
    """Properties of a function with code: it throws no exceptions, and prefers vectors of the target's width.

    Where registers are `crowded`, the stack begins at a multiple of theirs: LLVM leaves it where it is, and to load
    what was stored across two lines of the cache just before takes as long as a dozen instructions.
    """
    return {"passthrough": _passthrough(options.vector_bits, crowded)}


@cache
def _passthrough(vector_bits: int, crowded: bool) -> ArrayAttr[Attribute]:
    found: list[Attribute] = [StringAttr("nounwind"), _pair("prefer-vector-width", vector_bits)]
    if crowded:
        found.append(_pair("alignstack", vector_bits // 8))
    return ArrayAttr(found)


def _pair(name: str, value: int) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name), StringAttr(str(value))])


def buffer_attributes(type_: BufferType, alone: bool) -> DictionaryAttr:
    """Attributes of a pointer parameter: its alignment, and whether nothing else points to its memory.

    The alignment is that of an element: what the type says is of memory that a function allocates, and callers bring
    arrays that begin anywhere.
    """
    return _pointer_attributes(byte_size(type_.dtype), alone)


@cache
def _pointer_attributes(alignment: int, alone: bool) -> DictionaryAttr:
    attributes: dict[str, Attribute] = {"llvm.align": IntegerAttr(alignment, i64)}
    if alone:
        attributes["llvm.noalias"] = UnitAttr()
    return DictionaryAttr(attributes)
