"""Methods of dataclasses that are compiled when they are called for the first time.

`dataclasses` writes the methods of a class as text and compiles each of them, which is a tenth of the time of a small
build: xDSL and the compiler have some 450 such classes, and few of them are ever compared, printed or assigned to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

Method: TypeAlias = "Callable[..., Any]"

_WAITING = frozenset(
    ("__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__setattr__", "__delattr__")
)
"""What can wait. `__init__` cannot, since people ask for its signature."""

_MAKER = "_create_fn"
"""What compiles a method in the standard library up to Python 3.12. Later ones compile all methods of a class at once,
and are left as they are."""


@contextmanager
def methods_on_demand() -> Generator[None]:
    """Dataclasses that are defined meanwhile get their methods when they need them; these do what they always do."""
    make: Method | None = getattr(dataclasses, _MAKER, None)
    if make is None or make.__module__ == __name__:
        yield
        return
    setattr(dataclasses, _MAKER, _later(make))
    try:
        yield
    finally:
        setattr(dataclasses, _MAKER, make)


def _later(make: Method) -> Method:
    """`make`, but what can wait is made by its first call."""

    def make_later(name: str, *text: Any, **scope: Any) -> Method:
        if name not in _WAITING:
            return make(name, *text, **scope)
        made: list[Method] = []

        def method(self: object, *arguments: Any) -> Any:
            if not made:
                made.append(make(name, *text, **scope))
                _replace(type(self), name, method, made[0])
            return made[0](self, *arguments)

        method.__name__ = name
        return method

    return make_later


def _replace(kind: type, name: str, method: Method, made: Method) -> None:
    """Gives the class that has a method another in its place; one that is wrapped stays, and calls the other."""
    made.__qualname__ = method.__qualname__
    for owner in kind.__mro__:
        if owner.__dict__.get(name) is method:
            setattr(owner, name, made)
