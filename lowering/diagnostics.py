"""Errors of a module: each at its op with position, reason and way out, all of them in one report.

A pass refuses one op by `fail(op, message, hint)`, or collects `Finding`s and hands them to `refuse`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import NoReturn

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.printer import Printer
from xdsl.utils.exceptions import PassFailedException

from lowering.locations import source_position

CONTEXT_LINES = 2
"""Lines shown before and after the op's first line."""
MAX_WIDTH = 140
"""Longer lines are cut."""


def excerpts(ops: Sequence[Operation]) -> list[list[str]]:
    """The lines around each op, its own marked with `>`; every function involved is printed once."""
    printed: dict[Operation, _PrintedOp] = {}
    result: list[list[str]] = []
    for op in ops:
        root = _outermost(op)
        if root not in printed:
            printed[root] = _print(root)
        result.append(printed[root].around(op))
    return result


class _PrintedOp(Printer):
    """A printer that remembers on which line each op starts."""

    def __init__(self, *, generic: bool) -> None:
        self.text = StringIO()
        self.line_of: dict[Operation, int] = {}
        super().__init__(stream=self.text, print_generic_format=generic)

    def print_op(self, op: Operation) -> None:
        self.line_of[op] = self._current_line
        super().print_op(op)

    def around(self, op: Operation) -> list[str]:
        """The marked lines around `op`; its enclosing op's if it has no line of its own in the pretty form."""
        shown: Operation | None = op
        while shown is not None and shown not in self.line_of:
            shown = shown.parent_op()
        centre = self.line_of[shown] if shown is not None else 0
        lines = self.text.getvalue().splitlines()
        first, last = max(0, centre - CONTEXT_LINES), min(len(lines), centre + CONTEXT_LINES + 1)
        return [f"  {'>' if at == centre else ' '} {_cut(lines[at])}" for at in range(first, last)]


def _print(root: Operation) -> _PrintedOp:
    """`root` in the pretty form, or in the generic one if it is too broken for its printer."""
    pretty = _PrintedOp(generic=False)
    try:
        pretty.print_op(root)
    except Exception:  # a printer may rely on what the verifier has just refuted, in any way
        generic = _PrintedOp(generic=True)
        generic.print_op(root)
        return generic
    return pretty


def _outermost(op: Operation) -> Operation:
    """The ancestor of `op` directly inside the module, or `op` itself."""
    while (parent := op.parent_op()) is not None and parent.parent_op() is not None:
        op = parent
    return op


def _cut(line: str) -> str:
    return line if len(line) <= MAX_WIDTH else f"{line[: MAX_WIDTH - 3]}..."


MAX_SHOWN = 20
"""A report shows so many findings and counts the rest."""


@dataclass(frozen=True)
class Finding:
    """One error: the op it is at, what is wrong, and if known how to get out of it."""

    op: Operation
    message: str
    """Starts with the op's name in quotes; lower-case; what was expected and what was found."""
    hint: str | None = None
    """The way out, as an imperative."""

    @staticmethod
    def at(op: Operation, message: str, hint: str | None = None) -> Finding:
        """A finding whose message starts with the op's name, put in front if it is not there."""
        quoted = f"'{op.name}'"
        return Finding(op, message if message.startswith(quoted) else f"{quoted} op {message}", hint)

    def headline(self) -> str:
        """`file:line:column: error: message (in @function)`; the position is left out if unknown."""
        where = str(source_position(self.op.location))
        function = _symbol_around(self.op)
        return f"{where + ': ' if where else ''}error: {self.message}{f' (in @{function})' if function else ''}"


class InvalidModule(PassFailedException):
    """A module that breaks rules; its text is the report, `findings` the facts."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(render(self.findings))


def fail(op: Operation, message: str, hint: str | None = None) -> NoReturn:
    """Raises `InvalidModule` for one op."""
    raise InvalidModule((Finding.at(op, message, hint),))


def refuse(findings: Iterable[Finding]) -> None:
    """Raises `InvalidModule` if there is a finding."""
    if found := tuple(findings):
        raise InvalidModule(found)


def render(findings: Sequence[Finding]) -> str:
    """The findings as text, each with a few lines of the IR around its op; the op's line is marked with `>`."""
    shown = findings[:MAX_SHOWN]
    parts = [
        "\n".join((finding.headline(), *context, *((f"  hint: {finding.hint}",) if finding.hint else ())))
        for finding, context in zip(shown, excerpts([finding.op for finding in shown]), strict=True)
    ]
    if rest := len(findings) - len(shown):
        parts.append(f"and {rest} more error{'s' if rest > 1 else ''}")
    return "\n".join(parts)


def _symbol_around(op: Operation) -> str | None:
    """The symbol of the function that holds `op`, or that `op` is."""
    current: Operation | None = op
    while current is not None:
        if isinstance(name := current.get_attr_or_prop("sym_name"), StringAttr):
            return name.data
        current = current.parent_op()
    return None
