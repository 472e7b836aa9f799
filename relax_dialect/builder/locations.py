"""Where in the caller's program an op was asked for."""

from __future__ import annotations

import inspect

from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, LocationAttr, NameLoc, NoneAttr, StringAttr

_BUILDER = __name__.rpartition(".")[0]
_TRANSPARENT = (_BUILDER, "contextlib")
"""Modules whose frames are not the caller's."""


def caller_location() -> LocationAttr:
    """The line of Python outside of the builder that is being executed; the column is not known and given as 1."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_TRANSPARENT):
        frame = frame.f_back
    if frame is None:
        return UNKNOWN_LOC
    return FileLineColLoc(StringAttr(frame.f_code.co_filename), IntAttr(frame.f_lineno), IntAttr(1))


def named(name: str) -> NameLoc:
    """The location of an imported node: its name."""
    return NameLoc(StringAttr(name), NoneAttr())
