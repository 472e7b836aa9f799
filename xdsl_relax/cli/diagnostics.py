"""Errors on the command line: exceptions of the parser, passes and verifiers as messages without tracebacks, and
`expected-error {{..}}` in a text, as `mlir-opt --verify-diagnostics` has it.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.lexer import Span

from lowering.diagnostics import Finding, InvalidModule
from lowering.llvm.binding import CodegenError
from lowering.locations import source_position
from lowering.parsing import Misbound
from tir_dialect.garbage import few_collections
from xdsl_relax.errors import RelaxError, internal_error, op_of_emit_error, with_traceback

INTERRUPTED = 130
"""The status of what Ctrl-C ended, as shells have it."""


class ToolError(RelaxError):
    """What is wrong with the command line, or with a file that it names."""


class Report(Exception):
    """What is wrong, in lines that say of themselves where."""


class Failures(Exception):
    """Several independent errors of one run."""

    def __init__(self, errors: Sequence[Exception]):
        super().__init__(*errors)
        self.errors = tuple(errors)


def run_tool(name: str, action: Callable[[], object], *, own_process: bool) -> int:
    """Runs a command line tool: 0, or 1 after saying on stderr what went wrong; `INTERRUPTED` after Ctrl-C.

    A process of its own is then ended by the signal, as by default: a shell sees the same status, and knows that the
    loop or script around the command is to end too. What the exception says is said instead of `interrupted`.

    What is no fault of the input is said to be internal; its traceback is shown if `RELAX_DEBUG` is set. Of a process
    of its own the system takes back the memory: at the end the interpreter looks for no garbage, which would be a
    fifth of the time.
    """
    if own_process:
        atexit.register(gc.freeze)
    try:
        with few_collections(), warnings.catch_warnings():
            if own_process:
                _show_warnings(name)
            action()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; nothing is left to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as error:
        print(f"{name}: {error if error.args else 'interrupted'}", file=sys.stderr)
        if own_process:
            # As Ctrl-C ends a program that does not look at it.
            with suppress(OSError):  # the reader of the pipe may be gone
                sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return INTERRUPTED
    except (Exception, ArgSpecParseError) as error:
        print(_describe(name, error), file=sys.stderr)
        return 1
    return 0


def _show_warnings(tool: str) -> None:
    """Prints each warning as a line, without the location in the compiler's sources."""

    def show(message: Warning | str, *location: object) -> None:
        print(f"{tool}: warning: {message}", file=sys.stderr)

    warnings.showwarning = show


def _describe(tool: str, error: BaseException) -> str:
    match error:
        case InvalidModule() | Report():
            return str(error)
        case Misbound() | Failures():
            return "\n".join(_describe(tool, each) for each in error.errors)
        case ParseError():
            return f"{error.span.get_location()}: error: {error.msg}\n{quote_span(error.span)}"
        case RecursionError():
            return f"{tool}: error: the input is nested too deeply"
        case OSError(strerror=str(reason), filename=str(path)):
            return f"{tool}: error: {path}: {reason[:1].lower()}{reason[1:]}"
        case DiagnosticException() | CodegenError() | ArgSpecParseError() | ValueError() | OSError():
            notes: tuple[str, ...] = tuple(getattr(error, "__notes__", ()))
            return "\n".join((f"{tool}: error: {error}", *notes))
        case _:
            message = f"{tool}: internal error: {internal_error(error)}"
            return with_traceback(message, error, "set RELAX_DEBUG=1 for the Python traceback")


def quote_span(span: Span[str] | Span[bytes]) -> str:
    """The source line of a span with carets under it."""
    _, _, rest = span.print_with_context().partition("\n")
    return rest.rstrip("\n")


_EXPECTED = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)(?P<re>-re)?[ \t]*"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))?[ \t]*\{\{(?P<text>.*)\}\}"
)
_DIRECTIVE = re.compile(r"//[ \t]*(expected-(?:(?:error|warning|remark|note)\b|\S+[ \t]*(?:@|\{\{)).*)")
"""A comment that was meant as one, but may have a fault in it."""

_PIECE = re.compile(r"\{\{(.*?)\}\}")


@dataclass
class Expectation:
    """A line of a text that has to cause an error, or an error with a note."""

    at: int
    """The line that says so, from 1."""
    line: int | None
    """The line of the error; `None` if it has none."""
    text: str
    is_pattern: bool
    kind: str = "error"
    """`error`, or `note` for the way out that an error names."""
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
    note: str | None = None
    """The way out."""


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
        """Adds what is wrong to `failures`: an error that was not expected, or one that was and did not come. A note
        need not be expected.
        """
        for each in found:
            here = [one for one in self.expected if not one.is_met and one.line == each.line]
            match = next((one for one in here if one.kind == "error" and one.matches(each.message)), None)
            note = each.note
            if note is not None and (own := next((n for n in here if n.kind == "note" and n.matches(note)), None)):
                own.is_met = True
            if match is None:
                source = self.name if each.line is None else f"{self.name}:{each.line}"
                self.failures.append(f"{source}: error: unexpected error: {each.message}")
            else:
                match.is_met = True
        for one in self.expected:
            if not one.is_met:
                self.failures.append(f'{self.name}:{one.at}: error: expected {one.kind} "{one.text}" was not produced')


def has_expectations(text: str) -> bool:
    """Whether a text says which errors it causes, even if not as it has to."""
    return _EXPECTED.search(text) is not None or _DIRECTIVE.search(text) is not None


def _read(text: str, name: str, offset: int) -> Iterator[Expectation]:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for comment in _DIRECTIVE.finditer(text):
        if _EXPECTED.match(comment[1]) is None:
            at = bisect_right(starts, comment.start()) + offset
            form = "expected-error@+1 {{what it says}}"
            raise ToolError(f"{name}:{at}: no expectation can be read: {comment[1].strip()}\nhint: one is {form}")
    for match in _EXPECTED.finditer(text):
        at = bisect_right(starts, match.start()) + offset
        if match["kind"] not in ("error", "note"):
            raise ToolError(f"{name}:{at}: expected-{match['kind']}: the tools say errors and notes, so expect these")
        where = match["where"]
        shift = {"above": -1, "below": 1, None: 0}.get(where, 0)
        if where is not None and where[0] in "+-":
            shift = int(where)
        line = None if where == "unknown" else at + shift
        yield Expectation(at, line, match["text"], match["re"] is not None, match["kind"])


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
    return Diagnostic(position.line or None, finding.message, finding.hint)
