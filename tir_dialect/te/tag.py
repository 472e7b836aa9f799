"""Tags: labels of computations, by which passes find them in a graph."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("te.tag", default="")


@contextmanager
def tag_scope(tag: str) -> Generator[None]:
    """Tags the computes created inside (`tensor.op.tag`); a context manager, or a decorator of a function.

    Raises ValueError inside another scope.
    """
    token = _current.set(current_tag(tag))
    try:
        yield
    finally:
        _current.reset(token)


def current_tag(own: str) -> str:
    """The tag of a new computation: its own, or that of the scope; ValueError if there are both."""
    around = _current.get()
    if own and around:
        raise ValueError(f'te: the tag "{own}" is inside of the scope of tag "{around}", expected one of them')
    return own or around
