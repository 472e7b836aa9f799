"""The machine that a pass works for, as its option `target` describes it."""

from __future__ import annotations

from xdsl.utils.exceptions import PassFailedException

from tir_dialect.target import Target


def pass_target(description: str) -> Target:
    """The target in the syntax of `Target.parse`, this machine if it is empty; PassFailedException for another."""
    try:
        return Target.parse(description) if description else Target.host()
    except ValueError as error:
        raise PassFailedException(str(error)) from error
