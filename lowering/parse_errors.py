"""What is said about a text that cannot be parsed, where xDSL's parser says little: names, braces, comments, types."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

_TYPES = {
    "half": "f16",
    "bfloat16": "bf16",
    "float": "f32",
    "double": "f64",
    "bool": "i1",
    "boolean": "i1",
    "int": "i64",
    "long": "i64",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}
"""Element types as NumPy and others call them, and as texts do."""

_USED_EARLY = re.compile(r"value %(?P<name>\S+) is used before its definition")
_TOKEN = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|[{}]')
_FUNCTION = re.compile(r"^[ \t]*(?P<op>(?:relax|vm|llvm|func)\.func|tir\.prim_func)\b", re.MULTILINE)
_SUFFIXES = (".mlir", ".onnx", ".pt2", ".py", ".rvm")


def explained(error: ParseError, text: str, names: Iterable[str], offset: int = 0) -> ParseError:
    """The error in words that say what to do, at the place where to do it.

    `names` are those of visible values; `offset` lines of the file are before the text.
    """
    span, message = error.span, error.msg.strip()
    used = _USED_EARLY.fullmatch(message)
    if "\n" not in text.strip() and text.strip().endswith(_SUFFIXES):
        return ParseError(span, "expected the text of a module, got a path: xdsl_relax.load reads the file")
    if used is not None:
        return ParseError(span, _undefined(used["name"], span.start, text, names, offset))
    if text[span.start : span.start + 1] == "#" and "{first_char}" in message:
        return ParseError(span, "comments begin with //, not with #")
    if message in ("type expected", "attribute expected") and (known := _TYPES.get(span.text)) is not None:
        return ParseError(span, f"unknown type '{span.text}'; did you mean {known}?")
    if message == "in block definition" or "is already defined" in message:
        return _unclosed(error, text, offset) or error
    return error


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
