"""What names of `I`, `R` and `T` are while Python defines a decorated class: nothing is computed with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any


class Placeholder:
    """Takes every call, index and operator; its text alone counts."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(f"{self._name}.{name}")

    def _same(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self._name} is text of a program and is not executed; decorate what uses it")

    def __bool__(self) -> bool:
        raise TypeError(f"{self._name} is text of a program and is not executed; decorate what uses it")

    def __repr__(self) -> str:
        return f"<{self._name} of a program>"

    __call__ = __getitem__ = _same
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _same
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __neg__ = _same


def names_at_caller(depth: int) -> dict[str, object]:
    """The names that are visible in the function that called the one that asks, `depth` calls further out."""
    frame = inspect.currentframe()
    for _ in range(depth + 2):
        frame = None if frame is None else frame.f_back
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}


def is_in_class(function: Callable[..., object]) -> bool:
    """Whether a function stands in the body of a class, which is then read as a whole."""
    outer = function.__qualname__.rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>")
