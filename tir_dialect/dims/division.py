"""Floor division, modulo, ceiling division, minimum, maximum and broadcast in canonical form.

Rules for a constant divisor `c > 0` (negative ones are turned: `floordiv(a, -c) = floordiv(-a, c)`,
`mod(a, -c) = -mod(-a, c)`); `k`, `g` are integers:

* `floordiv(a + c * k * x, c) = floordiv(a, c) + k * x`, `mod(a + c * k * x, c) = mod(a, c)`
* `floordiv(g * a + k, g * c) = floordiv(a + k // g, c)`, `mod(g * a + k, g * c) = g * mod(a + k // g, c) + k % g`
* `floordiv(floordiv(a, k) + r, c) = floordiv(a + k * r, k * c)` for `k > 0`
* `mod(mod(a, c * k) + r, c) = mod(a + r, c)`
* a leading negative coefficient is turned: `floordiv(-a, c) = -floordiv(a + c - 1, c)`
* an addend that lies in `[0, g)` by its own form, as `mod(a, g)` does, falls off.

For a divisor `b` that is no constant, wherever it is not 0: multiples of `b` are taken out and common factors cancelled
(`floordiv(m * n + r, n) = m + floordiv(r, n)`).

* All three are associative, commutative and idempotent: operands are flattened, sorted and without repetition.
* Of operands that differ by a constant only one stays: `min(n, n + 1) = n`.
* Absorption: `min(a, max(a, b)) = a`, `max(a, min(a, b)) = a`.
* `broadcast(1, a) = a`; `broadcast(a, b) = b` where `b` is never 1, such as a constant or `2 * n`, because `a` can
  then only be `1` or `b`. Extents of 0 follow the same rule, as in NumPy: `broadcast(1, 0) = 0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from math import gcd
from typing import TypeAlias

from tir_dialect.dims.expr import (
    FUNCTIONS,
    Dim,
    DimSizeError,
    FunctionAtom,
    Monomial,
    Term,
    as_dim,
    constant,
    from_atom,
    from_monomials,
    intern_dim,
    monomial_key,
    multiply_monomials,
    total,
)

Range: TypeAlias = tuple[int | None, int | None]
"""Least and greatest value, both inclusive; None is unbounded."""

RangeOf: TypeAlias = Callable[[Dim], Range]

_MOST_PRODUCTS = 1 << 12
"""Of terms, in one long division."""


class DivisionAtom(FunctionAtom):
    """A function of a numerator and a denominator that is not 0."""

    __slots__ = ()

    @property
    def numerator(self) -> Dim:
        """What is divided."""
        return self.operands[0]

    @property
    def denominator(self) -> Dim:
        """What it is divided by: a constant > 1, or no constant."""
        return self.operands[1]


class FloorDivAtom(DivisionAtom):
    """`floordiv(numerator, denominator)`: the quotient rounded towards minus infinity."""

    __slots__ = ()

    rank = 1
    spelling = "floordiv"

    def value_of(self, operands: Sequence[int]) -> int:
        return operands[0] // operands[1]


class ModAtom(DivisionAtom):
    """`mod(numerator, denominator)`: what floor division leaves; it has the sign of the denominator."""

    __slots__ = ()

    rank = 2
    spelling = "mod"

    def value_of(self, operands: Sequence[int]) -> int:
        return operands[0] % operands[1]


def floordiv(numerator: Dim | int, denominator: Dim | int) -> Dim:
    """The quotient rounded towards minus infinity; ZeroDivisionError for the constant divisor 0."""
    return _floordiv(as_dim(numerator), as_dim(denominator))


def mod(numerator: Dim | int, denominator: Dim | int) -> Dim:
    """`numerator - denominator * floordiv(numerator, denominator)`; ZeroDivisionError for the constant divisor 0."""
    return _mod(as_dim(numerator), as_dim(denominator))


def ceildiv(numerator: Dim | int, denominator: Dim | int) -> Dim:
    """The quotient rounded towards infinity: `-floordiv(-numerator, denominator)`, for divisors of either sign.

    For a constant divisor that is `floordiv(numerator + denominator - 1, denominator)`.
    """
    return -_floordiv(-as_dim(numerator), as_dim(denominator))


FUNCTIONS.update({"ceildiv": ceildiv, "floordiv": floordiv, "mod": mod})


@lru_cache(maxsize=4096)
def _floordiv(numerator: Dim, denominator: Dim) -> Dim:
    divisor = denominator.constant_value
    if divisor is not None:
        return floordiv_by_constant(numerator, divisor)
    numerator, denominator, _ = _cancel(numerator, denominator)
    divisor = denominator.constant_value
    if divisor is not None:
        return floordiv_by_constant(numerator, divisor)
    quotient, rest = divide(numerator, denominator)
    return quotient + from_atom(FloorDivAtom.get((rest, denominator))) if rest.terms else quotient


@lru_cache(maxsize=4096)
def _mod(numerator: Dim, denominator: Dim) -> Dim:
    divisor = denominator.constant_value
    if divisor is not None:
        return mod_by_constant(numerator, divisor)
    numerator, denominator, factor = _cancel(numerator, denominator)
    divisor = denominator.constant_value
    if divisor is not None:
        return factor * mod_by_constant(numerator, divisor)
    _, rest = divide(numerator, denominator)
    return factor * from_atom(ModAtom.get((rest, denominator))) if rest.terms else constant(0)


def _cancel(numerator: Dim, denominator: Dim) -> tuple[Dim, Dim, Dim]:
    """Both without their common factor, and the factor, whose sign makes the denominator lead positively."""
    coefficient, monomial = common_factor(numerator, denominator)
    if denominator.terms[0][0] < 0:
        coefficient = -coefficient
    if coefficient == 1 and not monomial:
        return numerator, denominator, constant(1)
    factor = from_monomials({monomial: coefficient})
    return divide_terms(numerator, coefficient, monomial), divide_terms(denominator, coefficient, monomial), factor


def own_range(dim: Dim) -> Range:
    """The range that follows from the form alone, for any values of the symbols: that of constants and moduli."""
    low = high = 0
    for coefficient, monomial in dim.terms:
        extent = 1
        if monomial:
            atom, power = monomial[0]
            divisor = atom.denominator.constant_value if isinstance(atom, ModAtom) else None
            if divisor is None or power != 1 or len(monomial) != 1:
                return None, None
            extent = divisor - 1
        low += coefficient if not monomial else min(0, coefficient * extent)
        high += coefficient if not monomial else max(0, coefficient * extent)
    return low, high


def floordiv_by_constant(numerator: Dim, divisor: int, range_of: RangeOf = own_range) -> Dim:
    """`floordiv` by an integer, where `range_of` tells which parts are small enough to fall off."""
    if divisor == 0:
        raise ZeroDivisionError(f"division of {numerator} by zero")
    if divisor < 0:
        numerator, divisor = -numerator, -divisor
    quotient, rest = _split_multiples(numerator, divisor)
    return quotient + _floordiv_rest(rest, divisor, range_of)


def _floordiv_rest(rest: Dim, divisor: int, range_of: RangeOf) -> Dim:
    """`floordiv` of what no multiple can be taken out of."""
    if _within(range_of(rest), divisor):
        return constant(0)
    step, part = _coarsest_step(rest, divisor, range_of)
    if step > 1:
        return floordiv_by_constant(divide_terms(rest - part, step, ()), divisor // step, range_of)
    if rest.terms[0][0] < 0:
        return -floordiv_by_constant(-rest + (divisor - 1), divisor, range_of)
    # The atom when `dim` is `floordiv(a, k) + constant` with an integer `k`.
    atom = (rest - rest.constant_term).as_atom
    inner = atom if isinstance(atom, FloorDivAtom) and atom.denominator.is_constant else None
    if inner is not None:
        factor = inner.denominator.constant_term
        return floordiv_by_constant(inner.numerator + factor * rest.constant_term, factor * divisor, range_of)
    return from_atom(FloorDivAtom.get((rest, constant(divisor))))


def mod_by_constant(numerator: Dim, divisor: int, range_of: RangeOf = own_range) -> Dim:
    """`mod` by an integer, where `range_of` tells which parts are small enough to come out."""
    if divisor == 0:
        raise ZeroDivisionError(f"modulo of {numerator} by zero")
    if divisor < 0:
        return -mod_by_constant(-numerator, -divisor, range_of)
    # What is congruent to `dim`: coefficients in `(-divisor / 2, divisor / 2]`, the constant in `[0,
    # divisor)`.
    opened = total(_open_mod(coefficient, monomial, divisor) for coefficient, monomial in numerator.terms)
    terms: list[Term] = []
    for coefficient, monomial in opened.terms:
        residue = coefficient % divisor
        if monomial and 2 * residue > divisor:
            residue -= divisor
        if residue:
            terms.append((residue, monomial))
    rest = intern_dim(tuple(terms))
    if _within(range_of(rest), divisor):
        return rest
    step, part = _coarsest_step(rest, divisor, range_of)
    if step > 1:
        return part + step * mod_by_constant(divide_terms(rest - part, step, ()), divisor // step, range_of)
    return from_atom(ModAtom.get((rest, constant(divisor))))


def _within(bounds: Range, limit: int) -> bool:
    """Whether all values lie in `[0, limit)`."""
    low, high = bounds
    return low is not None and high is not None and low >= 0 and high < limit


def _split_multiples(dim: Dim, divisor: int) -> tuple[Dim, Dim]:
    """`(q, r)` with `dim == divisor * q + r`.

    The coefficients of `r` are smaller than the divisor and keep their sign; its constant is not negative.
    """
    quotient: list[Term] = []
    rest: list[Term] = []
    for coefficient, monomial in dim.terms:
        multiple = coefficient // divisor if coefficient > 0 or not monomial else -(-coefficient // divisor)
        if multiple:
            quotient.append((multiple, monomial))
        if coefficient != divisor * multiple:
            rest.append((coefficient - divisor * multiple, monomial))
    return intern_dim(tuple(quotient)), intern_dim(tuple(rest))


def _coarsest_step(rest: Dim, divisor: int, range_of: RangeOf) -> tuple[int, Dim]:
    """The greatest `g` that divides the divisor and `rest - part` for some `part` in `[0, g)`, and that part."""
    steps = {divisor}
    step = divisor
    for own in sorted((gcd(coefficient, divisor) for coefficient, monomial in rest.terms if monomial), reverse=True):
        step = gcd(step, own)
        steps.add(step)
    for step in sorted(steps, reverse=True):
        part = [(c, monomial) for c, monomial in rest.terms if monomial and c % step]
        if rest.constant_term % step:
            part.append((rest.constant_term % step, ()))
        small = intern_dim(tuple(part))
        if _within(range_of(small), step):
            return step, small
    return 1, constant(0)


def _open_mod(coefficient: int, monomial: Monomial, divisor: int) -> Dim:
    """The term, or `coefficient * a` for a term `coefficient * mod(a, k)` that is congruent to it."""
    atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
    inner = atom.denominator.constant_value if isinstance(atom, ModAtom) else None
    if isinstance(atom, ModAtom) and inner is not None and coefficient * inner % divisor == 0:
        return coefficient * atom.numerator
    return intern_dim(((coefficient, monomial),))


def without_constant(dim: Dim) -> Dim:
    """The terms that are not the constant one."""
    return intern_dim(dim.terms[:-1]) if dim.constant_term else dim


def coefficient_gcd(dim: Dim) -> int:
    """The greatest common divisor of the coefficients of all terms but the constant one; 0 for a constant."""
    return gcd(*(coefficient for coefficient, monomial in dim.terms if monomial))


def divide_monomial(numerator: Monomial, denominator: Monomial) -> Monomial | None:
    """The quotient if it is a monomial, else None."""
    if not denominator:
        return numerator
    powers = dict(numerator)
    for atom, power in denominator:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)


def common_factor(*dims: Dim) -> tuple[int, Monomial]:
    """The greatest integer and the greatest monomial that divide every term of all `dims`, of which one is not 0."""
    terms = [term for dim in dims for term in dim.terms]
    shared = dict(terms[0][1])
    for _, monomial in terms[1:]:
        if not shared:
            break
        powers = dict(monomial)
        shared = {atom: min(power, powers[atom]) for atom, power in shared.items() if atom in powers}
    return gcd(*(coefficient for coefficient, _ in terms)), tuple(shared.items())


def divide_terms(dim: Dim, coefficient: int, monomial: Monomial) -> Dim:
    """`dim` divided by a common factor of its terms."""
    quotients: dict[Monomial, int] = {}
    for term_coefficient, term_monomial in dim.terms:
        quotient = divide_monomial(term_monomial, monomial)
        if quotient is None or term_coefficient % coefficient:
            raise ValueError(f"{coefficient} times the monomial is no factor of every term of {dim}")
        quotients[quotient] = term_coefficient // coefficient
    return from_monomials(quotients)


def divide(numerator: Dim, denominator: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `numerator == q * denominator + r`, by long division in the order of monomials.

    Only exact integer quotients of coefficients are taken, so `r` may be all of the numerator.
    """
    (lead, lead_monomial), *_ = denominator.terms
    rest = {monomial: coefficient for coefficient, monomial in numerator.terms}
    order = [(monomial_key(monomial), monomial) for monomial in rest]  # numerator.terms are in order: a heap
    quotient: dict[Monomial, int] = {}
    remainder: dict[Monomial, int] = {}
    products = 0
    while order:
        _, monomial = heappop(order)
        coefficient = rest.pop(monomial, 0)
        if not coefficient:
            continue
        factor = divide_monomial(monomial, lead_monomial)
        if factor is None or coefficient % lead:
            remainder[monomial] = coefficient
            continue
        quotient[factor] = coefficient // lead
        products += len(denominator.terms)
        if products > _MOST_PRODUCTS:
            raise DimSizeError(
                f"the quotient of {len(numerator.terms)} and {len(denominator.terms)} terms has too many terms"
            )
        for other, other_monomial in denominator.terms[1:]:
            target = multiply_monomials(factor, other_monomial)
            if target not in rest:
                heappush(order, (monomial_key(target), target))
            rest[target] = rest.get(target, 0) - quotient[factor] * other
            if not rest[target]:
                del rest[target]
    return from_monomials(quotient), from_monomials(remainder)


class MinAtom(FunctionAtom):
    """`min(...)` of two operands or more."""

    __slots__ = ()

    rank = 3
    spelling = "min"

    def value_of(self, operands: Sequence[int]) -> int:
        return min(operands)


class MaxAtom(FunctionAtom):
    """`max(...)` of two operands or more."""

    __slots__ = ()

    rank = 4
    spelling = "max"

    def value_of(self, operands: Sequence[int]) -> int:
        return max(operands)


class BroadcastAtom(FunctionAtom):
    """`broadcast(...)`: the extent that all operands not equal to 1 have in common; 1 if there are none."""

    __slots__ = ()

    rank = 5
    spelling = "broadcast"

    def value_of(self, operands: Sequence[int]) -> int:
        return broadcast_extents(operands)


def broadcast_extents(extents: Sequence[int]) -> int:
    """The extent that integers broadcast to; ValueError where they do not."""
    result = 1
    for extent in extents:
        if result not in (1, extent) and extent != 1:
            raise ValueError(f"extents {result} and {extent} do not broadcast")
        result = extent if result == 1 else result
    return result


def minimum(*dims: Dim | int) -> Dim:
    """The least of one operand or more."""
    return _extremum(MinAtom, MaxAtom, min, tuple(map(as_dim, dims)))


def maximum(*dims: Dim | int) -> Dim:
    """The greatest of one operand or more."""
    return _extremum(MaxAtom, MinAtom, max, tuple(map(as_dim, dims)))


def broadcast(*dims: Dim | int) -> Dim:
    """The extent that NumPy's broadcasting gives: that of the operands which are not 1; 1 of nothing.

    ValueError for constants that do not broadcast. For symbols the caller has to check that they do: where they do
    not, the expression has no value.
    """
    return _broadcast(tuple(map(as_dim, dims)))


FUNCTIONS.update({"broadcast": broadcast, "max": maximum, "min": minimum})


@lru_cache(maxsize=4096)
def _extremum(
    own: type[FunctionAtom], dual: type[FunctionAtom], pick: Callable[[int, int], int], dims: tuple[Dim, ...]
) -> Dim:
    if not dims:
        raise ValueError(f"{own.spelling} of nothing")
    offsets: dict[Dim, int] = {}
    for dim in _flatten(own, dims):
        base = without_constant(dim)
        offset = dim.constant_term
        offsets[base] = pick(offsets[base], offset) if base in offsets else offset
    operands = {base + offset for base, offset in offsets.items()}
    absorbed = {dim for dim in operands if isinstance(dim.as_atom, dual) and not operands.isdisjoint(_operands(dim))}
    return _combine(own, operands - absorbed)


@lru_cache(maxsize=4096)
def _broadcast(dims: tuple[Dim, ...]) -> Dim:
    operands = {dim for dim in _flatten(BroadcastAtom, dims) if dim.constant_value != 1}
    constants = sorted(value for dim in operands if (value := dim.constant_value) is not None)
    if len(constants) > 1:
        raise ValueError(f"extents {constants[0]} and {constants[1]} do not broadcast")
    if constants:
        return constant(constants[0])
    fixed = [dim for dim in operands if _is_never_one(dim)]
    if fixed:
        return min(fixed, key=lambda dim: dim.sort_key)
    return _combine(BroadcastAtom, operands) if operands else constant(1)


def _is_never_one(dim: Dim) -> bool:
    """Whether `dim` misses 1 for all integers, by divisibility."""
    step = coefficient_gcd(dim)
    return step > 1 and (dim.constant_term - 1) % step != 0


def _operands(dim: Dim) -> tuple[Dim, ...]:
    atom = dim.as_atom
    return atom.operands if atom is not None else ()


def _flatten(own: type[FunctionAtom], dims: Iterable[Dim]) -> Iterable[Dim]:
    """The operands, with those of nested atoms of the same class in place of the atom."""
    for dim in dims:
        if isinstance(dim.as_atom, own):
            yield from _operands(dim)
        else:
            yield dim


def _combine(own: type[FunctionAtom], operands: set[Dim]) -> Dim:
    if len(operands) == 1:
        return next(iter(operands))
    return from_atom(own.get(tuple(sorted(operands, key=lambda dim: dim.sort_key))))
