"""The functions that ops name: of a module, and of a text while it is read, where calls may stand before them."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import finalize

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind

from relax_dialect.ops.prim_func import check_layouts, prim_func_type
from relax_dialect.ops.signature import parse_signature
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.symbols import called_functions, enclosing_module, find_function
from tir_dialect.ops.function import PrimFuncOp

_KINDS = frozenset({"relax.func", "tir.prim_func"})


def find_relax_function(op: IRDLOperation, callee: SymbolRefAttr) -> FuncOp | None:
    """The function that `op` refers to; `None` while `op` is in no module. Raises `VerifyException` if there is
    none.
    """
    if enclosing_module(op) is None:
        return None
    found = find_function(op, callee.string_value())
    if isinstance(found, FuncOp):
        return found
    what = "not defined in the module" if found is None else f"a '{found.name}'"
    raise VerifyException(f"'{op.name}' op expected a 'relax.func', but @{callee.string_value()} is {what}")


def function_value_type(op: IRDLOperation, callee: SymbolRefAttr) -> FuncType | None:
    """The type of a function of the module as a value; `None` while `op` is in no module. Raises `VerifyException` if
    there is no relax function or PrimFunc of this name.
    """
    found = find_function(op, callee.string_value())
    if not isinstance(found, PrimFuncOp):
        return _type_of(find_relax_function(op, callee))
    check_layouts(f"'{op.name}' op expected a function of tensors, got @{callee.string_value()}", found)
    return prim_func_type(found)


def captured_parameters(module: Operation) -> dict[str, int]:
    """How many of the first parameters all function values of a private function have captured, for those that have.

    Such a function is the code of closures, so errors count its arguments without these.
    """
    counts: dict[str, set[int]] = {}
    for op in module.walk():
        if op.name == "relax.make_closure":
            for name in called_functions(op):
                counts.setdefault(name, set()).add(len(op.operands))
    alike = {name: found.pop() for name, found in counts.items() if len(found) == 1}
    return {name: count for name, count in alike.items() if _is_private(find_function(module, name))}


def _is_private(op: Operation | None) -> bool:
    return isinstance(op, FuncOp) and op.is_private


def _type_of(func: FuncOp | None) -> FuncType | None:
    return None if func is None else func.function_type


@dataclass
class _Table:
    """What is known of the functions of one text."""

    content: str
    places: dict[str, int]
    """Where the text of each function begins."""
    types: dict[str, FuncType] = field(default_factory=dict[str, FuncType])
    reading: set[str] = field(default_factory=set[str])
    """Functions that are read to find out what they return."""


_tables: dict[int, _Table] = {}
"""By the identity of the text; an entry lives as long as that."""


def callee_type(parser: Parser, name: str, position: int) -> FuncType | None:
    """The type of the function `name` of the text that `parser` reads; `None` if there is none: the verifier says so.

    A function that does not say its result is read for it. A parse error at `position`, where the name stands, if it
    calls itself without saying its result.
    """
    table = _table(parser)
    if name in table.types:
        return table.types[name]
    if name not in table.places:
        return None
    if name in table.reading:
        end = position + len(name) + 1
        parser.raise_error(f"@{name} calls itself, so expected its result type", position, end)
    table.reading.add(name)
    table.types[name] = _read(parser, table, table.places[name])
    table.reading.discard(name)
    return table.types[name]


def _table(parser: Parser) -> _Table:
    source = parser.lexer.input
    table = _tables.get(id(source))
    return _enter(source, _Table(source.content, _places(source))) if table is None else table


def _enter(source: Input, table: _Table) -> _Table:
    _tables[id(source)] = table
    finalize(source, _tables.pop, id(source), None)
    return table


def _places(source: Input) -> dict[str, int]:
    """Where `relax.func @f` and `tir.prim_func @f` begin, read as tokens: not in strings and comments."""
    lexer, places = MLIRLexer(source), dict[str, int]()
    start: MLIRToken | None = None
    while (token := lexer.lex()).kind is not MLIRTokenKind.EOF:
        if token.kind is MLIRTokenKind.AT_IDENT and start is not None:
            places.setdefault(token.text[1:].strip('"'), start.span.start)
        if token.text in _KINDS:
            start = token
        elif token.text not in ("public", "private"):
            start = None
    return places


def _read(parser: Parser, table: _Table, place: int) -> FuncType:
    """Reads the signature at a place of the text, or all of the function if that does not say the result."""
    signature = _reader(parser, table, place)
    if signature.parse_optional_keyword("relax.func"):
        signature.parse_optional_visibility_keyword()
        signature.parse_symbol_name()
        found = parse_signature(signature)
        if found.says_result:
            return found.type
    op = _reader(parser, table, place).parse_operation()
    if isinstance(op, PrimFuncOp):
        return prim_func_type(op)
    if not isinstance(op, FuncOp):
        raise ValueError(f"expected a function at {place} of the text, got '{op.name}'")
    return op.function_type


def _reader(parser: Parser, table: _Table, place: int) -> Parser:
    """A parser that stands at a place of the same text; lines and columns are the same, too."""
    before = "".join("\n" if each == "\n" else " " for each in table.content[:place])
    reader = type(parser)(parser.ctx, before + table.content[place:], parser.lexer.input.name)
    reader.attribute_aliases |= parser.attribute_aliases
    _enter(reader.lexer.input, table)
    return reader
