"""Maps between indices, for layouts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from tir_dialect.dims import (
    Bounds,
    Dim,
    DimLike,
    DimSyntaxError,
    Prover,
    is_symbol_name,
    parse_dim,
    product,
    symbol,
    to_dim,
)
from tir_dialect.schedule.index_domain import IndexDomain, inverse
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import size_of
from tir_dialect.te.tensor import ExtentLike

IndexMapLike: TypeAlias = "IndexMap | str | Callable[..., Sequence[ExtentLike] | ExtentLike]"
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

    def map_shape(self, shape: Sequence[DimLike]) -> tuple[Dim, ...]:
        """The least shape that has all new indices of a buffer of this shape; ValueError if it cannot be determined."""
        domain = self._domain(shape)
        found = tuple(domain.extent(output) for output in self.apply(domain.indices))
        known = tuple(extent for extent in found if extent is not None)
        if len(known) < len(found):
            raise ValueError(f"index map {self} gives an index that is not known to be at least 0 and bounded")
        return known

    def inverse(self, shape: Sequence[DimLike]) -> IndexMap:
        """The map from new indices to old ones, for a buffer of this shape.

        ```python
        IndexMap.parse("(i, j) -> (i // 4, j, i % 4)").inverse(["4 * n", "m"])   # (i0, i1, i2) -> (4 * i0 + i2, i1)
        ```

        Raises ValueError for a map that maps two elements to the same index or cannot be inverted, and for
        one that leaves positions free, which has a `non_surjective_inverse` only.
        """
        back, free = self.non_surjective_inverse(shape)
        if free and not _is_full(shape, self.map_shape(shape)):
            raise ValueError(
                f"index map {self} leaves elements of {_list(self.map_shape(shape))} unused: use non_surjective_inverse"
            )
        return back

    def non_surjective_inverse(self, shape: Sequence[DimLike]) -> tuple[IndexMap, tuple[tuple[Dim, Dim], ...]]:
        """As `inverse`, with what tells the positions that no element is sent to: pairs of an expression of the new
        indices and an extent. Where some expression is not below its extent, a position is free.

        ```python
        IndexMap.parse("(i) -> (i // 4, i % 4)").non_surjective_inverse([14])  # (i0, i1) -> (4 * i0 + i1), it and 14
        ```
        """
        domain = self._domain(shape)
        outputs = self.apply(domain.indices)
        if not domain.tells_apart(outputs):
            raise ValueError(f"index map {self} may map two elements of {_list(shape)} to the same index")
        new_shape = self.map_shape(shape)
        new = IndexDomain.of(new_shape, Bounds())
        found = inverse(domain, outputs, new.indices, set(domain.variables), new_shape)
        if found is None:
            raise ValueError(f"the old indices of {_list(shape)} cannot be computed from those of index map {self}")
        old = [new.prover.simplify(found[name]) for name in domain.variables]
        extents = [to_dim(extent) for extent in shape]
        free = [(index, end) for index, end in zip(old, extents, strict=True) if not new.less_equal(index + 1, end)]
        names = _fresh_names(len(new_shape), frozenset[str]().union(*(extent.symbols for extent in extents)))
        positions = {str(position): symbol(name) for position, name in zip(new.indices, names, strict=True)}
        back = IndexMap(names, tuple(index.substitute(positions) for index in old))
        return back, tuple((index.substitute(positions), end) for index, end in free)

    def _domain(self, shape: Sequence[DimLike]) -> IndexDomain:
        if len(shape) != len(self.inputs):
            raise ValueError(f"index map {self} expected {len(self.inputs)} dimensions, got {_list(shape)}")
        return IndexDomain.of([to_dim(extent) for extent in shape], Bounds())

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

        Only `*indices` of a function need the rank; parameters after them are the last indices.
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
        if isinstance(outputs, Dim | Expr | int | str):
            outputs = (outputs,)
        if not isinstance(cast("object", outputs), Iterable):
            raise ValueError(f"expected a function that gives an index, or several, got {outputs}")
        return IndexMap(tuple(names), tuple(map(_to_index, outputs)))


def _to_index(output: ExtentLike) -> Dim:
    value = output if isinstance(output, str) else size_of(output)
    if isinstance(value, Dim | int | str):
        return to_dim(value)
    raise ValueError(f"expected an index of +, -, *, // and % on indices and sizes, got {output}")


def _is_full(shape: Sequence[DimLike], new_shape: Sequence[Dim]) -> bool:
    """Whether there are as many positions as elements."""
    return Prover().equal(product([to_dim(extent) for extent in shape]), product(new_shape)) is True


def _list(dims: Sequence[DimLike]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _fresh_names(count: int, taken: frozenset[str]) -> tuple[str, ...]:
    """`i0`, `i1` and so on, with another letter where sizes are called so."""
    found = next(
        names
        for letter in "ijklpqrstuvwxyzi"
        if taken.isdisjoint(names := [f"{letter}{number}" for number in range(count)])
    )
    return tuple(found)


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
