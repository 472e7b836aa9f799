"""Exceptions of the parser, passes and verifiers as error messages without Python tracebacks."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from types import CodeType

from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.lexer import Span

from lowering.compiler.debug import Debug, debug_level
from lowering.diagnostics import Finding, InvalidModule, render
from lowering.llvm.errors import CodegenError
from lowering.parsing import Misbound
from tir_dialect.garbage import few_collections

INTERRUPTED = 130
"""The status of what Ctrl-C ended, as shells have it."""

_EMIT_ERROR: CodeType = Operation.emit_error.__code__


class ToolError(DiagnosticException):
    """An error whose message is shown to the user as it is."""


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
            _end_by_signal()
        return INTERRUPTED
    except (Exception, ArgSpecParseError) as error:
        print(_describe(name, error), file=sys.stderr)
        return 1
    return 0


def _end_by_signal() -> None:
    """As Ctrl-C ends a program that does not look at it."""
    with suppress(OSError):  # the reader of the pipe may be gone
        sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _show_warnings(tool: str) -> None:
    """Prints each warning as a line, without the location in the compiler's sources."""

    def show(message: Warning | str, *place: object) -> None:
        print(f"{tool}: warning: {message}", file=sys.stderr)

    warnings.showwarning = show


def _describe(tool: str, error: BaseException) -> str:
    match error:
        case InvalidModule():
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
            message = f"{tool}: internal error: {type(error).__name__}: {error}"
            return with_traceback(message, error, "set RELAX_DEBUG=1 for the Python traceback")


def quote_span(span: Span[str] | Span[bytes]) -> str:
    """The source line of a span with carets under it."""
    _, _, rest = span.print_with_context().partition("\n")
    return rest.rstrip("\n")


def pass_failure(error: Exception, pass_name: str) -> ToolError:
    """The error message for an exception raised by the pass `pass_name`."""
    if isinstance(error, InvalidModule):
        return ToolError(f"pass '{pass_name}' failed\n{error}")
    message = str(error).strip()
    op = _op_of_emit_error(error)
    if isinstance(error, DiagnosticException):
        report = render((Finding.at(op, message),)) if op is not None else message
        return ToolError(f"pass '{pass_name}' failed\n{report}")
    report = f"internal error in pass '{pass_name}': {type(error).__name__}: {message}"
    if op is not None:
        report = f"{report}\n{render((Finding.at(op, 'was being rewritten'),))}"
    hint = "set RELAX_DEBUG=1 for the Python traceback, --reproducer FILE for a file that shows the failure"
    return ToolError(with_traceback(report, error, hint))


def with_traceback(message: str, error: BaseException, hint: str | None = None) -> str:
    """`message` with the Python traceback under it if `RELAX_DEBUG` is set, else with the hint."""
    if debug_level() >= Debug.STAGES:
        return f"{message}\n{''.join(traceback.format_exception(error)).rstrip()}"
    return message if hint is None else f"{message}\nhint: {hint}"


def unknown_pass(name: str, available: list[str]) -> ToolError:
    """The error message for an unknown pass, with suggestions."""
    from difflib import get_close_matches

    close = get_close_matches(name, available, n=3)
    advice = f"did you mean {' or '.join(repr(match) for match in close)}" if close else "--help lists the passes"
    return ToolError(f"unknown pass '{name}'\nhint: {advice}")


def bad_options(error: ValueError, pass_class: type[ModulePass]) -> ToolError:
    """The error message for wrong options of a pass."""
    # With postponed evaluation of annotations, which all our files have, a field's type is its text.
    options = [f"{field.name.replace('_', '-')}: {field.type!s}" for field in fields(pass_class)]
    has = f"its options are {', '.join(options)}" if options else "it has no options"
    return ToolError(f"pass '{pass_class.name}': {error}\nhint: {has}")


def _op_of_emit_error(error: BaseException) -> Operation | None:
    """The op that raised `error` through `emit_error`; xDSL keeps it nowhere but in the innermost such frame."""
    found: Operation | None = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is _EMIT_ERROR and isinstance(op := frame.f_locals.get("self"), Operation):
            found = op
    return found
