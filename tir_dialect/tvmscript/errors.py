"""What cannot be written as TVMScript."""

from __future__ import annotations

from xdsl.ir import Operation


class ScriptError(ValueError):
    """An op that TVMScript has no text for; the message says which, and why."""


def refuse(op: Operation, reason: str) -> ScriptError:
    """The error for an op."""
    return ScriptError(f"'{op.name}' cannot be written as TVMScript: {reason}")
