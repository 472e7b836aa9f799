"""Errors of the library, and of passes in particular, whose messages are for the user as they are."""

from __future__ import annotations

import traceback
from dataclasses import fields
from pathlib import Path
from types import CodeType

from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from lowering.debug import Debug, debug_level
from lowering.diagnostics import Finding, InvalidModule, render
from tir_dialect.extensions import is_extension

_EMIT_ERROR: CodeType = Operation.emit_error.__code__


class RelaxError(DiagnosticException):
    """An error whose message is shown to the user as it is."""


class PassError(RelaxError):
    """A pass that fails, that there is not, or whose options are wrong."""


def pass_failure(error: Exception, pass_name: str) -> PassError:
    """The error for an exception raised by the pass `pass_name`."""
    if isinstance(error, InvalidModule):
        return PassError(f"pass '{pass_name}' failed\n{error}")
    message = str(error).strip()
    op = op_of_emit_error(error)
    if isinstance(error, DiagnosticException):
        report = render((Finding.at(op, message),)) if op is not None else message
        return PassError(f"pass '{pass_name}' failed\n{report}")
    report = f"internal error in pass '{pass_name}': {internal_error(error)}"
    if op is not None:
        report = f"{report}\n{render((Finding.at(op, 'was being rewritten'),))}"
    hint = "set RELAX_DEBUG=1 for the Python traceback, --reproducer FILE for a file that shows the failure"
    return PassError(with_traceback(report, error, hint))


def internal_error(error: BaseException) -> str:
    """What an internal error is, and where: in an extension if one has a part in it, else where it was raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    theirs = [each for each in frames if is_extension(str(each[0].f_globals.get("__name__", "")))]
    frame, line = (theirs or frames)[-1]
    code = frame.f_code
    return f"{type(error).__name__}: {str(error).strip()} (at {Path(code.co_filename).name}:{line} in {code.co_name})"


def with_traceback(message: str, error: BaseException, hint: str | None = None) -> str:
    """`message` with the Python traceback under it if `RELAX_DEBUG` is set, else with the hint."""
    if debug_level() >= Debug.STAGES:
        return f"{message}\n{''.join(traceback.format_exception(error)).rstrip()}"
    return message if hint is None else f"{message}\nhint: {hint}"


def unknown_pass(name: str, available: list[str]) -> PassError:
    """The error for an unknown pass, with suggestions."""
    from difflib import get_close_matches

    from lowering.tvm_passes import advice as advice_for

    if (theirs := advice_for(name)) is not None:
        return PassError(f"unknown pass '{name}'\nhint: {theirs}")
    close = get_close_matches(name, available, n=3)
    meant = f"did you mean {' or '.join(map(repr, close))}?"
    advice = meant if close else "relax-opt --list-passes lists them"
    return PassError(f"unknown pass '{name}'\nhint: {advice}")


def bad_options(error: ValueError, pass_class: type[ModulePass]) -> PassError:
    """The error for wrong options of a pass."""
    # With postponed evaluation of annotations, which all our files have, a field's type is its text.
    options = [f"{field.name.replace('_', '-')}: {field.type!s}" for field in fields(pass_class)]
    has = f"its options are {', '.join(options)}" if options else "it has no options"
    return PassError(f"pass '{pass_class.name}': {error}\nhint: {has}")


def op_of_emit_error(error: BaseException) -> Operation | None:
    """The op that raised `error` through `emit_error`; xDSL keeps it nowhere but in the innermost such frame."""
    found: Operation | None = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is _EMIT_ERROR and isinstance(op := frame.f_locals.get("self"), Operation):
            found = op
    return found
