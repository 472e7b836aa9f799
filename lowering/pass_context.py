"""Options and instruments of all pipelines that run in a `with PassContext(...)` block, those of `build` included."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol, Self

from xdsl.dialects.builtin import ModuleOp

from tir_dialect.target import Target


class Instrument(Protocol):
    """Is told of every pass that runs."""

    def before_pass(self, name: str, module: ModuleOp) -> None:
        """The pass is about to run."""

    def after_pass(self, name: str, module: ModuleOp) -> None:
        """The pass has run."""


@dataclass(frozen=True)
class PassContext:
    """How pipelines run: `with PassContext(instruments=[PassTiming()]): run_passes(module, "legalize-ops")`."""

    instruments: Sequence[Instrument] = ()
    disabled: Sequence[str] = ()
    """Passes that are left out. `ValueError` when the block begins if there is none of a name."""
    verify: bool = True
    """Whether the module is verified before the first pass and after each."""
    target: Target | str | None = None
    """The machine for passes that depend on one; this machine if it is not said."""

    def __enter__(self) -> Self:
        if self.disabled:
            # Not at the top: a start from the cache needs no passes.
            from lowering.registry import available_passes

            known = available_passes()
            for name in self.disabled:
                if name not in known:
                    close = get_close_matches(name, known, n=1)
                    raise ValueError(f"unknown pass '{name}'" + (f", did you mean '{close[0]}'" if close else ""))
        _STACK.set((*_STACK.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _STACK.set(_STACK.get()[:-1])

    @staticmethod
    def current() -> PassContext:
        """That of the innermost `with` block; without one, that of no options."""
        return (PassContext(), *_STACK.get())[-1]

    @staticmethod
    def entered() -> PassContext | None:
        """That of the innermost `with` block; `None` outside of one."""
        return (None, *_STACK.get())[-1]

    @property
    def machine(self) -> Target | None:
        """The target, read if it is a text."""
        return Target.parse(self.target) if isinstance(self.target, str) else self.target

    def before(self, name: str, module: ModuleOp) -> None:
        """Tells the instruments that a pass is about to run."""
        for instrument in self.instruments:
            instrument.before_pass(name, module)

    def after(self, name: str, module: ModuleOp) -> None:
        """Tells the instruments that a pass has run."""
        for instrument in self.instruments:
            instrument.after_pass(name, module)


_STACK: ContextVar[tuple[PassContext, ...]] = ContextVar("pass contexts", default=())
