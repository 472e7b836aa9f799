"""MLIR text to a module in which every op knows the line and column that it was written at.

Errors of the parser say what to do.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate
from struct import unpack
from typing import Self, cast

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
from tir_dialect.types import as_name_hint

_TYPES = {
    "half": "f16",
    "bfloat16": "bf16",
    "float": "f32",
    "double": "f64",
    "bool": "i1",
    "boolean": "i1",
    "int": "i64",
    "long": "i64",
    **{f"{kind}{bits}": f"f{bits}" for kind in ("float", "fp") for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"{kind}{bits}": f"ui{bits}" for kind in ("u", "uint") for bits in (8, 16, 32, 64)},
}
"""Element types as NumPy and others call them, and as texts do."""

_TWICE = re.compile(r"SSA value %(?P<name>\S+) is already defined")
_USED_EARLY = re.compile(r"value %(?P<name>\S+) is used before its definition")
_TOKEN = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|[{}]')
_FUNCTION = re.compile(r"^[ \t]*(?P<op>(?:relax|vm|llvm|func)\.func|tir\.prim_func)\b", re.MULTILINE)
_SUFFIXES = (".mlir", ".onnx", ".pt2", ".py", ".rvm")


def explained(
    error: ParseError, text: str, names: Iterable[str], offset: int = 0, op: type[Operation] | None = None
) -> ParseError:
    """The error in words that say what to do, at the place where to do it.

    `names` are those of visible values, `op` is what was being read; `offset` lines of the file are before the text.
    """
    span, message = cast("Span[str]", error.span), error.msg.strip()
    used = _USED_EARLY.fullmatch(message)
    if "\n" not in text.strip() and text.strip().endswith(_SUFFIXES):
        return ParseError(span, "expected the text of a module, got a path: xdsl_relax.load reads the file")
    if used is not None:
        return ParseError(span, _undefined(used["name"], span.start, text, names, offset))
    if text[span.start : span.start + 1] == "#" and "{first_char}" in message:
        return ParseError(span, "comments begin with //, not with #")
    if message == "in block definition":
        other = ParseError(span, _not_an_operation(text, span))
        return _unclosed(error, text, offset) or other
    if (twice := _TWICE.fullmatch(message)) is not None:
        return _unclosed(error, text, offset) or ParseError(span, _defined_twice(twice["name"], span, text, offset))
    for moved in _type_of_constant, _unknown_type:
        if (better := moved(message, text, span)) is not None:
            return better
    for pattern, hint in _HINTS:
        if re.fullmatch(pattern, message) is not None and (said := hint(text, span)) is not None:
            return ParseError(span, said)
    missing = _MISSING.fullmatch(message)
    if op is not None and missing is not None and not _in_type(text, span):
        words = [word for word in missing.groups() if word is not None]
        what = "a region in braces" if not words else _LITERALS.get(words[0], words[0])
        got = f"'{span.text}'" if span.text else "the end of the text"
        example = example_of(op)
        written = "" if example is None else f"; it is written {example}"
        return ParseError(span, f"'{op.name}' op expected {what}, got {got}{written}")
    return error


def _in_type(text: str, span: Span) -> bool:
    """Whether a position is within the angle brackets of a type, of which the syntax of the op says nothing."""
    before = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    inside = before[before.rfind("!") :] if "!" in before else ""
    return inside.count("<") > inside.replace("->", "").count(">")


_LITERALS = {
    "string": "a string in quotes",
    "integer": "an integer",
    "boolean": "true or false",
    "float": "a number",
    "type": "a type",
}
_MISSING = re.compile(
    r"Expected region!|Expected ('\S+')|('\S+') expected|expected (':' and the result types)"
    r"|(\w+) literal expected.*|Expected (\w+) literal|(type) expected"
)
"""What parsers say of something that is not there."""


def example_of(op: type[Operation], start: str = "") -> str | None:
    """The first line of the documentation of an op that shows how it is written, and begins so."""
    for block in re.findall(r"```mlir\n(.*?)```", op.__doc__ or "", re.DOTALL):
        for line in block.splitlines():
            text = line.strip()
            if text.startswith(start) and re.search(rf"(?<![\w.]){re.escape(op.name)}(?![\w.])", text) is not None:
                return text
    return None


def _defined_twice(name: str, span: Span, text: str, offset: int) -> str:
    """What to say of a name that a value has already."""
    before = list(re.finditer(rf"(?<![\w$.%-])%{re.escape(name)}(?![\w$.-])", text[: span.start]))
    where = f" in line {_line(text, before[0].start()) + offset}" if before else ""
    return f"value %{name} is defined already{where}; give this one another name"


def _not_an_operation(text: str, span: Span) -> str:
    """What to say of something that stands where an op begins."""
    message = f"expected an operation or '}}', got '{span.text}'"
    if span.text == "," and re.search(r"\breturn[^\n]*$", text[: span.start]) is not None:
        return f"{message}; several results are one tuple: %0 = relax.tuple(%x, %y)"
    if re.match(r"\w+\s*(,\s*\w+\s*)*=", text[span.start :]) is not None:
        return f"{message}; names of values begin with %: %{span.text}"
    return message


def _type_of_constant(message: str, text: str, span: Span) -> ParseError | None:
    """What to say of a type of relax where the elements of a constant have one of MLIR."""
    if not message.startswith("Expected memref, vector or tensor type"):
        return None
    found = list(re.finditer(r"!relax\.tensor<\[(?P<dims>[\d\s,]*)\],\s*(?P<dtype>\w+)>", text[: span.start]))
    if not found or text[found[-1].end() : span.start].strip():
        return None
    dims = "".join(f"{each.strip()}x" for each in found[-1]["dims"].split(",") if each.strip())
    wrong = Span(*found[-1].span(), span.input)
    wanted = f"tensor<{dims}{found[-1]['dtype']}>"
    return ParseError(wrong, f"dense<...> is followed by a type of MLIR; did you mean {wanted}?")


def _instead_of_value(text: str, span: Span) -> str | None:
    """What to say of something else where a value has to stand."""
    if not span.text:
        return "expected a value, got the end of the text"
    got = f"expected a value, got '{span.text}'"
    in_graph = "relax." in text[text.rfind("\n", 0, span.start) + 1 : span.start]
    if in_graph and span.text == "[":
        return f"{got}; a shape is a value, too: %shape = relax.shape [4, n]"
    if in_graph and span.text == "relax":
        return f"{got}; an operand is a value, and the op that makes it stands in a line of its own: %y = relax.exp %x"
    if re.fullmatch(r"[A-Za-z_]\w*", span.text):
        return f"{got}; names of values begin with %: %{span.text}"
    if in_graph and re.match(r"-?\d", span.text):
        return f"{got}; a number is a value, too: %c = relax.constant dense<1.0> : tensor<f32>"
    return got


def _instead_of_type(text: str, span: Span) -> str | None:
    """What to say of something else where a type has to stand."""
    if (known := _TYPES.get(span.text)) is not None:
        return f"unknown type '{span.text}'; did you mean {known}?"
    if re.match(r"(?:relax|tir|vm)\.\w", span.text):
        return f"types of dialects begin with !: !{span.text}"
    if (quoted := span.text[1:-1]) and span.text[0] == '"':
        return f"types stand without quotes: {_TYPES.get(quoted, quoted)}"
    return None


_TYPE_NAMES = ("relax.tensor", "relax.shape", "relax.tuple", "relax.object", "relax.prim", "relax.func", "tir.buffer")


def _unknown_type(message: str, text: str, span: Span) -> ParseError | None:
    """What to say of the name of a type that there is not, behind which the parser has noticed it."""
    if re.fullmatch(r"undefined symbol alias '!.*'|'\S+' is not registered|Expected attribute name\.", message) is None:
        return None
    found = re.search(r"!(?P<name>[\w.]+)\W*$", text[: span.end])
    if found is None:
        return None
    last = {each.rpartition(".")[2]: each for each in _TYPE_NAMES}
    close = get_close_matches(found["name"].rpartition(".")[2].lower(), last, n=1)
    hint = "".join(f"; did you mean !{last[each]}?" for each in close)
    wrong = Span(found.start(), found.end("name"), span.input)
    return ParseError(wrong, f"unknown type '!{found['name']}'{hint}")


_SHAPED = re.compile(r"((?:(?:\d+|\?|\w+?)x)*)([a-z]+\d+)\b|(\d+(?:\s*,\s*\w+)*)")


def _instead_of_shape(text: str, span: Span) -> str | None:
    """What to say of something else where a shape has to stand."""
    kind = re.search(r"!(relax\.tensor|tir\.buffer)<\s*$", text[max(0, span.start - 40) : span.start])
    written = _SHAPED.match(text, span.start)
    if kind is not None and span.text == "(":
        return f"expected a shape in brackets: !{kind[1]}<[4, n], f32>"
    if written is None or kind is None:
        return None
    dims, dtype = written[1], written[2]
    if dtype is None:
        return f"expected a shape in brackets: !{kind[1]}<[4, n], f32>"
    listed = ", ".join("_" if each == "?" else each for each in dims.split("x")[:-1])
    return f"expected a shape in brackets: !{kind[1]}<[{listed}], {dtype}>"


def _inside_of_shape(text: str, span: Span) -> str | None:
    """What to say of something else within a shape than a dimension."""
    before = text[: span.start].rstrip()
    if "//" in before[before.rfind("\n") + 1 :] and span.start > len(before):
        return "expected ']' in a shape; // begins a comment, and a quotient is floordiv(n, 2) or ceildiv(n, 2)"
    if span.text == "/":
        return "expected ']' in a shape, got '/'; a quotient is floordiv(n, 2) or ceildiv(n, 2)"
    return None


def _mlir_tensor(text: str, span: Span) -> str | None:
    """What to say of a type of MLIR where one of relax has to stand."""
    found = re.compile(r"tensor<([^<>]*)>").match(text, span.start)
    shaped = None if found is None else _SHAPED.fullmatch(found[1])
    if found is None or shaped is None or shaped[2] is None:
        return None
    listed = ", ".join("_" if each == "?" else each for each in shaped[1].split("x")[:-1])
    return f"expected a relax type, got {found[0]}; did you mean !relax.tensor<[{listed}], {shaped[2]}>?"


def _instead_of_name(begin: str, what: str) -> Callable[[str, Span], str | None]:
    """What to say of something else where a name has to stand that begins with a sign."""

    def hint(text: str, span: Span) -> str | None:
        if span.text == "impure":
            return "'impure' stands before the body: relax.func @f() -> !relax.object impure {"
        if re.fullmatch(r"[A-Za-z_][\w.]*", span.text) is None:
            return None
        return f"names of {what} begin with {begin}: {begin}{span.text}"

    return hint


_HINTS: tuple[tuple[str, Callable[[str, Span], str | None]], ...] = (
    ("(type|attribute) expected", _instead_of_type),
    ("expected a value", _instead_of_value),
    (r"'\[' expected( in a shape)?", _instead_of_shape),
    (r"'\]' expected in a shape", _inside_of_shape),
    ("expected a relax type, got tensor.*", _mlir_tensor),
    ("Expected block argument!", _instead_of_name("%", "values")),
    ("expect symbol name", _instead_of_name("@", "functions")),
    ("Expected region!", lambda text, span: _RESULT_TYPE if span.text == ":" else None),
    ("Expected ':' in dense attribute", lambda text, span: f"dense<...> is followed by its type: {_CONSTANT}"),
    (
        "Invalid type given for integer or float attribute.",
        lambda text, span: f"a constant is written {_CONSTANT}" if _IN_CONSTANT.search(text[: span.start]) else None,
    ),
    ("Unexpected character: ;", lambda text, span: "an op ends without ;"),
    ("Could not parse entire input!", lambda text, span: f"expected an operation, got '{span.text}'"),
)
"""What a parser says, and what to say instead."""

_CONSTANT = "relax.constant dense<1.0> : tensor<f32>"
_IN_CONSTANT = re.compile(r"constant[^\n]*\n?[^\n]*$")
_RESULT_TYPE = "expected '{' or '->', got ':'; the type of the result is written -> !relax.tensor<[n], f32>"


def _undefined(name: str, use: int, text: str, names: Iterable[str], offset: int) -> str:
    """Why a value is not visible where it is used."""
    definition = re.compile(rf"^[ \t]*(?:%[^=\n]*,\s*)?%{re.escape(name)}(?::\d+)?\s*(?:,[^=\n]*)?=", re.MULTILINE)
    found = list(definition.finditer(text))
    before = [each for each in found if each.end() <= use]
    if before and "\n" not in text[before[-1].end() : use]:
        return f"value %{name} is used in its own definition"
    if before:
        start = before[-1].end()
        ended = [each for each in _regions(text) if each.start < start < each.end <= use]
        if ended:
            line = ended[-1].line + offset
            if ended[-1].op == "relax.dataflow":
                return f"value %{name} is local to the dataflow of line {line}; add it to its relax.output"
            return f"value %{name} is defined in the region of line {line}, and is not visible outside of it"
    elif found:
        return f"value %{name} is used before its definition in line {_line(text, found[0].end()) + offset}"
    close = get_close_matches(name, list(names), n=1)
    return f"value %{name} is not defined" + (f"; did you mean %{close[0]}?" if close else "")


@dataclass(frozen=True)
class _Region:
    """What stands between braces."""

    start: int
    end: int
    """Behind the closing brace, or beyond the text if there is none."""
    op: str
    """The first name of an op in the line of the brace; empty if there is none."""
    line: int


def _regions(text: str) -> list[_Region]:
    """The parts of a text in braces, by where they begin."""
    found: list[_Region] = []
    pending: list[int] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            pending.append(token.start())
        elif token[0] == "}" and pending:
            found.append(_region(text, pending.pop(), token.end()))
    found += [_region(text, start, len(text) + 1) for start in pending]
    return sorted(found, key=lambda region: region.start)


def _region(text: str, start: int, end: int) -> _Region:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    op = re.search(r"(?<![!\w.])[a-z_]\w*\.\w[\w.]*", line)
    return _Region(start, end, "" if op is None else op[0], _line(text, start))


def _unclosed(error: ParseError, text: str, offset: int) -> ParseError | None:
    """The error that a brace is missing: before a function that begins in another one, or at the end of the text."""
    regions = [each for each in _regions(text) if not each.op.startswith(("builtin.", "module"))]
    brace = "the '{'"
    for begin in _FUNCTION.finditer(text):
        around = next((each for each in regions if each.start < begin.start() < each.end), None)
        if around is not None and around.end > len(text):
            span = Span(begin.start("op"), begin.end("op"), cast("Input[str]", error.span.input))
            line = around.line + offset
            return ParseError(span, f"expected '}}' before the function: {brace} of line {line} is not closed")
    last = next((each for each in reversed(regions) if each.end > len(text)), None)
    if last is None:
        return None
    line = last.line + offset
    return ParseError(error.span, f"expected '}}' before the end of the text: {brace} of line {line} is not closed")


def _line(text: str, position: int) -> int:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return bisect_right(starts, position)


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
        from relax_dialect.loading import near_operators, op_classes

        close = near_operators(name, {*op_classes(), *(known.name for known in self.ctx.loaded_ops)})
        advice = f"; did you mean {' or '.join(repr(match) for match in close)}" if close else ""
        text = self.lexer.input.content
        position = text.find(name, self._op_start)
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
