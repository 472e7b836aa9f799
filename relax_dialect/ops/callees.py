"""What calls name: functions of a module, and PrimFuncs, whose buffers, scalars and symbols have to fit the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from weakref import finalize

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind, StringLiteral

from relax_dialect.ops.signature import parse_signature
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import called_functions, enclosing_module, find_function, prover_at
from relax_dialect.struct_info.match import Match, Mismatch, match_types
from relax_dialect.struct_info.types import FuncType, PrimType, StructInfo, TensorType, TupleType, as_struct_infos
from tir_dialect.dims import Dim, determined
from tir_dialect.dtypes import is_dtype, scalar_type
from tir_dialect.fast_ops import walked
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


def _other_callee(op: Operation, expected: str, name: str, found: Operation | None) -> VerifyException:
    """The error that a name stands for something else than an op wants, or for nothing."""
    what = "not defined in the module" if found is None else f"a '{found.name}'"
    module = enclosing_module(op)
    names = (
        []
        if module is None or found is not None
        else [
            each.sym_name.data for each in module.ops if isinstance(each, PrimFuncOp | FuncOp) and each.name == expected
        ]
    )
    hint = "".join(f"; did you mean @{each}?" for each in get_close_matches(name, names, n=1))
    return VerifyException(f"'{op.name}' op expected a '{expected}', but @{name} is {what}{hint}")


def find_prim_func(op: Operation, callee: SymbolRefAttr) -> PrimFuncOp | None:
    """The PrimFunc that `op` calls; `None` while `op` is in no module. Raises `VerifyException` if there is none."""
    if enclosing_module(op) is None:
        return None
    found = find_function(op, callee.string_value())
    if isinstance(found, PrimFuncOp):
        return found
    raise _other_callee(op, "tir.prim_func", callee.string_value(), found)


def explicit_symbols(func: PrimFuncOp) -> tuple[str, ...]:
    """The symbols of a PrimFunc that the shapes of its buffers do not determine, so that a caller gives their values.

    They occur in no shape, or only inside of expressions that cannot be solved for them, as in `2 * floordiv(m, 2)`.
    """
    found = determined([dim for param in func.buffer_params for dim in param.type.shape])
    return tuple(name for name in func.symbol_names if name not in found)


def given_symbols(func: PrimFuncOp, count: int) -> tuple[str, ...]:
    """The symbols whose values a call with `count` `tir_vars` gives: those that no buffer determines, or

    * only those that occur in no shape, as known numbers may say what the others are, as in `4 * n == 12`;
    * all of them: then those that buffers determine are compared with the values.
    """
    explicit = explicit_symbols(func)
    found = {name for param in func.buffer_params for dim in param.type.shape for name in dim.symbols}
    least = tuple(name for name in explicit if name not in found)
    ways = (explicit, least, func.symbol_names)
    return next((way for way in ways if len(way) == count), explicit)


def prim_func_type(func: PrimFuncOp) -> FuncType:
    """The type of a PrimFunc as a function value: it writes some of its tensors and returns an empty tuple.

    The values of symbols that no buffer determines come last.
    """
    params = [
        TensorType(param.type.shape, param.type.dtype) if isinstance(param.type, BufferType) else PrimType(param.type)
        for param in func.params
    ]
    numbers = [PrimType(value=name) for name in explicit_symbols(func)]
    return FuncType([*params, *numbers], TupleType(), pure=False, symbols=func.symbols)


def match_prim_func(
    op: Operation, func: PrimFuncOp, actual: Sequence[StructInfo], tir_vars: Sequence[Dim] = ()
) -> Match:
    """Matches the parameters of `func` with the types of arguments and results; the symbols are those of `func`.

    Raises `VerifyException` naming `op` and the parameter at fault.
    """
    subject = f"'{op.name}' op calls @{func.sym_name.data}"
    explicit = given_symbols(func, len(tir_vars))
    if len(explicit) != len(tir_vars):
        raise VerifyException(
            f"{subject} with {len(tir_vars)} tir_vars, expected the values of its symbols [{', '.join(explicit)}], "
            "which no buffer's shape determines"
        )
    if len(func.params) != len(actual):
        raise VerifyException(f"{subject} with {len(actual)} arguments and results, expected {len(func.params)}")
    check_layouts(subject, func)
    declared = [_as_struct_info(param.type, info) for param, info in zip(func.params, actual, strict=True)]
    declared += [PrimType(value=name) for name in explicit]
    values = [*actual, *(PrimType(value=dim) for dim in tir_vars)]
    try:
        return match_types(declared, values, tuple(func.symbols), prover_at(op))
    except Mismatch as mismatch:
        missing = [name for name in explicit_symbols(func) if name not in explicit]
        hint = f"; or give the values of [{', '.join(missing)}] as tir_vars" if missing else ""
        given = mismatch.path.root - len(func.params)
        where = f"parameter {mismatch}" if given < 0 else f"value of {explicit[given]}: {mismatch.reason}"
        raise VerifyException(f"{subject}, {where}{hint}") from mismatch


def check_layouts(subject: str, func: PrimFuncOp) -> None:
    """Raises `VerifyException`, which begins with `subject`, if a tensor cannot be passed for a buffer of `func`."""
    if (found := strange_layout(func)) is not None:
        raise VerifyException(f"{subject}, whose parameter {found}")


def strange_layout(func: PrimFuncOp) -> str | None:
    """Says which parameter has gaps or does not start at the first element, as tensors do; `None` if there is none."""
    for index, param in enumerate(func.params):
        if isinstance(param.type, BufferType) and not _is_plain(param.type):
            return f"#{index} expected a plain layout, got {param.type}"
    return None


def _is_plain(buffer: BufferType) -> bool:
    """Whether a tensor can be passed for a buffer: row-major, from the start of the memory."""
    return buffer.has_default_strides and buffer.offset.constant_value == 0


def _as_struct_info(param: Attribute, actual: StructInfo) -> StructInfo:
    """What a value that is passed for `param` has to be; integers of either sign go to signless scalars."""
    if isinstance(param, BufferType):
        return TensorType(param.shape, param.dtype)
    if isinstance(actual, PrimType) and is_dtype(actual.dtype) and scalar_type(actual.dtype) == param:
        return PrimType(actual.dtype)
    return PrimType(param)


def verify_prim_func_call(
    op: Operation,
    callee: SymbolRefAttr,
    arguments: Sequence[Attribute],
    results: Sequence[Attribute],
    tir_vars: Sequence[Dim],
) -> None:
    """Raises `VerifyException` unless arguments and results can be the parameters of the PrimFunc."""
    func = find_prim_func(op, callee)
    if func is not None:
        match_prim_func(op, func, as_struct_infos((*arguments, *results)), tir_vars)


_FUNCTION, _KERNEL = "relax.func", "tir.prim_func"
_FIRST_WORD = "text"


def find_relax_function(op: IRDLOperation, callee: SymbolRefAttr) -> FuncOp | None:
    """The function that `op` refers to; `None` while `op` is in no module. Raises `VerifyException` if there is
    none.
    """
    if enclosing_module(op) is None:
        return None
    found = find_function(op, callee.string_value())
    if isinstance(found, FuncOp):
        return found
    raise _other_callee(op, "relax.func", callee.string_value(), found)


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
    for op in walked(module):
        if op.name == "relax.make_closure":
            for name in called_functions(op):
                counts.setdefault(name, set()).add(len(op.operands))
    alike = {name: found.pop() for name, found in counts.items() if len(found) == 1}
    return {name: count for name, count in alike.items() if _is_private(find_function(module, name))}


def _is_private(op: Operation | None) -> bool:
    return isinstance(op, FuncOp) and op.is_private


def _type_of(func: FuncOp | None) -> FuncType | None:
    return None if func is None else func.function_type


@dataclass(frozen=True)
class _Function:
    """What the tokens of a function tell, before it is read."""

    offset: int
    """Where its text begins."""
    is_kernel: bool
    names: list[str] = field(default_factory=list[str])
    """The symbols in it: among them are the functions that it calls."""


@dataclass
class _Table:
    """What is known about the functions of one text."""

    functions: dict[str, _Function]
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
    source = parser.lexer.input
    table = _tables.get(id(source))
    if table is None:
        table = _tables[id(source)] = _Table(_functions(parser))
        finalize(source, _tables.pop, id(source), None)
    if name not in table.types:
        if name not in table.functions:
            return None
        if name in table.reading:
            end = position + len(name) + 1
            parser.raise_error(f"@{name} calls itself, so expected its result type", position, end)
        _read_after_callees(parser, table, name)
    return table.types[name]


def _functions(parser: Parser) -> dict[str, _Function]:
    """What `relax.func @f` and `tir.prim_func @f` begin, read as tokens: not in strings and comments."""
    # The lexer of whoever reads: it may be faster than xDSL's for text that is wrong.
    lexer = type(parser.lexer)(parser.lexer.input)
    functions: dict[str, _Function] = {}
    start: MLIRToken | None = None
    current: _Function | None = None
    while (token := lexer.lex()).kind is not MLIRTokenKind.EOF:
        if token.kind is MLIRTokenKind.AT_IDENT:
            if not token.text.endswith('"'):
                name = token.text[1:]
            else:
                literal = StringLiteral(token.span.start + 1, token.span.end, token.span.input)
                name = literal.bytes_contents.decode(errors="replace")
            if start is not None:
                current = functions.setdefault(name, _Function(start.span.start, start.text == _KERNEL))
            elif current is not None:
                current.names.append(name)
        if token.text in (_FUNCTION, _KERNEL):
            start = token
        elif token.text not in ("public", "private"):
            start = None
    return functions


def _read_after_callees(parser: Parser, table: _Table, name: str) -> None:
    """Reads a function after those that it may call, so that no function is read within another, however many there
    are; but for functions that call each other.
    """
    pending, opened = [name], set[str]()
    while pending:
        current = pending[-1]
        if current in table.types or current in table.reading:
            pending.pop()
        elif current not in opened:
            opened.add(current)
            function = table.functions[current]
            if (found := _said_type(parser, function)) is not None:
                table.types[current] = found
            else:
                callees = (each for each in function.names if each in table.functions and each not in opened)
                pending += [each for each in callees if not table.functions[each].is_kernel]
        else:
            table.reading.add(pending.pop())
            reader = _reader(parser, table.functions[current].offset)
            position = reader.pos
            op = reader.parse_operation()
            if isinstance(op, PrimFuncOp):
                table.types[current] = prim_func_type(op)
            else:
                if not isinstance(op, FuncOp):
                    raise ValueError(f"expected a function at {position} of the text, got '{op.name}'")
                table.types[current] = op.function_type
            table.reading.discard(current)


def _said_type(parser: Parser, function: _Function) -> FuncType | None:
    """The type of a function that says its result, of which the signature is read."""
    reader = _reader(parser, function.offset)
    if not reader.parse_optional_keyword(_FUNCTION):
        return None
    reader.parse_optional_visibility_keyword()
    reader.parse_symbol_name()
    found = parse_signature(reader)
    return found.type if found.says_result else None


def _reader(parser: Parser, index: int) -> Parser:
    """A parser that stands at a position of the same text."""
    source = parser.lexer.input
    reader = type(parser)(parser.ctx, _FIRST_WORD, source.name)
    reader.attribute_aliases |= parser.attribute_aliases
    reader.lexer.input, reader.lexer.pos = source, index
    reader.parse_keyword(_FIRST_WORD)  # the next word is that at the position
    return reader
