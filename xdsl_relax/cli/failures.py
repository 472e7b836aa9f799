"""Exceptions of the parser, passes and verifiers as error messages without Python tracebacks."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.lexer import Span

from lowering.diagnostics import InvalidModule
from lowering.llvm.binding import CodegenError
from lowering.parsing import Misbound
from tir_dialect.garbage import few_collections
from xdsl_relax.errors import RelaxError, with_traceback

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
            message = f"{tool}: internal error: {type(error).__name__}: {error}"
            return with_traceback(message, error, "set RELAX_DEBUG=1 for the Python traceback")


def quote_span(span: Span[str] | Span[bytes]) -> str:
    """The source line of a span with carets under it."""
    _, _, rest = span.print_with_context().partition("\n")
    return rest.rstrip("\n")
