"""What a PrimFunc returns: a scalar, which it writes to a last parameter that the text has not."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import f32, i1, i32
from xdsl.ir import Attribute

from relax_dialect.frontend.tvmscript.prim_func.addresses import ADDRESS, names_handle
from relax_dialect.frontend.tvmscript.prim_func.dtypes import element_name
from relax_dialect.frontend.tvmscript.prim_func.jumps import RETURN, jump_of, returned_value
from relax_dialect.frontend.tvmscript.prim_func.parameters import Parameter, read_scalar_type
from relax_dialect.frontend.tvmscript.text.static import StaticReader
from tir_dialect.dtypes import is_float, parse_dtype
from tir_dialect.types import BufferType


def read_result(reader: StaticReader, node: ast.FunctionDef, parameters: Sequence[Parameter]) -> BufferType | None:
    """The type of the last parameter; `None` if the function returns nothing. An annotation is `None`, a dtype, or
    `T.handle`: an address.
    """
    is_handle = node.returns is not None and names_handle(reader, node.returns)
    declared = ADDRESS if is_handle else read_scalar_type(reader, node.returns)
    if declared is None and not (node.returns is None or _says_nothing(node.returns)):
        reader.fail(node.returns, "expected a dtype such as T.int32 as the result of a PrimFunc, T.handle, or None")
    values = [returned_value(each) for each in ast.walk(node) if jump_of(reader.aliases, each) == RETURN]
    returned = [value for value in values if value is not None]
    if not returned:
        return None
    if declared is None:
        found = {each.buffer_name or each.name: each.dtype or _dtype_of(each.buffer) for each in parameters}
        declared = next((dtype for value in returned if (dtype := _dtype(reader, value, found)) is not None), None)
    return None if declared is None else BufferType([], declared)


def _says_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _dtype_of(buffer: BufferType | None) -> Attribute | None:
    return None if buffer is None else buffer.dtype


def _dtype(reader: StaticReader, node: ast.expr, names: Mapping[str, Attribute | None]) -> Attribute | None:
    """The dtype of an expression, as far as its text shows it."""
    match node:
        case ast.Constant(value=bool()):
            return i1
        case ast.Constant(value=int()):
            return i32
        case ast.Constant(value=float()):
            return f32
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return names.get(name)
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return i1
        case ast.Call():
            name = element_name(reader.aliases.name_in("tir", node.func) or "")
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            known = next((each for each in (name, *texts) if isinstance(each, str) and _is_dtype(each)), None)
            return parse_dtype(known) if known is not None else _float(_common(reader, node.args, names))
        case ast.BinOp(op=ast.Div()):
            return _float(_common(reader, [node.left, node.right], names))
        case _:
            return _common(reader, [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)], names)


def _float(dtype: Attribute | None) -> Attribute | None:
    """A dtype that functions of floats keep; what they make of integers their names do not show."""
    return dtype if dtype is not None and is_float(dtype) else None


def _common(reader: StaticReader, nodes: Sequence[ast.expr], names: Mapping[str, Attribute | None]) -> Attribute | None:
    """The dtype of an operation on expressions: that of the first one that is no number."""
    ordered = sorted(nodes, key=lambda each: isinstance(each, ast.Constant))
    return next((dtype for each in ordered if (dtype := _dtype(reader, each, names)) is not None), None)


def _is_dtype(name: str) -> bool:
    try:
        parse_dtype(name)
    except ValueError:
        return False
    return True
