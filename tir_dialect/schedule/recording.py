"""What the trace says about the running primitive where that is not what it was called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any


class Recording:
    """Arguments that stand for others in the trace, and additional ones, such as sampled decisions."""

    def __init__(self):
        self._meant: dict[int, object] = {}
        self._decided: dict[str, object] = {}

    def record_as(self, given: object, meant: object) -> None:
        """Records an argument as `meant`; it is recognised by its identity."""
        self._meant[id(given)] = meant

    def record_with(self, decided: Mapping[str, object]) -> None:
        """Records additional arguments, or other values of arguments, by name."""
        self._decided = dict(decided)

    def arguments(
        self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call as they are recorded, by position and by name.

        `names` are those of the first `args`: further ones have none.
        """
        pairs = zip_longest(args, names[: len(args)])
        given = [self._recorded(arg) for arg, name in pairs if name not in self._decided]
        named = {key: self._recorded(arg) for key, arg in kwargs.items()}
        return given, {**named, **self._decided}

    def _recorded(self, argument: Any) -> Any:
        return self._meant.get(id(argument), argument)
