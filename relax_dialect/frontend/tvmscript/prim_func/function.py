"""One PrimFunc of a text."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import FileLineColLoc, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.frontend.tvmscript.prim_func.buffers import bind_buffer
from relax_dialect.frontend.tvmscript.prim_func.captured_inlines import reachable
from relax_dialect.frontend.tvmscript.prim_func.cells import assigned_often
from relax_dialect.frontend.tvmscript.prim_func.conventions import convention_of
from relax_dialect.frontend.tvmscript.prim_func.declared_regions import drop_inferable_regions
from relax_dialect.frontend.tvmscript.prim_func.parameters import (
    Parameter,
    declare_handles,
    find_symbols,
    match_handles,
    read_parameters,
)
from relax_dialect.frontend.tvmscript.prim_func.results import read_result
from relax_dialect.frontend.tvmscript.prim_func.scalars import BUILD_ERRORS
from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader
from relax_dialect.frontend.tvmscript.prim_func.threads import refuse_exchange
from relax_dialect.frontend.tvmscript.prim_func.values import Handle, pointer_to
from relax_dialect.frontend.tvmscript.text.declarations import declarations, declared_dtype
from relax_dialect.frontend.tvmscript.text.errors import Source, TVMScriptError
from relax_dialect.frontend.tvmscript.text.names import Aliases, dotted
from relax_dialect.frontend.tvmscript.text.plain_functions import PlainFunction
from relax_dialect.frontend.tvmscript.text.program import Program
from relax_dialect.frontend.tvmscript.text.scope import ModuleRef, Scope
from relax_dialect.frontend.tvmscript.text.signature import as_attributes, read_dictionary, type_param_names
from relax_dialect.frontend.tvmscript.text.static import StaticReader
from tir_dialect.calling_conventions import CONVENTION
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import lookup, scalar_type
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.ops.raw_memory import MemoryAtOp
from tir_dialect.ops.scalars import AssertOp
from tir_dialect.symbols import SymbolAttr
from tir_dialect.types import BufferType

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
        outermost = self._outermost()
        self._reader = TirStatementReader(self.source, self.aliases, Scope(outermost), self.program)
        inlined = [each.node for _, each in reachable(outermost)]
        self._wide: set[str] = set()
        self._rebound = assigned_often([self.node, *inlined])

    def _outermost(self) -> dict[str, object]:
        """The names around the function: constants, and functions without a decorator, which see the same names."""
        around = Scope({name: self.constants.find(name) for name in self.constants.names()})
        for name, node in self.program.plain.items():
            if name not in around:
                around.bind(name, PlainFunction(node, self.source, around))
        return {name: around.find(name) for name in around.names()}

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

    def is_unused(self, index: int) -> bool:
        """Whether the function has no parameter for that of the text at a place, since it does not use it."""
        return index < len(self.parameters) and self.parameters[index].is_unused

    def prepare(self, *, private: bool) -> PrimFuncOp:
        """The function without its body, so that others may call it."""
        reader = self._reader
        for name in type_param_names(self.program.type_params.get(self.node.lineno, "")):
            reader.declare(self.node, name)
        refuse_exchange(reader, self.node)
        self.parameters = read_parameters(reader, self.node)
        self._body = self._match_handles(reader)
        self.result = read_result(reader, self.node, self.parameters)
        attributes = self._attributes(reader)
        self._op = reader.emit(self.node, lambda: self._make(private=private, attributes=attributes))
        return self._op

    def read_body(self) -> None:
        """Fills the function; `finish` comes when all of them are filled."""
        reader = self._reader
        reader.block = self.op.body.block
        self._bind(reader, self.op)
        reader.rebound = self._rebound
        reader.wide |= {each.name for each in self.parameters if each.dtype == i64} | self._wide
        reader.jumps.prepare(self.node, self._body)
        reader.body(self._body)

    def finish(self) -> None:
        """Verifies the function and drops what it says twice; errors are at the statement that made the op."""
        if any(isinstance(op, MemoryAtOp) for op in self.op.walk()):
            self.op.properties["may_alias"] = UnitAttr()  # two addresses may be of the same memory
            _drop_unused_memory(self.op)
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

    def _match_handles(self, reader: StaticReader) -> list[ast.stmt]:
        """Gives handles their types, and the statements that are left."""
        # first, since a name around the function may be the same
        declared = [each for each in self.node.body if self._declares(reader, each)]
        done = {*declared, *match_handles(reader, self.node, self.parameters)}
        rest = [each for each in self.node.body if each not in done]
        declare_handles(reader, self.node, self.parameters)
        find_symbols(reader, self.node, self.parameters)
        return rest

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
        for place, name, made in found:
            if declared_dtype(self.aliases, made) == "int64":
                self._wide.add(name)
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

    def _bind(self, reader: TirStatementReader, func: PrimFuncOp) -> None:
        reader.names.symbols.update(zip(func.symbol_names, func.symbol_args, strict=True))
        values = iter(func.params)
        for each in self.parameters:
            if each.is_symbol or each.is_unused:
                continue
            value = next(values)
            if each.buffer is not None:
                self._bind_buffer(reader, each, SSAValue.get(value, type=BufferType))
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

    def _bind_buffer(self, reader: TirStatementReader, parameter: Parameter, value: SSAValue[BufferType]) -> None:
        buffer = bind_buffer(reader, value, parameter.buffer_name, parameter.lanes)
        if parameter.name != parameter.buffer_name:
            reader.scope.bind(parameter.name, Handle(parameter.name))
        reader.scope.bind(parameter.buffer_name, pointer_to(buffer) if parameter.is_pointer else buffer)

    def _bind_start(self, reader: TirStatementReader, parameter: Parameter) -> None:
        """A parameter begins with its first element: a name for that place is 0, and a number for it has to be."""
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


def _drop_unused_memory(func: PrimFuncOp) -> None:
    """Takes out the memory of buffers that the text declares first, and gives an address later."""
    for op in list(func.walk()):
        if isinstance(op, AllocBufferOp) and not op.buffer.uses:
            op.detach()
            op.erase()


def _symbols(buffer: BufferType) -> Sequence[str]:
    """The symbols of a type in the order in which they are written."""
    dims = [*buffer.shape, *buffer.strides, buffer.offset]
    return list(dict.fromkeys(name for dim in dims for name in sorted(dim.symbols)))


def _hint(name: str) -> str:
    return as_name_hint(name) or "arg"
