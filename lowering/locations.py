"""Source locations: they survive rewrites, and errors, profiles and diagnostics name them.

xDSL stores a location on every op and loses it on every rewrite. A pass therefore gives its rewriter the listener of
`keep_locations`, or calls `inherit_location` where it builds ops by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriterListener
from xdsl.utils.hints import isa

from tir_dialect.fast_ops import walked


def inherit_location(source: Operation | LocationAttr, new_ops: Operation | Iterable[Operation]) -> None:
    """Gives `source`'s location to every op of `new_ops`, nested ones included, that has none of its own."""
    location = source.location if isinstance(source, Operation) else source
    for new_op in (new_ops,) if isinstance(new_ops, Operation) else new_ops:
        for op in walked(new_op):
            if isinstance(op.location, UnknownLoc):
                op.location = location


def keep_locations() -> PatternRewriterListener:
    """A rewriter listener: ops made by a rewrite take the location of the op that they replace.

    An op that is inserted and followed by no replacement takes the location of the op that is modified or removed next,
    which in a pattern is the matched one or a user of it.
    """
    pending: list[Operation] = []

    def settle(source: Operation) -> None:
        inherit_location(source, (op for op in pending if op is not source))
        pending.clear()

    def replaced(old: Operation, new_results: Sequence[SSAValue | None]) -> None:
        settle(old)

    def modified(op: Operation) -> None:
        # A pattern may modify what it has just inserted; that says nothing.
        if not isinstance(op.location, UnknownLoc):
            settle(op)

    return PatternRewriterListener(
        operation_insertion_handler=[pending.append],
        operation_replacement_handler=[replaced],
        operation_modification_handler=[modified],
        operation_removal_handler=[settle],
    )


def named_location(name: str, inner: LocationAttr = UNKNOWN_LOC) -> NameLoc:
    """`loc("name"(inner))`: an imported node's name, with the position where it came from."""
    return NameLoc(StringAttr(name), NoneAttr() if isinstance(inner, UnknownLoc) else inner)


def fused_location(locations: Iterable[LocationAttr]) -> LocationAttr:
    """The location of an op that stands for several: each distinct known location once, in order."""
    distinct = dict.fromkeys(
        part for location in locations for part in _parts(location) if not isinstance(part, UnknownLoc)
    )
    match tuple(distinct):
        case ():
            return UNKNOWN_LOC
        case (only,):
            return only
        case several:
            return FusedLoc(ArrayAttr[Attribute](several), NoneAttr())


@dataclass(frozen=True)
class SourcePosition:
    """Where an op comes from, as a person reads it."""

    name: str | None = None
    """The imported node's name."""
    filename: str | None = None
    line: int = 0
    """Counted from 1; 0 without a file."""
    column: int = 0
    """Counted from 1; 0 without a file."""

    def __str__(self) -> str:
        """`file:line:column`, then the name in quotes; empty if nothing is known."""
        position = f"{self.filename}:{self.line}:{self.column}" if self.filename is not None else ""
        name = f'"{self.name}"' if self.name is not None else ""
        return " ".join(part for part in (position, name) if part)


def source_position(location: Attribute) -> SourcePosition:
    """The outermost name and the innermost file position of a location.

    A fused location answers with its first part, a call site with its callee.
    """
    match location:
        case FileLineColLoc():
            return SourcePosition(None, location.filename.data, location.line.data, location.column.data)
        case NameLoc():
            inner = source_position(location.location)
            return SourcePosition(location.desc.data, inner.filename, inner.line, inner.column)
        case CallSiteLoc():
            return source_position(location.callee)
        case FusedLoc(locations=ArrayAttr(data=(first, *_))):
            return source_position(first)
        case _:
            return SourcePosition()


def names(location: Attribute) -> tuple[str, ...]:
    """The imported names that a location mentions, outermost first, each once; for profiles and run-time errors."""
    match location:
        case NameLoc():
            return tuple(dict.fromkeys((location.desc.data, *names(location.location))))
        case CallSiteLoc():
            return names(location.callee)
        case FusedLoc():
            return tuple(dict.fromkeys(name for part in _parts(location) for name in names(part)))
        case _:
            return ()


def _parts(location: Attribute) -> tuple[LocationAttr, ...]:
    """A fused location taken apart; any other location alone."""
    if isinstance(location, FusedLoc) and isa(location.locations, ArrayAttr[Attribute]):
        return tuple(part for inner in location.locations for part in _parts(inner))
    return (location,) if isinstance(location, LocationAttr) else ()


def described(location: LocationAttr) -> str:
    """What errors and profiles show of a location: imported names if there are some, else the position in the file."""
    return ", ".join(names(location)) or str(source_position(location))
