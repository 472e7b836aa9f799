"""Tags: names that computations get by where they are made, for those who look for them in a graph."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("te.tag", default="")


@contextmanager
def tag_scope(tag: str) -> Generator[None]:
    """Gives computes that are made inside the tag, as `tensor.op.tag`; also a decorator of a function that makes them.

    Raises ValueError inside of another scope.
    """
    token = _current.set(current_tag(tag))
    try:
        yield
    finally:
        _current.reset(token)


def current_tag(own: str) -> str:
    """The tag of a computation that is given one of its own, or none; ValueError for two."""
    around = _current.get()
    if own and around:
        raise ValueError(f'te: the tag "{own}" is inside of the scope of tag "{around}", expected one of them')
    return own or around
