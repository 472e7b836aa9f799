"""Methods of dataclasses that are compiled when they are asked for.

`dataclasses` writes the methods of a class as text and compiles each of them, which is a tenth of the time of a small
build: xDSL and the compiler have some 450 such classes, and few of them are ever compared, printed or assigned to, and
half of them never made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

Method: TypeAlias = "Callable[..., Any]"

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
    """`make`, but with a stand-in for the method."""

    def make_later(name: str, *text: Any, **scope: Any) -> _Later:
        return _Later(name, lambda: make(name, *text, **scope))

    return make_later


class _Later:
    """Stands in a class for a method until somebody looks it up, for a call or by its name."""

    def __init__(self, name: str, make: Callable[[], Method]):
        self.__name__ = name
        self._make = cache(make)

    def __get__(self, instance: object, owner: type) -> Method:
        method = self._make()
        for each in owner.__mro__:
            if each.__dict__.get(self.__name__) is self:
                method.__qualname__ = f"{each.__qualname__}.{self.__name__}"
                setattr(each, self.__name__, method)
        return method if instance is None else method.__get__(instance, owner)

    def __call__(self, instance: object) -> Any:
        """What `dataclasses` does with a `__repr__`, which it wraps."""
        return self._make()(instance)
