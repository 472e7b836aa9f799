"""`expected-error {{..}}` in a text: the errors that it has to cause, as `mlir-opt --verify-diagnostics` reads them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.utils.exceptions import ParseError

from lowering.diagnostics import Finding, InvalidModule
from lowering.locations import source_position
from lowering.parsing import Misbound
from xdsl_relax.cli.failures import ToolError
from xdsl_relax.errors import op_of_emit_error

_EXPECTED = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)(?P<re>-re)?[ \t]*"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))?[ \t]*\{\{(?P<text>.*)\}\}"
)
_PIECE = re.compile(r"\{\{(.*?)\}\}")


@dataclass
class Expectation:
    """A line of a text that has to cause an error."""

    at: int
    """The line that says so, from 1."""
    line: int | None
    """The line of the error; `None` if it has none."""
    text: str
    is_pattern: bool
    is_met: bool = False

    def matches(self, message: str) -> bool:
        """Whether a message has the text, in which `{{..}}` of a pattern are regular expressions."""
        if not self.is_pattern:
            return self.text in message
        pieces = _PIECE.split(self.text)
        pattern = "".join(re.escape(piece) if not index % 2 else f"(?:{piece})" for index, piece in enumerate(pieces))
        return re.search(pattern, message) is not None


@dataclass(frozen=True)
class Diagnostic:
    """An error at a line of the input, or at none."""

    line: int | None
    message: str


@dataclass
class Expectations:
    """What a text expects, and what of it has not been found."""

    name: str
    """The file, for messages."""
    expected: list[Expectation]
    failures: list[str] = field(default_factory=list[str])

    @staticmethod
    def of(text: str, name: str, offset: int = 0) -> Expectations:
        """Those in a text that begins after `offset` lines of its file; `ToolError` for what the tools do not have."""
        return Expectations(name, list(_read(text, name, offset)))

    def check(self, found: Sequence[Diagnostic]) -> None:
        """Adds what is wrong to `failures`: an error that was not expected, or one that was and did not come."""
        for each in found:
            here = [one for one in self.expected if not one.is_met and one.line == each.line]
            match = next((one for one in here if one.matches(each.message)), None)
            if match is None:
                source = self.name if each.line is None else f"{self.name}:{each.line}"
                self.failures.append(f"{source}: error: unexpected error: {each.message}")
            else:
                match.is_met = True
        for one in self.expected:
            if not one.is_met:
                self.failures.append(f'{self.name}:{one.at}: error: expected error "{one.text}" was not produced')


def has_expectations(text: str) -> bool:
    """Whether a text says which errors it causes."""
    return _EXPECTED.search(text) is not None


def _read(text: str, name: str, offset: int) -> Iterator[Expectation]:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for match in _EXPECTED.finditer(text):
        at = bisect_right(starts, match.start()) + offset
        if match["kind"] != "error":
            raise ToolError(f"{name}:{at}: expected-{match['kind']}: the tools say errors only, so expect an error")
        where = match["where"]
        shift = {"above": -1, "below": 1, None: 0}.get(where, 0)
        if where is not None and where[0] in "+-":
            shift = int(where)
        line = None if where == "unknown" else at + shift
        yield Expectation(at, line, match["text"], match["re"] is not None)


def diagnostics_of(error: BaseException, offset: int) -> list[Diagnostic]:
    """The errors that an exception stands for, with lines of the file.

    Of what comes of the parser, `offset` is added: it counts from the beginning of its chunk.
    """
    match error:
        case Misbound():
            return [each for one in error.errors for each in diagnostics_of(one, offset)]
        case ParseError():
            content = error.span.input.content
            text = content if isinstance(content, str) else content.decode(errors="replace")
            line = text.count("\n", 0, error.span.start) + 1
            return [Diagnostic(line + offset, error.msg)]
        case InvalidModule():
            return [_of_finding(finding) for finding in error.findings]
        case _:
            op = op_of_emit_error(error)
            cause = error.__cause__
            if op is not None:
                return [_of_finding(Finding.at(op, str(error).strip()))]
            if cause is not None:
                return diagnostics_of(cause, offset)
            return [Diagnostic(None, str(error).strip())]


def _of_finding(finding: Finding) -> Diagnostic:
    position = source_position(finding.op.location)
    return Diagnostic(position.line or None, finding.message)
