"""Maps between indices, for layouts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tir_dialect.dims import Dim, DimLike, DimSyntaxError, is_symbol_name, parse_dim, symbol, to_dim

IndexMapLike: TypeAlias = "IndexMap | str | Callable[..., Sequence[DimLike] | DimLike]"
"""A map, its text, or a function of dimensions: `lambda i, j: (i // 4, j, i % 4)`."""


@dataclass(frozen=True)
class IndexMap:
    """New indices as expressions of old ones: `(i, j) -> (floordiv(i, 4), j, mod(i, 4))`."""

    inputs: tuple[str, ...]
    outputs: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.inputs)}) -> ({', '.join(map(str, self.outputs))})"

    def apply(self, indices: Sequence[Dim]) -> tuple[Dim, ...]:
        """The new indices of an element."""
        values = dict(zip(self.inputs, indices, strict=True))
        return tuple(output.substitute(values) for output in self.outputs)

    @staticmethod
    def parse(text: str) -> IndexMap:
        """The map with this text; ValueError for other text."""
        left, arrow, right = text.partition("->")
        names = [name.strip() for name in left.strip().removeprefix("(").removesuffix(")").split(",")]
        if not arrow or not all(map(is_symbol_name, names)) or len(set(names)) != len(names):
            raise ValueError(f'expected an index map such as "(i, j) -> (j, i)", got "{text}"')
        try:
            outputs = tuple(parse_dim(part) for part in _split(right.strip()))
        except DimSyntaxError as error:
            raise ValueError(f'expected an index map such as "(i, j) -> (j, i)", got "{text}": {error}') from None
        return IndexMap(tuple(names), outputs)

    @staticmethod
    def of(value: IndexMapLike, rank: int = 0) -> IndexMap:
        """A map of `rank` indices from what users write; ValueError for text or a function that is none.

        Only `*indices` of a function need the rank; parameters behind them are the last indices.
        """
        if isinstance(value, IndexMap):
            return value
        if isinstance(value, str):
            return IndexMap.parse(value)
        parameters = inspect.signature(value).parameters
        last = [name for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY]
        names: list[str] = []
        for name, parameter in parameters.items():
            several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            names += [f"{name}{number}" for number in range(rank - len(names) - len(last))] if several else [name]
        first = names[: len(names) - len(last)]
        outputs = value(*map(symbol, first), **{name: symbol(name) for name in last})
        if isinstance(outputs, Dim | int | str):
            outputs = (outputs,)
        return IndexMap(tuple(names), tuple(to_dim(output) for output in outputs))


def _split(text: str) -> list[str]:
    """The parts of a list in parentheses, at the commas that are in no other parentheses."""
    if not text.startswith("(") or not text.endswith(")"):
        raise ValueError(f'expected new indices in parentheses, got "{text}"')
    parts, depth = [""], 0
    for character in text[1:-1]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
