"""Attributes of the functions and parameters that we emit."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from lowering.to_llvm.emitter import LoweringOptions
from tir_dialect.dtypes import byte_size
from tir_dialect.types import BufferType


def function_properties(options: LoweringOptions) -> dict[str, Attribute | None]:
    """Properties of a function with code: it throws no exceptions, and prefers vectors of the target's width."""
    width = ArrayAttr([StringAttr("prefer-vector-width"), StringAttr(str(options.vector_bits))])
    return {"passthrough": ArrayAttr[Attribute]([StringAttr("nounwind"), width])}


def buffer_attributes(type_: BufferType, alone: bool) -> DictionaryAttr:
    """Attributes of a pointer parameter: its alignment, and whether nothing else points to its memory.

    The alignment is that of an element: what the type says is of memory that a function allocates, and callers bring
    arrays that begin anywhere.
    """
    attributes: dict[str, Attribute] = {"llvm.align": IntegerAttr(byte_size(type_.dtype), i64)}
    if alone:
        attributes["llvm.noalias"] = UnitAttr()
    return DictionaryAttr(attributes)
