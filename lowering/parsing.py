"""MLIR text to a module in which every op knows the line and column that it was written at."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from struct import unpack
from typing import Self

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, NoneType, StringAttr, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Position, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from lowering.context import make_context
from lowering.parse_errors import example_of, explained
from tir_dialect.types import as_name_hint


def parse_module(text: str, name: str = "<text>", ctx: Context | None = None) -> ModuleOp:
    """Parses a module, implicit or not; ops without a `loc(...)` of their own get `name`, line and column.

    The module is not verified. `ParseError`: malformed text; its message shows the line with a caret.
    """
    return LocatedParser(ctx or make_context(), text, name).parse_module()


_OP_NAME = re.compile(r'(?:%[^=\n]*=\s*)?"?([A-Za-z_][\w.$]*)')


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
        self._failed: type[Operation] | None = None
        """The op in which an error was found."""

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
            better = explained(error, self.lexer.input.content, self.ssa_values, self._line_offset, self._failed)
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
        except ParseError:
            self._failed = self._failed or self._op_at(span.start)
            raise
        except (VerifyException, ValueError) as error:
            self.raise_error(str(error), span)
        except OverflowError:  # of a float that is packed, in words of Python's `struct`
            self.raise_error("a number is too large for its floating-point type", span)
        self._locate(op, span.start)
        return op

    def _op_at(self, position: int) -> type[Operation] | None:
        """The class of the op whose text begins there, or nothing if there is none."""
        name = _OP_NAME.match(self.lexer.input.content, position)
        return None if name is None else self.ctx.get_optional_op(name[1], dialect_stack=("relax", "tir", "builtin"))

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
            one_for_several = len(names) == 1 and len(op.results) > 1
            hint = f"; write {names[0][0].text}:{len(op.results)} = ..." if one_for_several else ""
            if not op.results and (example := example_of(type(op), "%")) is not None:
                hint = f"; with a result it is written {example}"
            message = f"'{op.name}' op has {expected}, expected as many names, got {count}: {given}{hint}"
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
        from relax_dialect.loading import near_operators, op_classes, scalar_operations

        scalar = [
            each for each in scalar_operations(name.rpartition(".")[2]) if self.ctx.get_optional_op(each) is not None
        ]
        close = near_operators(name, {*op_classes(), *scalar, *(known.name for known in self.ctx.loaded_ops)})
        advice = f"; did you mean {' or '.join(repr(match) for match in close)}" if close else ""
        if name == "tir.return":
            advice = "; a 'tir.prim_func' returns nothing: it writes into its buffers"
        text = self.lexer.input.content
        position = text.find(name, self._op_start)
        if not name:
            self.raise_error("expected an operation, got a string; comments begin with //", self._op_start)
        if re.match(r"\s*(,\s*\w+\s*)*=", text[position + len(name) :]) is not None:
            advice = f"; names of values begin with %: %{name}"
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
            starts = _line_starts(self.lexer.input.content)
            line = bisect_right(starts, position)
            column = position - starts[line - 1] + 1
            op.location = FileLineColLoc(self._filename, IntAttr(line + self._line_offset), IntAttr(column))
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    if isinstance(inner.location, UnknownLoc):
                        inner.location = op.location
                        self._locate(inner, position)


@lru_cache(maxsize=1)
def _line_starts(text: str) -> tuple[int, ...]:
    """Where the lines of a text begin; it may be read by several parsers in turn."""
    return (0, *accumulate(len(line) + 1 for line in text.split("\n")))


def require_module(what: str, given: object) -> None:
    """`TypeError` if `what` was given something else than a module."""
    if not isinstance(given, ModuleOp):
        hint = "; put it into one: ModuleOp([function])" if isinstance(given, Operation) else ""
        hint = "; xdsl_relax.load reads a text or a file" if isinstance(given, str) else hint
        raise TypeError(f"{what} expected a module (builtin.module), got {type(given).__name__}{hint}")
