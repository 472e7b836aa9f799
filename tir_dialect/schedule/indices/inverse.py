"""Inversion of index maps: iterators as expressions of the indices that are computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from tir_dialect.analysis.digits import ONE, Digit, Ranges, as_sum, covers, digit_range
from tir_dialect.dims import Dim, DimLike, Prover, ceildiv, constant, floordiv, mod, product, symbol, total
from tir_dialect.schedule.indices.mirrors import Mirrors


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
