"""MLIR text to a module, with every op knowing the line and column that it was written at."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from struct import unpack
from typing import Self, TypeVar

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    NoneType,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue, TypeAttribute
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.universe import XDSL_UNIVERSE
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Position, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from lowering.parse_errors import explained
from lowering.registry import dialect_factories, installed_dialects
from tir_dialect.name_hints import as_name_hint

FoundT = TypeVar("FoundT")


class CompilerContext(Context):
    """A context that looks among installed extensions for what it does not know."""

    def _extended(self) -> bool:
        """Whether there are dialects that the context has not known until now."""
        new = {name: make for name, make in installed_dialects().items() if name not in self._registered_dialects}
        for name, factory in new.items():
            self.register_dialect(name, factory)
        return bool(new)

    @override
    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        if (known := self._loaded_ops.get(name)) is not None:  # for nearly every op of a text
            return known
        return self._known(lambda: super(CompilerContext, self).get_optional_op(name, dialect_stack=dialect_stack))

    @override
    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        return self._known(lambda: super(CompilerContext, self).get_optional_type(name))

    @override
    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        return self._known(lambda: super(CompilerContext, self).get_optional_attr(name))

    def _known(self, find: Callable[[], FoundT | None]) -> FoundT | None:
        """What is found, after a look at what is installed if need be; what is not registered comes last."""
        allowed, self.allow_unregistered = self.allow_unregistered, False
        try:
            found = find()
            if found is None and self._extended():
                found = find()
        finally:
            self.allow_unregistered = allowed
        return find() if found is None and allowed else found


def make_context() -> Context:
    """A context that knows our dialects and xDSL's, and those of installed extensions; a dialect is imported when its
    first op or type is met.
    """
    ctx = CompilerContext()
    for name, factory in (XDSL_UNIVERSE.all_dialects | dialect_factories()).items():
        ctx.register_dialect(name, factory)
    return ctx


def parse_module(text: str, name: str = "<text>", ctx: Context | None = None) -> ModuleOp:
    """Parses a module, implicit or not; ops without a `loc(...)` of their own get `name`, line and column.

    The module is not verified. `ParseError`: malformed text; its message shows the line with a caret.
    """
    return LocatedParser(ctx or make_context(), text, name).parse_module()


class LinearLexer(MLIRLexer):
    """xDSL's lexer, whose time for a string that is not closed doubles with every character, without backtracking.

    Escaped text that is not ASCII, as xDSL itself prints it, is a string too.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    @override
    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        token = super()._lex_string_literal(start_pos)
        if token.kind is not MLIRTokenKind.BYTES_LIT:
            return token
        literal = StringLiteral(token.span.start, token.span.end, self.input)
        try:
            literal.bytes_contents.decode()
        except UnicodeDecodeError:
            return token
        return Token(MLIRTokenKind.STRING_LIT, literal)


class _Bits(int):
    """A number in hexadecimal digits: for a float, its bits, which the base class of our parser takes for a number."""

    _format: str | None
    _bytes: int

    def __new__(cls, value: int, digits: int) -> Self:
        bits = super().__new__(cls, value)
        bits._format = {4: "<e", 8: "<f", 16: "<d"}.get(digits)
        bits._bytes = digits // 2
        return bits

    def __float__(self) -> float:
        if self._format is None:
            return float(int(self))
        return unpack(self._format, self.to_bytes(self._bytes, "little"))[0]


class Misbound(ParseError):
    """Ops of a text whose results have more or fewer names than there are; shows all of them."""

    def __init__(self, errors: Sequence[ParseError]):
        super().__init__(errors[0].span, errors[0].msg)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


class LocatedParser(Parser):
    """xDSL's parser, which leaves ops without a location, with the positions of the text filled in.

    A type or op that is rejected while it is built becomes a `ParseError` at its op, so that it too has a caret.
    """

    def __init__(self, ctx: Context, text: str | bytes, name: str = "<text>", line_offset: int = 0) -> None:
        super().__init__(ctx, "", name)
        source = text.decode("utf-8") if isinstance(text, bytes) else text
        try:
            self._parser_state = ParserState(LinearLexer(Input(source, name)))
        except ParseError as error:
            raise explained(error, source, (), line_offset) from None
        self._line_offset = line_offset
        self._filename = StringAttr(name)
        self._op_start = 0
        self._bound: list[list[tuple[Span, int]]] = []
        """The names before the ops that are being read, the outermost first."""
        self._misbound: list[ParseError] = []

    @override
    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """A module, as in the base class; a text without ops is an implicit module without ops.

        `"builtin.module"() ({})`, without a block, has none either.
        """
        if allow_implicit_module and self._current_token.kind is MLIRTokenKind.EOF:
            return ModuleOp([])
        try:
            module = super().parse_module(allow_implicit_module)
        except ParseError as error:
            if self._misbound:  # from which others may follow
                raise Misbound(self._misbound) from error
            better = explained(error, self.lexer.input.content, self.ssa_values, self._line_offset)
            if better is error:
                raise
            raise better from None
        if self._misbound:
            raise Misbound(self._misbound)
        if not module.body.blocks:  # generic form, as MLIR reads it
            module.body.add_block(Block())
        return module

    def parse_operation(self) -> Operation:
        """One op, as in the base class, with its location."""
        span = self._current_token.span
        self._op_start = span.start
        try:
            op = super().parse_operation()
            self._bind_results(op, self._bound.pop())
        except (VerifyException, ValueError) as error:
            self.raise_error(str(error), span)
        except OverflowError:  # of a float that is packed, in words of Python's `struct`
            self.raise_error("a number is too large for its floating-point type", span)
        self._locate(op, span.start)
        return op

    @override
    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        # The base class, which sees no names here, would end with the first wrong number of them.
        self._bound.append(super()._parse_op_result_list())
        return []

    def _bind_results(self, op: Operation, names: Sequence[tuple[Span, int]]) -> None:
        """Gives the results their names; a wrong number of those is an error when all of the text is read."""
        count = sum(size for _, size in names)
        if names and count != len(op.results):
            expected = f"{len(op.results)} result{'s' if len(op.results) != 1 else ''}"
            given = ", ".join(span.text if size == 1 else f"{span.text}:{size}" for span, size in names)
            message = f"'{op.name}' op has {expected}, expected as many names, got {count}: {given}"
            self._misbound.append(ParseError(Span(names[0][0].start, names[-1][0].end, self.lexer.input), message))
        # A name too many stands for a value of which nothing is known.
        missing = [NoneType()] * (count - len(op.results))
        results = [*op.results, *Block(arg_types=missing).args]
        for span, size in names:
            self._register_ssa_definition(span.text[1:], results[:size], span)
            results = results[size:]

    @override
    def _get_op_by_name(self, name: str) -> type[Operation]:
        # The base class points after the name, and knows no near misses.
        if (op := self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)) is not None:
            return op
        from difflib import get_close_matches

        close = get_close_matches(name, [known.name for known in self.ctx.loaded_ops], n=2)
        advice = f"; did you mean {' or '.join(repr(match) for match in close)}" if close else ""
        position = self.lexer.input.content.find(name, self._op_start)
        self.raise_error(f"unknown operation '{name}'{advice}", position, position + len(name))

    @override
    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        for value in values:
            value.name_hint = as_name_hint(name)

    @override
    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        element = super()._parse_tensor_literal_element()
        digits = element.span.text.removeprefix("0x")
        if digits == element.span.text or not isinstance(element.value, int):
            return element
        return self._TensorLiteralElement(False, _Bits(element.value, len(digits)), element.span)

    def _locate(self, op: Operation, position: int) -> None:
        """Gives the position to `op`, and to ops in it that have no text of their own, as inner loops of a nest."""
        if isinstance(op.location, UnknownLoc):
            op.location = self._location_of(position)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    if isinstance(inner.location, UnknownLoc):
                        inner.location = op.location
                        self._locate(inner, position)

    def _location_of(self, position: int) -> FileLineColLoc:
        starts = _line_starts(self.lexer.input.content)
        line = bisect_right(starts, position)
        column = position - starts[line - 1] + 1
        return FileLineColLoc(self._filename, IntAttr(line + self._line_offset), IntAttr(column))


@lru_cache(maxsize=1)
def _line_starts(text: str) -> tuple[int, ...]:
    """Where the lines of a text begin; it may be read by several parsers in turn."""
    return (0, *accumulate(len(line) + 1 for line in text.split("\n")))
