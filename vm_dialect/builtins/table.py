"""The table of the run-time library: functions that bytecode calls as `vm.builtin.<name>`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Builtin:
    """One function of the run-time library."""

    name: str
    """Without the prefix `vm.builtin.`."""
    function: Callable[..., Any]
    minimum: int
    """Least number of arguments."""
    maximum: int | None
    """Greatest number of arguments; `None` if there is no limit."""

    def check_count(self, count: int) -> None:
        """`ValueError` if the function cannot be called with `count` arguments."""
        if count < self.minimum or (self.maximum is not None and count > self.maximum):
            wanted = f"at least {self.minimum}" if self.maximum != self.minimum else f"{self.minimum}"
            raise ValueError(f"call of vm.builtin.{self.name} expected {wanted} arguments, got {count}")


BUILTINS: dict[str, Builtin] = {}
"""Every builtin by name; `vm_dialect.builtins` fills it."""


def builtin(name: str, minimum: int, maximum: int | None = -1) -> Callable[[Function], Function]:
    """Enters the decorated function into the table.

    It takes exactly `minimum` arguments, or up to `maximum`, or any number from `minimum` on if `maximum` is `None`.
    """

    def enter(function: Function) -> Function:
        BUILTINS[name] = Builtin(name, function, minimum, minimum if maximum == -1 else maximum)
        return function

    return enter
