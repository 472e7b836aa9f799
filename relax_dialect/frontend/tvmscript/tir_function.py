"""One PrimFunc of a text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import FileLineColLoc, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.frontend.tvmscript.declarations import declarations
from relax_dialect.frontend.tvmscript.errors import Source, TVMScriptError
from relax_dialect.frontend.tvmscript.names import Aliases, dotted
from relax_dialect.frontend.tvmscript.program import Program
from relax_dialect.frontend.tvmscript.scope import ModuleRef, Scope
from relax_dialect.frontend.tvmscript.signature import as_attributes, parameters, read_dictionary, type_param_names
from relax_dialect.frontend.tvmscript.static import StaticReader, is_dtype_name
from relax_dialect.frontend.tvmscript.tir_blocks import drop_inferable_regions
from relax_dialect.frontend.tvmscript.tir_buffers import bind_buffer, read_annotation, read_buffer_type
from relax_dialect.frontend.tvmscript.tir_expressions import BUILD_ERRORS
from relax_dialect.frontend.tvmscript.tir_statements import TirStatementReader
from relax_dialect.frontend.tvmscript.tir_values import Handle
from tir_dialect.dims import Dim
from tir_dialect.dtypes import lookup, parse_dtype, scalar_type
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType, SymbolAttr

_NO_ALIAS = ("tir.noalias", "tirx.noalias")
_FOR_OTHERS = ("global_symbol", "target", "tir.is_entry_func", "tirx.is_entry_func", "calling_conv")
"""Attributes that say something to TVM only."""


@dataclass
class Parameter:
    """One parameter of the text; a handle gets its type by `T.match_buffer`."""

    name: str
    node: ast.arg
    buffer: BufferType | None = None
    buffer_name: str = ""
    dtype: Attribute | None = None
    is_symbol: bool = False

    @property
    def is_handle(self) -> bool:
        """Whether it is still to be matched."""
        return self.buffer is None and self.dtype is None


@dataclass
class PrimFunctionReader:
    """Reads one PrimFunc; afterwards what a call has to know of it."""

    source: Source
    aliases: Aliases
    constants: Scope
    program: Program
    node: ast.FunctionDef
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    _op: PrimFuncOp | None = None

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
        """The symbol that the parameter at a place of the text became."""
        found = self.parameters[index] if index < len(self.parameters) else None
        return found.name if found is not None and found.is_symbol else None

    def read(self, *, private: bool) -> PrimFuncOp:
        """The function of the text; `finish` comes when it stands in the module, where it finds what it calls."""
        outermost = {name: self.constants.find(name) for name in self.constants.names()}
        reader = TirStatementReader(self.source, self.aliases, Scope(outermost), self.program)
        for name in type_param_names(self.program.type_params.get(self.node.lineno, "")):
            reader.declare(self.node, name)
        self._read_parameters(reader)
        body = self._match_handles(reader)
        attributes = self._attributes(reader)
        func = reader.emit(self.node, lambda: self._make(private=private, attributes=attributes))
        self._op = func
        self._bind(reader, func)
        reader.block = func.body.block
        reader.body(body)
        return func

    def finish(self) -> None:
        """Verifies the function and drops what it says twice; errors are at the statement that made the op."""
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
        return self.source.error(self.node, message)

    # Head

    def _read_parameters(self, reader: StaticReader) -> None:
        arguments = parameters(self.source, self.node)
        for argument in arguments:
            self.parameters.append(Parameter(argument.arg, argument))
            if (dtype := self._scalar(reader, argument.annotation)) is not None:
                self.parameters[-1].dtype = dtype
                if _is_size(dtype):
                    reader.declare(argument, argument.arg)
        for each in self.parameters:
            annotation = each.node.annotation
            if annotation is not None and each.dtype is None:
                each.buffer, each.buffer_name = self._buffer(reader, annotation), each.name

    def _scalar(self, reader: StaticReader, node: ast.expr | None) -> Attribute | None:
        target = node.func if isinstance(node, ast.Call) and not node.args else node
        name = None if target is None else reader.aliases.name_in("tir", target)
        return parse_dtype(name) if name is not None and is_dtype_name(name) else None

    def _buffer(self, reader: StaticReader, node: ast.expr) -> BufferType | None:
        found = read_annotation(reader, node)
        if found is not None:
            return found
        head = node.func if isinstance(node, ast.Call) else node
        if reader.aliases.name_in("tir", head) in ("handle", "Ptr"):
            return None
        self.source.fail(node, "expected T.Buffer(...), T.handle, or a dtype such as T.int64")

    def _match_handles(self, reader: StaticReader) -> list[ast.stmt]:
        """Gives handles their types, and the statements that are left."""
        rest: list[ast.stmt] = []
        handles = {each.name: each for each in self.parameters if each.is_handle}
        for statement in self.node.body:
            matched = self._matched(statement)
            if matched is not None:
                target, call = matched
                name = call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""
                handle = handles.get(name) or self._misnamed(call, name, handles)
                if handle is not None:
                    handle.buffer = read_buffer_type(
                        reader, call, "T.match_buffer", "param", implicit=True, is_parameter=True
                    )
                    handle.buffer_name = target
                    continue
            if not self._declares(reader, statement):
                rest.append(statement)
        for each in self.parameters:
            if each.is_handle:
                self.source.fail(each.node, f"the parameter {each.name} has no type: match it by T.match_buffer")
        return rest

    def _matched(self, statement: ast.stmt) -> tuple[str, ast.Call] | None:
        """The name and the call of `A = T.match_buffer(a, ...)`."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target, call = statement.targets[0], statement.value
        if not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
            return None
        is_match = self.aliases.name_in("tir", call.func) == "match_buffer"
        return (target.id, call) if is_match and call.args and isinstance(call.args[0], ast.Name) else None

    def _misnamed(self, call: ast.Call, name: str, handles: dict[str, Parameter]) -> Parameter | None:
        """The handle that a sketch means by another name: blocks with extents are of texts that misprint names."""
        if name in {each.name for each in self.parameters} or not self._is_sketch():
            return None
        return next((each for each in handles.values() if each.is_handle), None)

    def _is_sketch(self) -> bool:
        for node in ast.walk(self.node):
            if isinstance(node, ast.With) and isinstance(node.items[0].context_expr, ast.Call):
                call = node.items[0].context_expr
                is_block = self.aliases.name_in("tir", call.func) == "block"
                if is_block and call.args and not isinstance(call.args[0], ast.Constant):
                    return True
        return False

    def _declares(self, reader: StaticReader, statement: ast.stmt) -> bool:
        """Makes the dimensions that a statement declares known; false if it is another statement."""
        if isinstance(statement, ast.AnnAssign):
            target, value = statement.target, statement.value
            value = ast.copy_location(ast.Call(statement.annotation, [], []), statement) if value is None else value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        else:
            return False
        found = declarations(self.aliases, target, value)
        for place, name, _ in found:
            if not isinstance(reader.scope.find(name), Dim):
                reader.declare(place, name)
        return bool(found)

    def _attributes(self, reader: StaticReader) -> dict[str, Attribute]:
        found: dict[str, object] = {}
        for statement in self.node.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and self.aliases.name_in("tir", call.func) == "func_attr":
                found |= self._plain_attributes(reader, call)
        return as_attributes(self.source, self.node, found)

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
        self._find_symbols()
        symbols = dict.fromkeys(name for each in self.parameters if each.buffer for name in _symbols(each.buffer))
        symbols |= dict.fromkeys(self.symbol_params)
        params: list[tuple[str, Attribute]] = []
        for each in self.parameters:
            if each.buffer is not None:
                params.append((_hint(each.buffer_name), each.buffer))
            elif each.dtype is not None and not each.is_symbol:
                params.append((_hint(each.name), scalar_type(each.dtype)))
        func = PrimFuncOp(
            self.node.name,
            [SymbolAttr(name) for name in symbols],
            params,
            may_alias=any(str(each) in ("false", "0 : i64") for each in no_alias),
            visibility="private" if private else None,
        )
        func.attributes |= attributes
        return func

    def _find_symbols(self) -> None:
        """An integer parameter is a symbol if a shape has it, or if it comes after all buffers."""
        used = {name for each in self.parameters if each.buffer is not None for name in each.buffer.symbols}
        buffers = [index for index, each in enumerate(self.parameters) if each.buffer is not None]
        last = max(buffers, default=len(self.parameters))
        for index, each in enumerate(self.parameters):
            each.is_symbol = _is_size(each.dtype) and (each.name in used or index > last)

    def _bind(self, reader: TirStatementReader, func: PrimFuncOp) -> None:
        reader.names.symbols.update(zip(func.symbol_names, func.symbol_args, strict=True))
        values = iter(func.params)
        for each in self.parameters:
            if each.is_symbol:
                continue
            value = next(values)
            if each.buffer is not None:
                typed = SSAValue.get(value, type=BufferType)
                reader.scope.bind(each.buffer_name, bind_buffer(reader, typed, each.buffer_name))
                if each.name != each.buffer_name:
                    reader.scope.bind(each.name, Handle(each.name))
            elif each.dtype is not None:
                reader.scope.bind(each.name, reader.variable(value, lookup(each.dtype).type, each.name))
        known = set(func.symbol_names)
        for name in list(reader.scope.names()):
            found = reader.scope.find(name)
            if isinstance(found, Dim) and not found.symbols <= known:
                reader.scope.hide(name)
        for statement in self.node.body:
            self._bind_module(reader, statement)

    def _bind_module(self, reader: TirStatementReader, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            parts = dotted(statement.value)
            if parts is not None and len(parts) == 1 and self.program.is_module(parts[0]):
                reader.scope.bind(statement.targets[0].id, ModuleRef())


def _symbols(buffer: BufferType) -> Sequence[str]:
    """The symbols of a type in the order in which they are written."""
    dims = [*buffer.shape, *buffer.strides, buffer.offset]
    return list(dict.fromkeys(name for dim in dims for name in sorted(dim.symbols)))


def _is_size(dtype: Attribute | None) -> bool:
    """Whether a parameter of a dtype can be a dimension."""
    return dtype in (i32, i64)


def _hint(name: str) -> str:
    return as_name_hint(name) or "arg"
