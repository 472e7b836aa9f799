"""The parameters of a PrimFunc: buffers, scalars, and handles, whose types the body gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute

from relax_dialect.frontend.tvmscript.prim_func.buffers import (
    DECLARATIONS,
    element_dtype,
    read_annotation,
    read_buffer_type,
)
from relax_dialect.frontend.tvmscript.prim_func.conventions import address_names, convention_of
from relax_dialect.frontend.tvmscript.prim_func.dtypes import element_name
from relax_dialect.frontend.tvmscript.prim_func.values import Declared
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.errors import TVMScriptError
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.signature import parameters
from relax_dialect.frontend.tvmscript.text.static import StaticReader, is_dtype_name
from tir_dialect.dims import symbol
from tir_dialect.dtypes import parse_dtype
from tir_dialect.types import BufferType

_HANDLES = ("handle", "Ptr")
_WITH_SHAPE = frozenset({"alloc_buffer", "sblock_alloc_buffer", "alloc_local", "block_alloc_buffer", *DECLARATIONS})


@dataclass
class Parameter:
    """One parameter of the text; a handle gets its type by `T.match_buffer` or `T.decl_buffer`."""

    name: str
    node: ast.arg
    buffer: BufferType | None = None
    lanes: int | None = None
    """The lanes of the elements of the buffer, if they are vectors."""
    start: str = ""
    """The name for the place of its first element."""
    buffer_name: str = ""
    dtype: Attribute | None = None
    is_symbol: bool = False
    is_pointer: bool = False
    """Whether the name stands for the memory, which the body declares buffers over."""
    is_address: bool = False
    """Whether it is a pointer that the body looks at, an integer."""

    def declare(self, found: Declared | None, name: str) -> None:
        """Gives the parameter the type of a buffer, under a name."""
        self.buffer_name = name
        if found is not None:
            self.buffer, self.lanes, self.start = found.type, found.lanes, found.start

    @property
    def is_unused(self) -> bool:
        """Whether it is a handle that the body does not mention: the op has no such parameter."""
        return self.buffer is None and self.dtype is None


def read_parameters(reader: StaticReader, node: ast.FunctionDef) -> list[Parameter]:
    """The parameters with what their annotations say; integers and symbols of shapes become dimensions."""
    found = [Parameter(argument.arg, argument) for argument in parameters(reader.source, node)]
    for each in found:
        if (dtype := read_scalar_type(reader, each.node.annotation)) is not None:
            each.dtype = dtype
            if is_size(dtype):
                reader.declare(each.node, each.name)
    addresses = address_names(reader.aliases, node)
    for each in found:
        annotation = each.node.annotation
        if annotation is not None and each.dtype is None:
            each.declare(_buffer(reader, annotation), each.name)
            if each.buffer is None and each.name in addresses:
                each.dtype, each.is_address = i64, True
    return found


def is_size(dtype: Attribute | None) -> bool:
    """Whether a parameter of a dtype can be a dimension."""
    return dtype in (i32, i64)


def read_scalar_type(reader: StaticReader, node: ast.expr | None) -> Attribute | None:
    """The dtype that an annotation such as `T.int32` or `R.Prim("float16")` names; `None` for another one."""
    if isinstance(node, ast.Call) and reader.aliases.name_in("relax", node.func) == "Prim":
        return reader.dtype(Arguments(reader.source, node, "R.Prim", "dtype").require("dtype"))
    target = node.func if isinstance(node, ast.Call) and not node.args else node
    name = None if target is None else reader.aliases.name_in("tir", target)
    name = None if name is None else element_name(name)
    return parse_dtype(name) if name is not None and is_dtype_name(name) else None


def _buffer(reader: StaticReader, node: ast.expr) -> Declared | None:
    found = read_annotation(reader, node)
    if found is not None:
        return found
    head = node.func if isinstance(node, ast.Call) else node
    if reader.aliases.name_in("tir", head) in _HANDLES:
        return None
    reader.fail(node, "expected T.Buffer(...), T.handle, or a dtype such as T.int64")


# Handles


def match_handles(reader: StaticReader, node: ast.FunctionDef, found: Sequence[Parameter]) -> Iterator[ast.stmt]:
    """Gives handles the types of `T.match_buffer`; yields these statements."""
    handles = {each.name: each for each in found if each.is_unused}
    for statement in node.body:
        matched = _matched(reader.aliases, statement)
        if matched is None:
            continue
        target, call, name = matched
        handle = handles.get(name)
        if handle is None and name not in {each.name for each in found} and _is_sketch(reader.aliases, node):
            # blocks with extents are of texts that misprint names
            handle = next((each for each in handles.values() if each.is_unused), None)
        if handle is not None:
            declared = read_buffer_type(reader, call, "T.match_buffer", "param", implicit=True, is_parameter=True)
            handle.declare(declared, target)
            yield statement


def _matched(aliases: Aliases, statement: ast.stmt) -> tuple[str, ast.Call, str] | None:
    """The name, the call and the handle of `A = T.match_buffer(a, ...)`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(args=[ast.Name(id=handle), *_]) as call):
            return (target, call, handle) if aliases.name_in("tir", call.func) == "match_buffer" else None
        case _:
            return None


def _is_sketch(aliases: Aliases, function: ast.FunctionDef) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.With) and isinstance(node.items[0].context_expr, ast.Call):
            call = node.items[0].context_expr
            if (
                aliases.name_in("tir", call.func) == "block"
                and call.args
                and not isinstance(call.args[0], ast.Constant)
            ):
                return True
    return False


def declare_handles(reader: StaticReader, node: ast.FunctionDef, found: Sequence[Parameter]) -> None:
    """Gives other handles the types of the first `T.decl_buffer(..., data=handle)`.

    One that the body only hands on is a row of elements of unknown length; bytes, if its type is not given.
    """
    uses = {each.id for statement in node.body for each in ast.walk(statement) if isinstance(each, ast.Name)}
    declared = _declared(reader.aliases, node)
    for each in found:
        if each.is_unused and each.name in uses:
            each.is_pointer = True
            each.declare(_declared_type(reader, declared.get(each.name)) or _row(reader, each), each.name)


def _declared(aliases: Aliases, function: ast.FunctionDef) -> Mapping[str, ast.Call]:
    """The first declaration over the memory of each name."""
    found: dict[str, ast.Call] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and aliases.name_in("tir", node.func) in DECLARATIONS:
            for keyword in node.keywords:
                if keyword.arg == "data" and isinstance(keyword.value, ast.Name):
                    found.setdefault(keyword.value.id, node)
    return found


def _declared_type(reader: StaticReader, call: ast.Call | None) -> Declared | None:
    """The type that a declaration gives, unless it depends on what the body computes."""
    if call is None:
        return None
    try:
        return read_buffer_type(reader, call, "T.decl_buffer", implicit=False, is_parameter=True)
    except TVMScriptError:
        return None


def _row(reader: StaticReader, parameter: Parameter) -> Declared:
    annotation, dtype = parameter.node.annotation, None
    if isinstance(annotation, ast.Call):
        dtype = Arguments(reader.source, annotation, "T.handle", "dtype storage_scope").get("dtype")
    is_void = dtype is None or (isinstance(dtype, ast.Constant) and dtype.value in (None, "void"))
    kind = parse_dtype("uint8") if dtype is None or is_void else element_dtype(reader, dtype)[0]
    return Declared(BufferType([symbol(f"{parameter.name}_size")], kind))


# Symbols


def find_symbols(reader: StaticReader, node: ast.FunctionDef, found: Sequence[Parameter]) -> None:
    """An integer parameter is a symbol if a shape has it, or if it comes after all buffers."""
    if convention_of(node) is not None:
        return  # all parameters are where TVM's callers look for them
    used = {name for each in found if each.buffer is not None for name in each.buffer.symbols}
    used |= _in_shapes(reader.aliases, node)
    buffers = [index for index, each in enumerate(found) if each.buffer is not None]
    last = max(buffers, default=len(found))
    for index, each in enumerate(found):
        each.is_symbol = is_size(each.dtype) and not each.is_address and (each.name in used or index > last)


def _in_shapes(aliases: Aliases, function: ast.FunctionDef) -> set[str]:
    """Names in the shapes of buffers and the domains of iterators in a body."""
    found: set[str] = set()
    for node in ast.walk(function):
        name = aliases.name_in("tir", node.func) or "" if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and node.args and (name in _WITH_SHAPE or name.startswith("axis.")):
            found |= {each.id for each in ast.walk(node.args[0]) if isinstance(each, ast.Name)}
    return found
