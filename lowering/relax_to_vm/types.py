"""Types of relax values as types of the virtual machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Attribute

from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim
from tir_dialect.dims.expr import parse_dim
from tir_dialect.dtypes import parse_dtype
from vm_dialect import types as vm
from vm_dialect.dtypes import ELEMENT_TYPES
from vm_dialect.executable import SignatureTypes
from vm_dialect.executable.model import split_list


def vm_type(info: Attribute) -> Attribute:
    """The type of the register that holds a value of this structural information.

    Numbers are unboxed (`i64`, `i1`, `f64`), tensors and shapes keep what is known about rank and dtype, and everything
    else is `!vm.object`.
    """
    match info:
        case TensorType():
            return vm.TensorType(info.rank, info.dtype)
        case ShapeType():
            return vm.ShapeType(info.rank)
        case PrimType():
            return scalar_type(info.dtype)
        case StructInfo():
            return vm.OBJECT
        case _:
            return info


def scalar_type(dtype: Attribute) -> Attribute:
    """The register type of a scalar: every integer is an `i64`, every float an `f64`."""
    if isinstance(dtype, AnyFloat):
        return vm.F64
    if dtype == vm.I1:
        return vm.I1
    return vm.I64


def declared_types(module: ModuleOp) -> Mapping[str, SignatureTypes]:
    """What callers are told of the types of each public function of the graph level, by name."""
    return {
        func.sym_name.data: SignatureTypes(
            tuple(map(type_text, func.function_type.params)), type_text(func.function_type.ret)
        )
        for func in module.ops
        if isinstance(func, FuncOp) and not func.is_private
    }


def type_text(info: Attribute) -> str:
    """A type as `SignatureTypes` has it."""
    match info:
        case TensorType():
            dtype = "?" if info.dtype is None else str(info.dtype)
            dims = [None] * (info.rank or 0) if info.dims is None else info.dims
            return f"{dtype}[...]" if info.rank is None else f"{dtype}[{', '.join(map(_dim_text, dims))}]"
        case ShapeType():
            dims = [None] * (info.rank or 0) if info.dims is None else info.dims
            return "shape[...]" if info.rank is None else f"shape[{', '.join(map(_dim_text, dims))}]"
        case PrimType():
            return str(info.dtype)
        case TupleType():
            return f"({', '.join(map(type_text, info.fields))})"
        case FuncType():
            return "function"
        case _:
            return "object"


def _dim_text(dim: Dim | None) -> str:
    return "?" if dim is None else str(dim)


_SHAPED = re.compile(r"(?P<dtype>\w+|\?)\[(?P<dims>.*)\]")


def parse_type(text: str) -> Attribute:
    """The type that `type_text` has written, as far as the text says it: functions and objects are `object`."""
    if text.startswith("(") and text.endswith(")"):
        return TupleType([cast(StructInfo, parse_type(field)) for field in split_list(text[1:-1])])
    if (match := _SHAPED.fullmatch(text)) is not None:
        unknown = match["dims"] == "..."
        dims = None if unknown else [None if dim == "?" else parse_dim(dim) for dim in split_list(match["dims"])]
        if match["dtype"] == "shape":
            return ShapeType(dims)
        return TensorType(dims, None if match["dtype"] == "?" else parse_dtype(match["dtype"]))
    return PrimType(parse_dtype(text)) if text in ELEMENT_TYPES else ObjectType()
