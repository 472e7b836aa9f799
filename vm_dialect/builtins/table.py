"""The table of the run-time library: functions that bytecode calls as `vm.builtin.<name>`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from vm_dialect import messages
from vm_dialect.kinds import Signature, mask_of
from vm_dialect.messages import render
from vm_dialect.tensors import kind_of

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
    signature: Signature
    """Kinds of its arguments and of its result."""

    def check_count(self, count: int) -> None:
        """`ValueError` if the function cannot be called with `count` arguments."""
        if count < self.minimum or (self.maximum is not None and count > self.maximum):
            wanted = f"at least {self.minimum}" if self.maximum != self.minimum else f"{self.minimum}"
            raise ValueError(f"call of vm.builtin.{self.name} expected {wanted} arguments, got {count}")

    def checked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, which stands for the builtin, for arguments of which nothing is known: `TypeError` for one of a
        wrong kind.
        """
        accepted = self.signature.accepted

        def call(*arguments: Any) -> Any:
            for index, value in enumerate(arguments):
                if not mask_of(value) & accepted(index).mask:
                    raise TypeError(render(self.wrong_kind(index), name=kind_of(value)))
            return function(*arguments)

        return call

    def wrong_kind(self, index: int) -> str:
        """The template of the error for argument `index`."""
        return messages.wrong_kind(f"{self.name}: argument #{index}", self.signature.accepted(index).name)


BUILTINS: dict[str, Builtin] = {}
"""Every builtin by name; `vm_dialect.builtins` fills it."""


def builtin(
    name: str, minimum: int, maximum: int | None = -1, kinds: str | None = None
) -> Callable[[Function], Function]:
    """Enters the decorated function into the table.

    It takes exactly `minimum` arguments, or up to `maximum`, or any number from `minimum` on if `maximum` is `None`.
    The annotations say of which kinds; `kinds` does for a function that has none.
    """

    def enter(function: Function) -> Function:
        most = minimum if maximum == -1 else maximum
        BUILTINS[name] = Builtin(name, function, minimum, most, Signature.of(function, kinds))
        return function

    return enter
