"""Types, dimensions and plain values as text."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation

from relax_dialect.struct_info.base import Shape
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.attributes import DimAttr
from tir_dialect.dtypes import is_dtype
from tir_dialect.tvmscript.text import dim_text, dtype_text, refuse, tuple_of


def type_text(info: Attribute, op: Operation) -> str:
    """A type, in an annotation or an argument; `ScriptError` at the op for one that TVM has not."""
    match info:
        case TensorType():
            return _tensor(info, op)
        case ShapeType():
            if info.dims is None:
                return "R.Shape(ndim=-1)" if info.rank is None else f"R.Shape(ndim={info.rank})"
            return f"R.Shape([{', '.join(_dims(info.dims, op))}])"
        case PrimType():
            return f"T.{dtype_text(info.dtype)}"
        case TupleType():
            return f"R.Tuple({', '.join(type_text(field, op) for field in info.fields)})"
        case FuncType() if not info.opaque and not info.symbols:
            params = ", ".join(type_text(param, op) for param in info.params)
            return (
                f"R.Callable(({params}{',' if len(info.params) == 1 else ''}), {type_text(info.ret, op)}, {info.pure})"
            )
        case ObjectType():
            return "R.Object"
        case _:
            raise refuse(op, f"TVM has no type {info}")


def _tensor(info: TensorType, op: Operation) -> str:
    if info.sharding is not None:
        raise refuse(op, "the sharding of a type is not written")
    parts: list[str] = []
    if info.dims is not None and None not in info.dims:
        parts.append(tuple_of(_dims(info.dims, op)) if info.dims else "()")
    dtype = [] if info.dtype is None else [f'dtype="{dtype_text(info.dtype)}"']
    if not parts and info.rank is not None:
        if info.dims is not None and any(dim is not None for dim in info.dims):
            raise refuse(op, f"TVM has no type with known dimensions beside unknown ones: {info}")
        return f"R.Tensor({', '.join([*dtype, f'ndim={info.rank}'])})"
    return f"R.Tensor({', '.join([*parts, *dtype])})"


def _dims(dims: Shape, op: Operation) -> list[str]:
    found = [] if dims is None else [None if dim is None else dim_text(dim).text for dim in dims]
    known = [text for text in found if text is not None]
    if len(known) != len(found):
        raise refuse(op, "TVM has no shape with unknown dimensions beside known ones")
    return known


def attribute_text(attribute: Attribute, op: Operation) -> str:
    """A property as an argument."""
    match attribute:
        case IntegerAttr():
            return (
                str(bool(attribute.value.data)) if dtype_text(attribute.type) == "bool" else str(attribute.value.data)
            )
        case FloatAttr():
            return float_text(attribute.value.data)
        case StringAttr():
            return quoted(attribute.data)
        case UnitAttr():
            return "True"
        case DimAttr():
            return dim_text(attribute.data).text
        case ArrayAttr():
            items: Sequence[Any] = attribute.data
            return f"[{', '.join(attribute_text(each, op) for each in items)}]"
        case _ if is_dtype(attribute):
            return f'"{dtype_text(attribute)}"'
        case _:
            values = getattr(attribute, "get_values", None)
            if values is None:
                raise refuse(op, f"there is no text for {attribute}")
            return str(list(values()))


def float_text(value: float) -> str:
    """A float, also one that Python has no literal for."""
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def quoted(text: str) -> str:
    """A string of Python, in double quotes as TVM writes them."""
    return json.dumps(text, ensure_ascii=False)
