"""One PrimFunc of a text: its parameters, what it returns, its attributes, and its body."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from xdsl.dialects.builtin import FileLineColLoc, StringAttr, UnitAttr, f32, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.frontend.tvmscript.functions import PlainFunction, reachable
from relax_dialect.frontend.tvmscript.prim_func.bindings import RETURN, assigned_often, jump_of, returned_value
from relax_dialect.frontend.tvmscript.prim_func.blocks import drop_inferable_regions
from relax_dialect.frontend.tvmscript.prim_func.buffers import (
    ADDRESS,
    DECLARATIONS,
    bind_buffer,
    element_dtype,
    names_handle,
    read_annotation,
    read_buffer_type,
    read_scalar_type,
)
from relax_dialect.frontend.tvmscript.prim_func.loops import refuse_exchange
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import element_name
from relax_dialect.frontend.tvmscript.prim_func.scalars import BUILD_ERRORS, Declared, Handle, pointer_to
from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader
from relax_dialect.frontend.tvmscript.program import Program
from relax_dialect.frontend.tvmscript.scopes import ModuleRef, Scope, declarations, declared_dtype, is_dtype_name
from relax_dialect.frontend.tvmscript.source import Aliases, Source, TVMScriptError, dotted, is_none
from relax_dialect.frontend.tvmscript.static import StaticReader
from relax_dialect.frontend.tvmscript.types import as_attributes, parameters, read_dictionary, type_param_names
from tir_dialect.calling_conventions import CONVENTION, Convention
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.dtypes import is_float, lookup, parse_dtype, scalar_type
from tir_dialect.ops.arithmetic import AssertOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.ops.raw_memory import MemoryAtOp
from tir_dialect.types import BufferType, SymbolAttr, as_name_hint

_PARAMETERS: Mapping[Sequence[str], Convention] = MappingProxyType(
    {
        ("self_handle", "args", "num_args", "result"): Convention.ANY,
        ("args", "arg_type_ids", "num_args", "out_ret_value", "out_ret_tcode"): Convention.VALUES,
        ("args", "arg_type_ids", "num_args", "out_ret_value", "out_ret_tcode", "resource_handle"): Convention.VALUES,
    }
)
"""The names that TVM gives the parameters."""

_OF_ADDRESSES = (
    "tvm_struct_",
    "anylist_",
    "isnullptr",
    "tvm_call_packed_lowered",
    "call_packed_lowered",
    "tvm_call_cpacked_lowered",
    "call_cpacked_lowered",
    "tvm_call_trace_packed_lowered",
)
"""What takes pointers as they are, by how the names begin."""


def convention_of(function: ast.FunctionDef) -> Convention | None:
    """The convention by which a function is called, if it is one of TVM's."""
    return _PARAMETERS.get(tuple(argument.arg for argument in function.args.args))


def address_names(aliases: Aliases, function: ast.FunctionDef) -> frozenset[str]:
    """The parameters of a function that are addresses, if their annotations say that they are pointers."""
    if convention_of(function) is not None:
        return frozenset(argument.arg for argument in function.args.args)
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and (aliases.name_in("tir", node.func) or "").startswith(_OF_ADDRESSES):
            found |= {each.id for each in node.args if isinstance(each, ast.Name)}
    return frozenset(found)


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
    """The name for the offset of its first element."""
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

    One that the body only hands on is a vector of unknown length; bytes, if its type is not given.
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
        dtype = reader.arguments(annotation, "T.handle", "dtype storage_scope").get("dtype")
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


def read_result(reader: StaticReader, node: ast.FunctionDef, parameters: Sequence[Parameter]) -> BufferType | None:
    """The type of the last parameter; `None` if the function returns nothing. An annotation is `None`, a dtype, or
    `T.handle`: an address.
    """
    is_handle = node.returns is not None and names_handle(reader, node.returns)
    declared = ADDRESS if is_handle else read_scalar_type(reader, node.returns)
    if declared is None and not (node.returns is None or is_none(node.returns)):
        reader.fail(node.returns, "expected a dtype such as T.int32 as the result of a PrimFunc, T.handle, or None")
    values = [returned_value(each) for each in ast.walk(node) if jump_of(reader.aliases, each) == RETURN]
    returned = [value for value in values if value is not None]
    if not returned:
        return None
    if declared is None:
        found = {each.buffer_name or each.name: each.dtype or _dtype_of(each.buffer) for each in parameters}
        declared = next((dtype for value in returned if (dtype := _dtype(reader, value, found)) is not None), None)
    return None if declared is None else BufferType([], declared)


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
            known = next((each for each in (name, *texts) if isinstance(each, str) and is_dtype_name(each)), None)
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


_LINE = re.compile(r" \(line (\d+)\)$")
"""Where a message of the whole function says that the wrong access stands."""

_NO_ALIAS = ("tir.noalias", "tirx.noalias")

_FOR_OTHERS = ("global_symbol", "target", "tir.is_entry_func", "tirx.is_entry_func", "calling_conv")
"""Attributes that say something to TVM only."""


@dataclass
class PrimFunctionReader:
    """Reads one PrimFunc; afterwards what a call has to know of it."""

    source: Source
    aliases: Aliases
    constants: Scope
    program: Program
    node: ast.FunctionDef
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    result: BufferType | None = None
    """Where the function writes what it returns: its last parameter, which the text has not."""
    _op: PrimFuncOp | None = None
    _body: list[ast.stmt] = field(default_factory=list[ast.stmt])

    def __post_init__(self) -> None:
        # The names around the function: constants, and functions without a decorator, which see the same
        # names.
        around = Scope({name: self.constants.find(name) for name in self.constants.names()})
        for name, node in self.program.plain.items():
            if name not in around:
                around.bind(name, PlainFunction(node, self.source, around))
        outermost = {name: around.find(name) for name in around.names()}
        self._reader = TirStatementReader(self.source, self.aliases, Scope(outermost), self.program)
        inlined = [each.node for _, each in reachable(outermost)]
        self._wide: set[str] = set()
        self._rebound = assigned_often([self.node, *inlined])

    @property
    def op(self) -> PrimFuncOp:
        """The function, once it has been read."""
        if self._op is None:
            self.source.fail(self.node, f"{self.node.name} is called before it has been read")
        return self._op

    @property
    def symbol_params(self) -> list[str]:
        """The parameters that became symbols, in order."""
        return [each.name for each in self.parameters if each.is_symbol]

    def symbol_at(self, index: int) -> str | None:
        """The symbol that the parameter at an index of the text became."""
        found = self.parameters[index] if index < len(self.parameters) else None
        return found.name if found is not None and found.is_symbol else None

    def is_unused(self, index: int) -> bool:
        """Whether the function has no parameter for that of the text at an index, since it does not use it."""
        return index < len(self.parameters) and self.parameters[index].is_unused

    def prepare(self, *, private: bool) -> PrimFuncOp:
        """The function without its body, so that others may call it."""
        reader = self._reader
        for name in type_param_names(self.program.type_params.get(self.node.lineno, "")):
            reader.declare(self.node, name)
        refuse_exchange(reader, self.node)
        self.parameters = read_parameters(reader, self.node)
        # Gives handles their types, and the statements that are left.
        # first, since a name around the function may be the same
        declared = [each for each in self.node.body if self._declares(reader, each)]
        done = {*declared, *match_handles(reader, self.node, self.parameters)}
        rest = [each for each in self.node.body if each not in done]
        declare_handles(reader, self.node, self.parameters)
        find_symbols(reader, self.node, self.parameters)
        self._body = rest
        self.result = read_result(reader, self.node, self.parameters)
        found: dict[str, object] = {}
        for statement in self.node.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and self.aliases.name_in("tir", call.func) == "func_attr":
                found |= self._plain_attributes(reader, call)
        attributes = as_attributes(self.source, self.node, found)
        self._op = reader.emit(self.node, lambda: self._make(private=private, attributes=attributes))
        return self._op

    def read_body(self) -> None:
        """Fills the function; `finish` comes when all of them are filled."""
        reader = self._reader
        reader.block = self.op.body.block
        func = self.op
        reader.names.symbols.update(zip(func.symbol_names, func.symbol_args, strict=True))
        values = iter(func.params)
        for each in self.parameters:
            if each.is_symbol or each.is_unused:
                continue
            value = next(values)
            if each.buffer is not None:
                buffer = bind_buffer(reader, SSAValue.get(value, type=BufferType), each.buffer_name, each.lanes)
                if each.name != each.buffer_name:
                    reader.scope.bind(each.name, Handle(each.name))
                reader.scope.bind(each.buffer_name, pointer_to(buffer) if each.is_pointer else buffer)
            elif each.dtype is not None:
                reader.scope.bind(each.name, reader.variable(value, lookup(each.dtype).type, each.name))
        if self.result is not None:
            reader.jumps.result = bind_buffer(reader, SSAValue.get(next(values), type=BufferType), "returned")
        known = set(func.symbol_names)
        for name in list(reader.scope.names()):
            found = reader.scope.find(name)
            if isinstance(found, Dim) and not found.symbols <= known:
                reader.scope.hide(name)
        for each in self.parameters:
            self._bind_start(reader, each)
        for statement in self.node.body:
            self._bind_module(reader, statement)
        reader.rebound = self._rebound
        reader.wide |= {each.name for each in self.parameters if each.dtype == i64} | self._wide
        reader.jumps.prepare(self.node, self._body)
        reader.body(self._body)

    def finish(self) -> None:
        """Verifies the function and drops what it says twice; errors are at the statement that made the op."""
        if any(isinstance(op, MemoryAtOp) for op in self.op.walk()):
            self.op.properties["may_alias"] = UnitAttr()  # two addresses may be of the same memory
            # Takes out the memory of buffers that the text declares first, and gives an address later.
            for op in list(self.op.walk()):
                if isinstance(op, AllocBufferOp) and not op.buffer.uses:
                    op.detach()
                    op.erase()
        for op in self.op.walk():
            try:
                op.verify(verify_nested_ops=False)
            except BUILD_ERRORS as error:
                raise self._error_at(op, str(error)) from None
        drop_inferable_regions(self.op)

    def _error_at(self, op: Operation, message: str) -> TVMScriptError:
        location = op.location
        if isinstance(location, FileLineColLoc) and op is not self.op:
            line = location.line.data - self.source.first_line + 1
            return self.source.error_at(line, location.column.data - self.source.indent, message)
        if (named := _LINE.search(message)) is not None:
            return self.source.error_of_line(int(named[1]), message[: named.start()])
        return self.source.error(self.node, message)

    # Head

    def _declares(self, reader: StaticReader, statement: ast.stmt) -> bool:
        """Makes the dimensions that a statement declares known; false if it is another statement."""
        if isinstance(statement, ast.AnnAssign):
            if isinstance(statement.target, ast.Name) and statement.target.id in self._rebound:
                return False
            target, value = statement.target, statement.value
            value = ast.copy_location(ast.Call(statement.annotation, [], []), statement) if value is None else value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        else:
            return False
        found = declarations(self.aliases, target, value)
        for target, name, made in found:
            if declared_dtype(self.aliases, made) == "int64":
                self._wide.add(name)
            if not isinstance(reader.scope.find(name), Dim):
                reader.declare(target, name)
        return bool(found)

    def _plain_attributes(self, reader: StaticReader, call: ast.Call) -> dict[str, object]:
        argument = call.args[0] if call.args else None
        if isinstance(argument, ast.Dict):
            kept = [
                (key, value)
                for key, value in zip(argument.keys, argument.values, strict=True)
                if not (isinstance(key, ast.Constant) and key.value in _FOR_OTHERS)
            ]
            plain = ast.Dict([key for key, _ in kept], [value for _, value in kept])
            call = ast.copy_location(ast.Call(call.func, [ast.copy_location(plain, argument)], []), call)
        return read_dictionary(reader, call, "T.func_attr", "attrs")

    # The op

    def _make(self, *, private: bool, attributes: dict[str, Attribute]) -> PrimFuncOp:
        no_alias = [attributes.pop(name) for name in _NO_ALIAS if name in attributes]
        symbols = dict.fromkeys(name for each in self.parameters if each.buffer for name in _symbols(each.buffer))
        symbols |= dict.fromkeys(self.symbol_params)
        params: list[tuple[str, Attribute]] = []
        for each in self.parameters:
            if each.buffer is not None:
                params.append((_hint(each.buffer_name), each.buffer))
            elif each.dtype is not None and not each.is_symbol:
                params.append((_hint(each.name), scalar_type(each.dtype)))
        if self.result is not None:
            params.append(("returned", self.result))
        func = PrimFuncOp(
            self.node.name,
            [SymbolAttr(name) for name in symbols],
            params,
            may_alias=any(str(each) in ("false", "0 : i64") for each in no_alias),
            visibility="private" if private else None,
        )
        func.attributes |= attributes
        if (convention := convention_of(self.node)) is not None:
            func.attributes[CONVENTION] = StringAttr(convention.value)
        return func

    def _bind_start(self, reader: TirStatementReader, parameter: Parameter) -> None:
        """A parameter begins with its first element: a name for that position is 0, and a number for it has to be."""
        name = parameter.start
        if not name or parameter.is_pointer:
            return
        if name not in reader.scope:
            reader.scope.bind(name, constant(0))
        elif not isinstance(reader.scope.find(name), Dim) or name in reader.names.symbols:
            is_first = ast.copy_location(ast.Compare(ast.Name(name), [ast.Eq()], [ast.Constant(0)]), parameter.node)
            message = f"{self.node.name}: {parameter.buffer_name} begins at {name}, expected 0"
            reader.block.add_op(AssertOp(reader.condition(ast.fix_missing_locations(is_first)), message))

    def _bind_module(self, reader: TirStatementReader, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            parts = dotted(statement.value)
            if parts is not None and len(parts) == 1 and self.program.is_module(parts[0]):
                reader.scope.bind(statement.targets[0].id, ModuleRef())


def _symbols(buffer: BufferType) -> Sequence[str]:
    """The symbols of a type in the order in which they are written."""
    dims = [*buffer.shape, *buffer.strides, buffer.offset]
    return list(dict.fromkeys(name for dim in dims for name in sorted(dim.symbols)))


def _hint(name: str) -> str:
    return as_name_hint(name) or "arg"
