"""Going on behind an error, so that one run reports all errors of a text that do not follow from others."""

from __future__ import annotations

import ast
import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.utils.exceptions import VerifyException

from relax_dialect.frontend.tvmscript.text.errors import DependentError, Source, TVMScriptError
from relax_dialect.frontend.tvmscript.text.scope import Failed, Scope
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.verifiers import Violation

BUILD_ERRORS = (
    VerifyException,
    Mismatch,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    struct.error,
)
"""What builder and op classes raise for a program that is wrong."""


class Findings:
    """The errors of a text so far."""

    def __init__(self) -> None:
        self._errors: list[TVMScriptError] = []

    def __len__(self) -> int:
        return len(self._errors)

    def note(self, error: TVMScriptError) -> None:
        """Keeps an error behind which nothing is missing."""
        self._errors.append(error)

    @contextmanager
    def collected(self, scope: Scope | None = None, node: ast.stmt | None = None) -> Generator[None]:
        """Keeps an error of the block and goes on behind it; names that `node` binds have failed in `scope` then.

        An error behind one that was kept inside of the block follows from that.
        """
        before = len(self._errors)
        try:
            yield
        except TVMScriptError as error:
            if len(self._errors) == before and not isinstance(error, DependentError):
                self._errors.append(error)
            if scope is not None and node is not None:
                for name in _bound(node):
                    scope.bind(name, Failed("it was bound wrongly"))

    def raise_all(self) -> None:
        """Raises the errors, if there are any."""
        if self._errors:
            raise TVMScriptError.of_all(self._errors)


def at_ops(source: Source, node: ast.AST, violations: Sequence[Violation]) -> TVMScriptError:
    """The errors of rules that ops break, at their places in the text; at `node` where an op has none."""
    found: list[TVMScriptError] = []
    for violation in violations:
        place = violation.op.location
        if isinstance(place, FileLineColLoc):
            found.append(source.error_of_file(place.line.data, place.column.data, violation.message))
        else:
            found.append(source.error(node, violation.message))
    return TVMScriptError.of_all(found)


def build_error(source: Source, node: ast.AST, module: ModuleOp, error: Exception) -> TVMScriptError:
    """What building a module has raised, at the op of which the verifier says so; at `node` if it is no such error."""
    message = str(error)
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as again:
            if str(again) == message:
                return at_ops(source, node, [Violation(op, message)])
    return source.error(node, message)


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    found = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return [*found, node.name] if isinstance(node, ast.FunctionDef) else found


def mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether a name of these stands anywhere in `node`, alone or behind a dot."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    found |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return not found.isdisjoint(names)
