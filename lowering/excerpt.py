"""A few lines of IR around an op, for error reports."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from xdsl.ir import Operation
from xdsl.printer import Printer

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
