"""What a text means at each position: values, symbols, ops, errors. Nothing here knows the protocol.

Positions are offsets into the text. A text may hold several modules between lines `// -----`.
"""

from __future__ import annotations

import inspect
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

from lowering.context import make_context
from lowering.diagnostics import InvalidModule
from lowering.parsing import LocatedParser, Misbound
from lowering.registry import dialect_factories, load_dialect
from lowering.verify import verify_module, witnesses

SEPARATOR = re.compile(r"^// -----.*\n?", re.MULTILINE)
"""A line between two modules of one text."""

_NAME = re.compile(r"[A-Za-z_]\w*|\d+")
_TOKEN = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|[%@!.]?[\w$]+|[\[\]]')
"""What matters for finding the names of dimensions, which stand in brackets."""
_OP_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[\w$]+)+")
_WORD = re.compile(r"[%@]?[\w$.\-]*$")

Range = tuple[int, int]
"""The offsets of the first character, and of the one after the last."""


@dataclass(frozen=True)
class Error:
    """An error, and the text that it is about."""

    range: Range
    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Source:
    """Where Python code begins."""

    path: Path
    line: int
    """From 0."""


@dataclass(frozen=True)
class Symbol:
    """A function, or another op with a name."""

    name: str
    op: Operation
    range: Range
    """Of the whole op."""
    name_range: Range


@dataclass
class _Names:
    """What was read of a text, by position."""

    values: dict[Range, SSAValue | None] = field(default_factory=dict[Range, SSAValue | None])
    """By occurrence of a name; `None` where the value is defined later, or not at all."""
    definitions: dict[SSAValue, Range] = field(default_factory=dict[SSAValue, Range])
    symbols: dict[int, Range] = field(default_factory=dict[int, Range])
    """The occurrences of symbols, by their start."""
    ops: list[tuple[Range, Operation]] = field(default_factory=list[tuple[Range, Operation]])


class _RecordingParser(LocatedParser):
    """Keeps the position of each name that is read, and what it stands for.

    A parser that reads ahead is made without `names`; what it finds is read again.
    """

    def __init__(self, ctx: Context, text: str, name: str, names: _Names | None = None) -> None:
        self._names = _Names() if names is None else names
        super().__init__(ctx, text, name)

    @override
    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> MLIRToken:
        at = self._current_token.span.start, self._current_token.span.end
        token = self._current_token
        if token.kind is MLIRTokenKind.PERCENT_IDENT:
            found = self.ssa_values.get(token.text[1:])
            self._names.values[at] = found[0] if found else self._names.values.get(at)
        elif token.kind is MLIRTokenKind.AT_IDENT:
            self._names.symbols[at[0]] = at
        return super()._consume_token(expected_kind)

    @override
    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        at, known = (span.start, span.end), self._names.values
        self._names.definitions.update(dict.fromkeys(values, at))
        if values:
            text = self.lexer.input.content
            waiting = [(a, b) for (a, b), value in known.items() if value is None and text[a + 1 : b] == name]
            known.update(dict.fromkeys([at, *waiting], values[0]))

    @override
    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        text = self.lexer.input.content[start : self._current_token.span.start]
        self._names.ops.append(((start, start + len(text.rstrip())), op))
        return op


@dataclass
class Chunk:
    """One module of a text, which begins at an offset."""

    text: str
    offset: int
    name: str
    context: Context
    errors: list[Error] = field(default_factory=list[Error])
    module: ModuleOp | None = None

    def __post_init__(self) -> None:
        self.names = _Names()
        try:
            self.module = _RecordingParser(self.context, self.text, self.name, self.names).parse_module()
            verify_module(self.module)
        except Misbound as error:
            self.errors += [_of_parser(each) for each in error.errors]
        except ParseError as error:
            self.errors.append(_of_parser(error))
        except InvalidModule as invalid:
            for finding in invalid.findings:
                self.errors.append(Error(self.head_of(finding.op), finding.message, finding.hint))

    @cached_property
    def _ranges(self) -> dict[Operation, Range]:
        return {op: at for at, op in self.names.ops}

    def range_of(self, op: Operation) -> Range:
        """The text of an op; of one without text of its own, that of the op around it."""
        current: Operation | None = op
        while current is not None:
            if (found := self._ranges.get(current)) is not None:
                return found
            current = current.parent_op()
        return 0, len(self.text)

    def head_of(self, op: Operation) -> Range:
        """The first line of the text of an op."""
        start, end = self.range_of(op)
        stop = self.text.find("\n", start, end)
        return start, end if stop < 0 else stop

    def op_at(self, offset: int) -> Operation | None:
        """The innermost op around an offset."""
        around = [(end - start, op) for (start, end), op in self.names.ops if start <= offset <= end]
        return min(around, key=lambda pair: pair[0])[1] if around else None

    def value_at(self, offset: int) -> tuple[Range, SSAValue] | None:
        """The value whose name is at an offset."""
        for at, value in self.names.values.items():
            if at[0] <= offset <= at[1] and value is not None:
                return at, value
        start, end = self.function_around(offset)
        for value, at in self.names.definitions.items():  # whose symbol is named in a type
            if start <= at[0] < end:
                found = [each for each in self.dimensions_of(value) if each[0] <= offset <= each[1]]
                if found:
                    return found[0], value
        return None

    def dimensions_of(self, value: SSAValue) -> list[Range]:
        """Where types name the symbol of which a value is the witness, in the function around it."""
        symbol = next((name for name, witness in witnesses(value.owner).items() if witness is value), None)
        if symbol is None:
            return []
        start, end = self.function_around(self.names.definitions[value][0])
        found: list[Range] = []
        depth = 0
        for token in _TOKEN.finditer(self.text, start, end):
            depth += (token[0] == "[") - (token[0] == "]")
            if depth and token[0] == symbol:
                found.append(token.span())
        return found

    def function_around(self, offset: int) -> Range:
        """The text of the function around an offset; nothing if there is none."""
        op = self.op_at(offset)
        while op is not None and not op.has_trait(SymbolOpInterface):
            op = op.parent_op()
        return (0, 0) if op is None else self.range_of(op)

    def symbol_at(self, offset: int) -> tuple[Range, str] | None:
        """The symbol that is named at an offset, without its `@`."""
        for at in self.names.symbols.values():
            if at[0] <= offset <= at[1]:
                return at, self.text[at[0] + 1 : at[1]].strip('"')
        return None

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """The ops with a name, by it."""
        found: dict[str, Symbol] = {}
        for at, op in sorted(self.names.ops, key=lambda pair: pair[0]):
            name = op.get_attr_or_prop("sym_name") if op.has_trait(SymbolOpInterface) else None
            if isinstance(name, StringAttr):
                named = next((each for start, each in sorted(self.names.symbols.items()) if start >= at[0]), at)
                found.setdefault(name.data, Symbol(name.data, op, at, named))
        return found

    def op_name_at(self, offset: int) -> tuple[Range, str] | None:
        """The name of an op at an offset."""
        for match in _OP_NAME.finditer(self.text, self.text.rfind("\n", 0, offset) + 1):
            if match.start() <= offset <= match.end():
                known = self.context.get_optional_op(match[0]) is not None
                return (match.span(), match[0]) if known else None
            if match.start() > offset:
                break
        return None

    def values_before(self, offset: int) -> Iterator[tuple[str, SSAValue]]:
        """The values that are defined before an offset in the function around it, with their names."""
        op = self.op_at(offset)
        while op is not None and not op.has_trait(SymbolOpInterface):
            op = op.parent_op()
        start = self.range_of(op)[0] if op is not None else self.text.rfind("\n}", 0, offset) + 1
        for value, at in self.names.definitions.items():
            if start <= at[0] < offset:
                yield self.text[at[0] : at[1]], value


def _of_parser(error: ParseError) -> Error:
    start, end = error.span.start, error.span.end
    return Error((start, max(end, start + 1)), error.msg or "unexpected text")


class Document:
    """A whole text."""

    def __init__(self, text: str, name: str = "<text>") -> None:
        self.text = text
        context = make_context()
        starts = [0, *(match.end() for match in SEPARATOR.finditer(text))]
        ends = [*(match.start() for match in SEPARATOR.finditer(text)), len(text)]
        self.chunks = [Chunk(text[start:end], start, name, context) for start, end in zip(starts, ends, strict=True)]
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def chunk_at(self, offset: int) -> Chunk:
        """The module around an offset."""
        return self.chunks[max(bisect_right([chunk.offset for chunk in self.chunks], offset) - 1, 0)]

    def errors(self) -> list[Error]:
        """The errors of all modules."""
        return [
            Error(_moved(error.range, chunk.offset), error.message, error.hint)
            for chunk in self.chunks
            for error in chunk.errors
        ]

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset, from 0; columns count UTF-16 code units, as editors do."""
        line = bisect_right(self._lines, offset) - 1
        return line, len(self.text[self._lines[line] : offset].encode("utf-16-le")) // 2

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column of UTF-16 code units; outside of the text, that of the nearest end."""
        if line >= len(self._lines):
            return len(self.text)
        start = self._lines[line]
        end = self._lines[line + 1] - 1 if line + 1 < len(self._lines) else len(self.text)
        units = self.text[start:end].encode("utf-16-le")[: 2 * column]
        return start + len(units.decode("utf-16-le", "ignore"))

    def hover(self, offset: int) -> tuple[Range, str] | None:
        """What is at an offset, in Markdown: the type of a value, the signature of a symbol, the docs of an op."""
        chunk, at = self._local(offset)
        if (found := chunk.value_at(at)) is not None:
            where, value = found
            name = chunk.text[where[0] : where[1]]
            text = _code(f"{name if name[0] == '%' else '%' + name} : {value.type}") + _definition(chunk, value)
        elif (named := chunk.symbol_at(at)) is not None and named[1] in chunk.symbols:
            where = named[0]
            start, end = chunk.head_of(chunk.symbols[named[1]].op)
            text = _code(chunk.text[start:end].removesuffix("{").rstrip())
        elif (op := chunk.op_name_at(at)) is not None:
            where, name = op
            text = f"**{name}**\n\n{inspect.getdoc(chunk.context.get_op(name)) or ''}"
        else:
            return None
        return _moved(where, chunk.offset), text

    def definition(self, offset: int) -> Range | Source | None:
        """Where the value or symbol at an offset is defined; for the name of an op, its class."""
        chunk, at = self._local(offset)
        if (found := chunk.value_at(at)) is not None:
            where = chunk.names.definitions.get(found[1])
            return None if where is None else _moved(where, chunk.offset)
        if (named := chunk.symbol_at(at)) is not None:
            symbol = chunk.symbols.get(named[1])
            return None if symbol is None else _moved(symbol.name_range, chunk.offset)
        if (op := chunk.op_name_at(at)) is not None:
            return _source(chunk.context.get_op(op[1]))
        return None

    def references(self, offset: int) -> list[Range]:
        """All occurrences of the value or symbol at an offset, its definition included; of the witness of a symbolic
        dimension also those of the symbol in types.
        """
        chunk, at = self._local(offset)
        if (found := chunk.value_at(at)) is not None:
            ranges = [where for where, value in chunk.names.values.items() if value is found[1]]
            ranges += chunk.dimensions_of(found[1])
        elif (named := chunk.symbol_at(at)) is not None:
            every = chunk.names.symbols.values()
            ranges = [where for where in every if chunk.text[where[0] + 1 : where[1]].strip('"') == named[1]]
        else:
            return []
        return sorted(_moved(where, chunk.offset) for where in ranges)

    def renamed(self, offset: int, name: str) -> list[tuple[Range, str]]:
        """The edits that give the value or symbol at an offset another name; `ValueError` if that is none, or taken."""
        chunk, at = self._local(offset)
        ranges = self.references(offset)
        name = name.lstrip("%@")
        if not ranges:
            return []
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"'{name}' is no name: letters, digits and _ make one")
        if chunk.value_at(at) is None:
            taken = name in chunk.symbols
        else:
            start, end = chunk.function_around(at)
            taken = any(
                start <= where[0] < end and chunk.text[where[0] + 1 : where[1]] == name
                for where in chunk.names.definitions.values()
            )
        if taken:
            raise ValueError(f"the name {name} is taken")
        return [(each, f"{sign}{name}" if (sign := self.text[each[0]]) in "%@" else name) for each in ranges]

    def implementations(self, offset: int) -> list[Source]:
        """For the name of an op: how it is lowered to a kernel or to other ops, and how it is interpreted."""
        from lowering.relax_to_tir.kernel import KERNELS, REWRITES
        from relax_dialect.interpreter.frame import RULES

        chunk, at = self._local(offset)
        if (op := chunk.op_name_at(at)) is None:
            return []
        op_type = chunk.context.get_op(op[1])
        rules = [table[op_type] for table in (KERNELS, REWRITES, RULES)]
        return [_source(rule) for rule in rules if rule is not None]

    def completions(self, offset: int) -> list[tuple[str, str]]:
        """What may be written at an offset, with a word about each: values after `%`, symbols after `@`, else ops."""
        chunk, at = self._local(offset)
        word = self.text[self.word_start(offset) : offset]
        if word.startswith("%"):
            found = {name: str(value.type) for name, value in chunk.values_before(at)}
        elif word.startswith("@"):
            found = {f"@{name}": symbol.op.name for name, symbol in chunk.symbols.items()}
        else:
            found = _ops(word.split(".")[0])
        return sorted((name, about) for name, about in found.items() if name.startswith(word))

    def word_start(self, offset: int) -> int:
        """Where the name begins that is being written at an offset."""
        match = _WORD.search(self.text, self.text.rfind("\n", 0, offset) + 1, offset)
        return offset if match is None else match.start()

    def symbols(self) -> list[Symbol]:
        """The ops with a name, in order."""
        return [
            Symbol(each.name, each.op, _moved(each.range, chunk.offset), _moved(each.name_range, chunk.offset))
            for chunk in self.chunks
            for each in chunk.symbols.values()
        ]

    def _local(self, offset: int) -> tuple[Chunk, int]:
        chunk = self.chunk_at(offset)
        return chunk, offset - chunk.offset


def _moved(at: Range, by: int) -> Range:
    return at[0] + by, at[1] + by


def _code(text: str) -> str:
    return f"```mlir\n{text}\n```\n"


def _definition(chunk: Chunk, value: SSAValue) -> str:
    """The line that defines a value which an op makes."""
    if not isinstance(value.owner, Operation):
        return ""
    start, end = chunk.head_of(value.owner)
    return _code(chunk.text[start:end])


def _ops(dialect: str) -> dict[str, str]:
    """The first lines of the docs of a dialect's ops, or the names of all dialects."""
    if dialect not in dialect_factories():
        return {f"{name}.": "dialect" for name in dialect_factories()}
    return {op.name: (inspect.getdoc(op) or "").partition("\n")[0] for op in load_dialect(dialect).operations}


def _source(thing: object) -> Source:
    assert callable(thing)
    code = inspect.unwrap(thing)
    _, line = inspect.getsourcelines(code)
    return Source(Path(inspect.getsourcefile(code) or ""), max(line - 1, 0))
