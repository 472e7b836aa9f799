"""The names that are visible at a place, innermost first."""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from relax_dialect.frontend.tvmscript.text.errors import Source
from tir_dialect.dims import Dim, is_symbol_name, symbol


@dataclass(frozen=True)
class FunctionRef:
    """A function of the module."""

    name: str


@dataclass(frozen=True)
class ModuleRef:
    """The module itself, as `cls`."""


@dataclass(frozen=True)
class Unbound:
    """A name that is bound in only one branch, which nothing may use."""

    reason: str


@dataclass(frozen=True)
class Failed(Unbound):
    """A name whose binding is wrong: what uses it has no error of its own."""


@dataclass(frozen=True, eq=False)
class Deferred:
    """A name for an expression, a tree or text, which is read where the name is used."""

    expression: ast.expr | str


class Scope:
    """A stack of frames, each from names to what they stand for."""

    def __init__(self, outermost: Mapping[str, object] | None = None, source: Source | None = None):
        self._frames: list[dict[str, object]] = [dict(outermost or {})]
        self.source = source
        """Where the text is that uses the names; `None` for the text that is being read."""

    def find(self, name: str) -> object | None:
        """What a name stands for; `None` if nothing."""
        for frame in reversed(self._frames):
            if name in frame:
                return frame[name]
        return None

    def __contains__(self, name: str) -> bool:
        return any(name in frame for frame in self._frames)

    def bind(self, name: str, value: object) -> None:
        """Gives a name a meaning in the innermost frame."""
        self._frames[-1][name] = value

    def hide(self, name: str) -> None:
        """Takes a name back, in every frame."""
        for frame in self._frames:
            frame.pop(name, None)

    def names(self) -> Iterator[str]:
        """All visible names."""
        return (name for frame in self._frames for name in frame)

    def shared(self) -> Scope:
        """A scope of the same frames, whose names it sees whenever they are bound; its inner frames are its own."""
        scope = Scope(source=self.source)
        scope._frames = list(self._frames)
        return scope

    @contextmanager
    def inner(self) -> Generator[dict[str, object]]:
        """A frame that ends with the block; gives what was bound in it."""
        frame: dict[str, object] = {}
        self._frames.append(frame)
        try:
            yield frame
        finally:
            self._frames.pop()


_RESERVED = frozenset({"floordiv", "mod", "ceildiv", "min", "max", "broadcast"})


def symbol_of(name: str) -> Dim:
    """The symbol for a variable of a text; names that symbols cannot have get an underscore."""
    if name in _RESERVED:
        name += "_"
    if not is_symbol_name(name):
        raise ValueError(f"the name {name} cannot name a dimension; use letters, digits and underscores")
    return symbol(name)
