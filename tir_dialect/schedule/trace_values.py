"""Arguments and results of calls in a trace: as text of Python, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias, cast

Value: TypeAlias = Any
"""An argument or result: handles, numbers, strings, dimensions, `None`, and sequences and mappings of those."""


@dataclass(frozen=True)
class Ref:
    """A handle, by the number that it got when it first appeared."""

    number: int
    kind: str
    """`b` for a block, `l` for a loop, `v` for a number that was drawn."""

    def __str__(self) -> str:
        return f"{self.kind}{self.number}"


def plain(value: Value) -> Value:
    """A number of NumPy's as one of Python's, which JSON has, too; anything else as it is."""
    if isinstance(value, bool | int | float):
        return value
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else value


def refs(value: Value) -> Iterator[Ref]:
    """The handles in a value, in order."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, dict):
        yield from refs(tuple(cast("dict[str, Value]", value).values()))
    elif isinstance(value, tuple):
        for item in cast("Sequence[Value]", value):
            yield from refs(item)


def text(value: Value) -> str:
    """A value as Python."""
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return f"[{', '.join(map(text, items))}]"
    if isinstance(value, dict):
        entries = cast("dict[str, Value]", value)
        return f"{{{', '.join(f'{json.dumps(key)}: {text(each)}' for key, each in entries.items())}}}"
    return str(value) if isinstance(value, Ref) else json.dumps(value) if isinstance(value, str) else repr(value)


def to_json(value: Value) -> Value:
    """A value as JSON: handles are `{"b": 0}`, mappings `{"map": {..}}`."""
    if isinstance(value, Ref):
        return {value.kind: value.number}
    if isinstance(value, tuple):
        items = cast("Sequence[Value]", value)
        return [to_json(item) for item in items]
    if isinstance(value, dict):
        entries = cast("dict[str, Value]", value)
        return {"map": {key: to_json(each) for key, each in entries.items()}}
    return value


def from_json(data: Value) -> Value:
    """The value that `to_json` gave; ValueError if the data is none."""
    if isinstance(data, dict):
        entries = cast("dict[str, Value]", data)
        match list(entries.items()):
            case [("b" | "l" | "v" as kind, int(number))]:
                return Ref(number, kind)
            case [("map", dict())]:
                return {key: from_json(each) for key, each in entries["map"].items()}
            case _:
                raise ValueError(f"expected a handle in a schedule trace, got {json.dumps(data)}")
    if isinstance(data, list):
        items = cast("Sequence[Value]", data)
        return tuple(from_json(item) for item in items)
    return data
