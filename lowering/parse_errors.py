"""Errors of the parser of MLIR text, in words that say what to do and at the place where to do it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

from tir_dialect.dtypes import parse_dtype

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
_PYTHON = re.compile(r"(?:def|class|import|from|@[A-Z]\.\w+|with|print)\b")
_SUFFIXES = (".mlir", ".onnx", ".pt2", ".py", ".rvm")


def explained(
    error: ParseError, text: str, names: Iterable[str], offset: int = 0, op: type[Operation] | None = None
) -> ParseError:
    """The error in words that say what to do, at the place where to do it.

    `names` are those of visible values, `op` is what was being read; `offset` lines of the file are before the text.
    """
    span, message = cast("Span[str]", error.span), error.msg.strip()
    used = _USED_EARLY.fullmatch(message)
    if not text[: span.start].strip() and (other := _not_a_module(text)) is not None:
        return ParseError(span, other)
    if used is not None:
        return ParseError(span, _undefined(used["name"], span.start, text, names, offset))
    if text[span.start : span.start + 1] == "#" and "{first_char}" in message:
        return ParseError(span, "comments begin with //, not with #")
    if message == "in block definition":
        other = ParseError(span, _not_an_operation(text, span))
        return _unclosed(error, text, offset) or other
    if (twice := _TWICE.fullmatch(message)) is not None:
        return _unclosed(error, text, offset) or ParseError(span, _defined_twice(twice["name"], span, text, offset))
    for moved in _type_of_constant, _shape_of_constant, _unknown_type:
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
        if what == "')'" and span.text.startswith("%"):
            what = "',' or ')'"
        return ParseError(span, f"'{op.name}' op expected {what}, got {got}{_advice(op, what, span)}")
    return error


def _advice(op: type[Operation], missing: str, span: Span) -> str:
    """How the op is written of which something is missing."""
    if missing == "'else'":
        return f"; it has both branches: {op.name} %c {{ ... }} else {{ ... }}"
    if missing == "']'" and span.text in ("+", "-", "*"):
        return "; an index is a value: %j = arith.addi %i, %one : index"
    if missing == "'->'" and span.text == "{":
        return "; several results are one tuple: -> !relax.tuple<!relax.tensor<[n], f32>, !relax.shape>"
    example = example_of(op)
    return "" if example is None else f"; it is written {example}"


def _not_a_module(text: str) -> str | None:
    """What to say of something else where a module begins."""
    if "\n" not in text.strip() and text.strip().endswith(_SUFFIXES):
        return "expected the text of a module, got a path: xdsl_relax.load reads the file"
    if _PYTHON.match(text.lstrip()) is None:
        return None
    reads = "relax-translate --import-tvmscript, or from a .py file"
    return f"expected the text of a module, got Python: TVMScript is read by {reads}"


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
    r"Expected region!|Expected ('\S+')(?: after block argument name!)?|('\S+') expected"
    r"|expected (':' and the result types)"
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
    if text.startswith("/*", span.start):
        return "comments begin with // and end with the line, not with /* and */"
    if span.text == ":" and re.search(r"\breturn[^\n]*$", text[: span.start]) is not None:
        return f"{message}; 'relax.return' has no type, its value has one"
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


def _shape_of_constant(message: str, text: str, span: Span) -> ParseError | None:
    """What to say of a constant whose elements do not have the shape of its type."""
    found = re.fullmatch(
        r"Shape mismatch in dense literal\. Expected (\[.*\]) shape from the type, but got (\[.*\]) shape\.", message
    )
    start = text.rfind("dense<", 0, span.start)
    if found is None or start < 0:
        return None
    wrong = Span(start, start + len("dense"), span.input)
    return ParseError(wrong, f"the elements have the shape {found[2]}, and the type has {found[1]}")


def _instead_of_value(text: str, span: Span) -> str | None:
    """What to say of something else where a value has to stand."""
    if not span.text:
        return "expected a value, got the end of the text"
    got = f"expected a value, got '{span.text}'"
    if span.text == "(":
        return f"{got}; operands stand without parentheses"
    if re.search(r"\brelax\.return\s*$", text[: span.start]) is not None:
        return f"{got}; a function returns one value, which may be empty: %0 = relax.tuple()"
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
    if _in_type(text, span) and span.text.isidentifier():
        try:
            parse_dtype(span.text)
        except ValueError as error:
            return re.sub(r"(?<=did you mean )\w+", lambda name: _TYPES.get(name[0], name[0]), str(error))
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
    last = re.search(r"\w+$", before)
    if last is not None and (last[0] in _TYPES or last[0] in _TYPES.values()):
        return f"expected ']' in a shape before the dtype {last[0]}"
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


def _instead_of_dimension(text: str, span: Span) -> str | None:
    """What to say of something else where a dimension has to stand."""
    if span.text.startswith("%"):
        return f"symbols stand without % in types: {span.text[1:]}"
    return f"expected a dimension: an integer, a symbol, a function or '(', got '{span.text}'" if span.text else None


def _no_name(text: str, span: Span) -> str | None:
    """What to say of something else where an op has its name."""
    if span.text.startswith("@"):
        return f"a function is called by relax.call: %0 = relax.call {span.text}(%x)"
    infix = re.compile(r"%[\w.#]+\s*([-+*/])\s*%[\w.#]+").match(text, span.start)
    if infix is None:
        return f"expected the name of an operation, got '{span.text}'"
    name = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}[infix[1]]
    return f"an operation begins with its name: relax.{name} %x, %y"


def _scalar_kind(text: str, span: Span) -> str | None:
    """What to say of an arithmetic op of integers that is given floats, or the other way round."""
    found = re.compile(r"(?:%[\w, %]+=\s*)?(arith\.(\w+))[^\n]*:\s*(\S+)").match(text, span.start)
    if found is None:
        return None
    name, stem, given = found.groups()
    floats = not stem.endswith("f")
    stem = re.sub("(?:[su]?i|f)$", "", stem)
    other = {"max": "maximumf", "min": "minimumf"}.get(stem, f"{stem}f") if floats else f"{stem}i"
    kind = "integers" if floats else "floats"
    return f"'{name}' op computes with {kind}, got {given}; did you mean arith.{other}?"


def _name_in_quotes(text: str, span: Span) -> str | None:
    """What to say of a string where the name of a function has to stand."""
    found = re.compile(r"[^\n]*?\"(\w+)\"").match(text, span.start)
    return None if found is None else f"names of functions begin with @, and have no quotes: @{found[1]}"


_HINTS: tuple[tuple[str, Callable[[str, Span], str | None]], ...] = (
    ("(type|attribute) expected", _instead_of_type),
    ("expected a value", _instead_of_value),
    (r"'\[' expected( in a shape)?", _instead_of_shape),
    (r"'\]' expected in a shape", _inside_of_shape),
    ("expected a relax type, got tensor.*", _mlir_tensor),
    (
        r"expected a relax type, got \(.*",
        lambda text, span: "expected the type of the result alone, without those of the operands",
    ),
    (r"expected a dimension: .*", _instead_of_dimension),
    ("operation name expected", _no_name),
    ("Unexpected attribute .*", _scalar_kind),
    (r"(?s)Expected SymbolRefAttr with no nested symbols\..*", _name_in_quotes),
    (
        "'>' expected",
        lambda text, span: f"expected '>' at the end of a type, got '{span.text}'" if _in_type(text, span) else None,
    ),
    ("Expected integer value", lambda text, span: f"expected an integer as the type says, got {span.text}"),
    ("Expected block argument!", _instead_of_name("%", "values")),
    ("expect symbol name", _instead_of_name("@", "functions")),
    ("Expected region!", lambda text, span: _RESULT_TYPE if span.text == ":" else None),
    ("Expected ':' in dense attribute", lambda text, span: f"dense<...> is followed by its type: {_CONSTANT}"),
    (
        "Invalid type given for integer or float attribute.",
        lambda text, span: f"a constant is written {_CONSTANT}" if _IN_CONSTANT.search(text[: span.start]) else None,
    ),
    ("Unexpected character: ;", lambda text, span: "an op ends without ;"),
    (
        "Could not parse entire input!",
        lambda text, span: (
            f"expected an operation, got '{span.text}'" + ("; no brace is open" if span.text == "}" else "")
        ),
    ),
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
