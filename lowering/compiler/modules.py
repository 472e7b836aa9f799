"""What is given as a module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation


def require_module(what: str, given: object) -> None:
    """`TypeError` if `what` was given something else than a module."""
    if not isinstance(given, ModuleOp):
        hint = "; put it into one: ModuleOp([function])" if isinstance(given, Operation) else ""
        raise TypeError(f"{what} expected a module (builtin.module), got {type(given).__name__}{hint}")
