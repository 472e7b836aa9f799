"""Lines of Python, nested, as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_WORD = re.compile(r"\w+")


@dataclass
class Suite:
    """A statement with an indented body; `grid` is the variable and extent of a loop that a grid may hold."""

    head: str
    body: list[Line]
    grid: tuple[str, str] | None = None


Line: TypeAlias = "str | Suite"


def rendered(lines: Sequence[Line], indent: str = "") -> Iterator[str]:
    """The text, one line each; perfect nests of plain loops become grids."""
    for line in lines or ["pass"]:
        if isinstance(line, str):
            yield indent + line
            continue
        nest = [line]
        while (inner := _only(nest)) is not None:
            nest.append(inner)
        if len(nest) > 1:
            pairs = [suite.grid for suite in nest if suite.grid is not None]
            variables, extents = (", ".join(column) for column in zip(*pairs, strict=True))
            yield f"{indent}for {variables} in T.grid({extents}):"
        else:
            yield indent + line.head
        yield from rendered(nest[-1].body, indent + "    ")


def _only(nest: Sequence[Suite]) -> Suite | None:
    """The plain loop that a nest of plain loops holds alone, if its extent is the same in all iterations."""
    if nest[-1].grid is None or len(nest[-1].body) != 1:
        return None
    (inner,) = nest[-1].body
    if not isinstance(inner, Suite) or inner.grid is None:
        return None
    outer = [suite.grid[0] for suite in nest if suite.grid is not None]
    return None if set(outer) & set(_WORD.findall(inner.grid[1])) else inner
