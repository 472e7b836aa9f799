"""Maps between indices, for layouts: the index domain of a buffer, its indices as variables, and inverses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from tir_dialect.analysis.dependence import Axis, determine
from tir_dialect.analysis.digits import ONE, Digit, Ranges, as_sum, covers, digit_range
from tir_dialect.analysis.index_space import Variable, extremes
from tir_dialect.dims import (
    Bounds,
    Dim,
    DimLike,
    DimSyntaxError,
    FloorDivAtom,
    ModAtom,
    Prover,
    ceildiv,
    constant,
    floordiv,
    is_symbol_name,
    mod,
    parse_dim,
    product,
    symbol,
    to_dim,
    total,
)
from tir_dialect.te.compute import ExtentLike
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import size_of


@dataclass(frozen=True)
class Mirrors:
    """Variables `v` that stand for `extent - 1 - v` in indices, and their extents."""

    indices: tuple[Dim, ...]
    extents: dict[str, Dim]

    @staticmethod
    def of(space: Ranges, indices: Sequence[Dim], names: AbstractSet[str]) -> Mirrors | None:
        """Mirrors what is subtracted in quotients and remainders; `None` if there is nothing.

        `mod(n - 1 - i, 4)` is `mod(i, 4)` of the mirrored variable, whose digits can be told.
        """
        found = {name for index in indices for name in _subtracted(index)} & names
        extents = {name: space.variables[name].upper for name in sorted(found) if name in space.variables}
        known = {name: extent for name, extent in extents.items() if extent is not None and _from_zero(space, name)}
        if not known:
            return None
        values = {name: extent - ONE - symbol(name) for name, extent in known.items()}
        return Mirrors(tuple(index.substitute(values) for index in indices), known)


def _from_zero(space: Ranges, name: str) -> bool:
    lower = space.variables[name].lower
    return lower is not None and not lower.terms


def _subtracted(dim: Dim) -> Iterator[str]:
    """The symbols with a negative factor in the numerators of a dimension."""
    for _, monomial in dim.terms:
        for atom, _ in monomial:
            if not isinstance(atom, FloorDivAtom | ModAtom):
                continue
            yield from _subtracted(atom.numerator)
            for factor, inner in atom.numerator.terms:
                if factor < 0:
                    yield from (name for part, _ in inner for name in part.symbols)


@dataclass(frozen=True)
class IndexDomain:
    """A variable for each index of a shape."""

    variables: dict[str, Variable]
    prover: Prover

    @staticmethod
    def of(shape: Sequence[Dim], bounds: Bounds) -> IndexDomain:
        """The domain of a buffer of this shape; `bounds` are those of the symbols in it."""
        values = Block(arg_types=[IndexType()] * len(shape)).args
        variables = [
            Variable(value, symbol(f"x${number}"), constant(0), extent)
            for number, (value, extent) in enumerate(zip(values, shape, strict=True))
        ]
        entries = {str(v.dim): (v.lower, v.lower if v.is_empty or v.upper is None else v.upper - 1) for v in variables}
        return IndexDomain({str(v.dim): v for v in variables}, Prover(bounds.with_entries(entries)))

    @property
    def indices(self) -> list[Dim]:
        """The variables, as expressions."""
        return [variable.dim for variable in self.variables.values()]

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, for all indices or for none."""
        return self.prover.less_equal(lhs, rhs)

    def tells_apart(self, outputs: Sequence[Dim]) -> bool:
        """Whether two indices for which all of these expressions agree are certainly the same."""
        mirrors = Mirrors.of(self, outputs, self.variables.keys())
        ways = [outputs] if mirrors is None else [outputs, mirrors.indices]
        return any(self._determine_all([(Axis(output),) for output in way]) for way in ways)

    def _determine_all(self, rows: Sequence[tuple[Axis]]) -> bool:
        return all(determine(self, rows, variable, self.variables.keys()) for variable in self.indices)

    def extent(self, output: Dim) -> Dim | None:
        """One more than the greatest value of an expression, of a quotient rounded up; `None` if it is not known to be
        at least 0 and bounded.
        """
        variables = list(self.variables.values())
        found = extremes(output, variables, self.prover)
        if found is None or self.prover.less_equal(0, found.low) is not True:
            return None
        atom = output.as_atom
        if isinstance(atom, FloorDivAtom) and self.variables.keys().isdisjoint(atom.denominator.symbols):
            numerator = extremes(atom.numerator, variables, self.prover)
            if numerator is not None:
                return self.prover.simplify(ceildiv(numerator.high + 1, atom.denominator))
        return self.prover.simplify(found.high + 1)


class Space(Ranges, Protocol):
    """Ranges of variables, with what can be shown about them."""

    @property
    def prover(self) -> Prover:
        """Knows the bounds of the variables."""
        ...


@dataclass(frozen=True)
class Part:
    """The value of a digit that was found, and how many values the positions leave it."""

    value: Dim
    count: Dim


Digits = dict[Digit, Part]
"""The digits that were found."""


def inverse(
    space: Space, indices: Sequence[Dim], positions: Sequence[Dim], names: AbstractSet[str], shape: Sequence[Dim]
) -> dict[str, Dim] | None:
    """Each of the variables `names` in terms of `positions`, the values of `indices` in a buffer of this shape.

    `None` if the indices do not tell the variables: each must be a number whose digits are variables, parts of one, or
    parts of such a number, and all digits of a variable must occur. Where a buffer has more elements than there are
    instances, a variable is not below its extent for the others.
    """
    found = _in_any_digits(space, indices, positions, names, shape)
    mirrors = Mirrors.of(space, indices, names) if found is None else None
    extents = {} if mirrors is None else mirrors.extents
    if mirrors is not None:
        found = _in_any_digits(space, mirrors.indices, positions, names, shape)
    if found is None:
        return None
    return {
        name: _mirrored(space, part, extents[name]).value if name in extents else part.value
        for name, part in found.items()
    }


def _in_any_digits(
    space: Space, indices: Sequence[Dim], positions: Sequence[Dim], names: AbstractSet[str], shape: Sequence[Dim]
) -> dict[str, Part] | None:
    found = _inverse(space, indices, positions, names, shape)
    if found is not None:
        return found
    # what is cut up otherwise than the buffer may be whole in the number of the element
    strides = [product(shape[axis + 1 :]) for axis in range(len(shape))]
    number, digit = (total(d * s for d, s in zip(row, strides, strict=True)) for row in (indices, positions))
    return _inverse(space, [space.prover.simplify(number)], [digit], names, [product(shape)])


def _inverse(
    space: Ranges, indices: Sequence[Dim], positions: Sequence[Dim], names: AbstractSet[str], shape: Sequence[Dim]
) -> dict[str, Part] | None:
    digits: Digits = {}
    for index, digit, extent in zip(indices, positions, shape, strict=True):
        if not _take_apart(space, index, Part(digit, extent), names, extent, digits):
            return None
    sources = dict.fromkeys(digit.source for digit in digits if digit.source.as_symbol is None)
    for source in sources:
        reach, value = _reach(space, source, names), _value(space, source, digits)
        if reach is None or value is None or not _take_apart(space, source, value, names, reach, digits):
            return None
    found = {name: _value(space, symbol(name), digits) for name in sorted(names)}
    known = {name: part for name, part in found.items() if part is not None}
    return known if len(known) == len(found) else None


def _value(space: Ranges, source: Dim, digits: Digits) -> Part | None:
    """A number by its digits; `None` if they do not tell it."""
    own = {digit: part for digit, part in digits.items() if digit.source is source}
    variable = space.variables.get(source.as_symbol or "")
    if not own and variable is not None and variable.upper is ONE:
        return Part(constant(0), ONE)
    if not covers(space, source, own):
        return None
    last = next(digit for digit in own if not any(digit.high is other.low for other in own))
    return Part(total(digit.low * part.value for digit, part in own.items()), last.low * own[last].count)


def _take_apart(space: Ranges, index: Dim, digit: Part, names: AbstractSet[str], extent: Dim, digits: Digits) -> bool:
    """Adds the digits of an index; whether it is a number that has them and takes all values below the extent."""
    found = as_sum(space, index, names)
    reach = _reach(space, index, names)
    if found is None or reach is None or not (_equal(space, reach, extent) or len(found.terms) == 1):
        return False
    for term in found.terms:
        values = _range(space, term.digit, names)
        if values is None or term.digit in digits:
            return False
        part = Part(floordiv(digit.value, term.factor), ceildiv(digit.count, term.factor))
        if term is not found.terms[-1]:
            part = Part(mod(part.value, values), values)
        digits[term.digit] = _mirrored(space, part, values) if term.mirrored else part
    return True


def _mirrored(space: Ranges, part: Part, values: Dim) -> Part:
    """A number of so many `values` counted from its end; what is not below them is not afterwards."""
    value = values - ONE - part.value
    return Part(value if _equal(space, part.count, values) else mod(value, part.count), part.count)


def _reach(space: Ranges, dim: Dim, names: AbstractSet[str]) -> Dim | None:
    """One more than the greatest value of a number that takes all values from 0 on; `None` for another expression."""
    found = as_sum(space, dim, names)
    if found is None or found.base.terms:
        return None
    reach = ONE
    for term in found.terms:
        values = _range(space, term.digit, names)
        if values is None or not _equal(space, term.factor, reach):
            return None
        reach = reach * values
    return reach


def _range(space: Ranges, digit: Digit, names: AbstractSet[str]) -> Dim | None:
    """How many values a digit has."""
    known = digit_range(space, digit)
    if known is not None or digit.source.as_symbol is not None:
        return known
    reach = _reach(space, digit.source, names)
    return None if reach is None else ceildiv(reach, digit.low)


def _equal(space: Ranges, one: DimLike, other: DimLike) -> bool:
    return bool(space.less_equal(one, other)) and bool(space.less_equal(other, one))


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
