"""Ops that are executed for their effect."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.interpreter.control_flow import truth
from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.runtime_values import Value, text_of
from relax_dialect.ops.effects import AssertOp, PrintOp


@runs(AssertOp)
def assert_(frame: Frame, op: AssertOp) -> None:
    """`ValueError` with the message, after the name of the function, unless the condition holds."""
    if not truth(frame.get(op.condition)):
        raise ValueError(f"{frame.function}: {fill(op.format.data, frame.get_all(op.values))}")


@runs(PrintOp)
def print_(frame: Frame, op: PrintOp) -> None:
    """A line on the standard output."""
    print(fill(op.format.data, frame.get_all(op.values)))


def fill(format: str, values: Sequence[Value]) -> str:
    """`format` with each `{}` replaced by the text of a value."""
    first, *rest = format.split("{}")
    return first + "".join(text_of(value) + part for value, part in zip(values, rest, strict=True))
