"""Watching a run: what is told before and after every call."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Protocol

from vm_dialect.program import Site


class Decision(Enum):
    """What an instrument answers before a call."""

    RUN = auto()
    SKIP = auto()
    """The call does not happen; its result is null."""


class Instrument(Protocol):
    """Sees every call of a run, of builtins, kernels, packed functions and bytecode alike.

    While an instrument watches, tail calls take a frame like any other call. An exception of an instrument ends the
    run.
    """

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        """Called with the arguments before a call."""
        ...

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        """Called with arguments and result when a call that was not skipped has returned."""
        ...
