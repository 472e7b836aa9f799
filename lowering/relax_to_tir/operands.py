"""What is known about an op's operands and properties besides tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.types import PrimType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_bool


def is_runtime_prim(value: SSAValue) -> bool:
    """Whether a value is a prim value that is only known at run time: no constant, and no dimension."""
    info = value.type
    return isinstance(info, PrimType) and info.value is None and literal(value) is None


def literal(value: SSAValue) -> float | bool | None:
    """The number that a prim value is, if the program says so; dimensions are not looked at."""
    prim = value.owner
    if not isinstance(prim, PrimOp) or isinstance(prim.value, DimAttr):
        return None
    number = prim.value.value.data
    return bool(number) if is_bool(prim.value.type) else number


def dims_of(op: Operation) -> Iterator[Dim]:
    """The dimensions among the prim operands and the properties of an op."""
    for value in op.operands:
        if isinstance(value.type, PrimType) and value.type.value is not None:
            yield value.type.value
    for _, attribute in sorted(op.properties.items(), key=lambda item: item[0]):
        yield from dims_in(attribute)


def dims_in(attribute: Attribute) -> Iterator[Dim]:
    """The dimensions that a property is, alone or in a list."""
    elements = cast("ArrayAttr[Attribute]", attribute).data if isinstance(attribute, ArrayAttr) else (attribute,)
    for element in elements:
        if isinstance(element, DimAttr):
            yield element.data
