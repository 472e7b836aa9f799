"""Floor division, modulo and ceiling division in canonical form.

Rules for a constant divisor `c > 0` (negative ones are turned: `floordiv(a, -c) = floordiv(-a, c)`,
`mod(a, -c) = -mod(-a, c)`); `k`, `g` are integers:

* `floordiv(a + c * k * x, c) = floordiv(a, c) + k * x`, `mod(a + c * k * x, c) = mod(a, c)`
* `floordiv(g * a + k, g * c) = floordiv(a + k // g, c)`, `mod(g * a + k, g * c) = g * mod(a + k // g, c) + k % g`
* `floordiv(floordiv(a, k) + r, c) = floordiv(a + k * r, k * c)` for `k > 0`
* `mod(mod(a, c * k) + r, c) = mod(a + r, c)`
* a leading negative coefficient is turned: `floordiv(-a, c) = -floordiv(a + c - 1, c)`
* a part that lies in `[0, g)` by its own form, as `mod(a, g)` does, falls off.

For a divisor `b` that is no constant, wherever it is not 0: multiples of `b` are taken out and common factors cancelled
(`floordiv(m * n + r, n) = m + floordiv(r, n)`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from tir_dialect.dims.atoms import FloorDivAtom, ModAtom
from tir_dialect.dims.expr import Dim, Monomial, Term, as_dim, constant, from_atom, from_monomials, intern_dim, total
from tir_dialect.dims.polynomial import common_factor, divide, divide_terms

Range: TypeAlias = tuple[int | None, int | None]
"""Least and greatest value, both inclusive; None is unbounded."""

RangeOf: TypeAlias = Callable[[Dim], Range]


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
    inner = _nested_floordiv(rest)
    if inner is not None:
        factor = inner.denominator.constant_term
        return floordiv_by_constant(inner.numerator + factor * rest.constant_term, factor * divisor, range_of)
    return from_atom(FloorDivAtom.get((rest, constant(divisor))))


def _nested_floordiv(dim: Dim) -> FloorDivAtom | None:
    """The atom when `dim` is `floordiv(a, k) + constant` with an integer `k`."""
    atom = (dim - dim.constant_term).as_atom
    return atom if isinstance(atom, FloorDivAtom) and atom.denominator.is_constant else None


def mod_by_constant(numerator: Dim, divisor: int, range_of: RangeOf = own_range) -> Dim:
    """`mod` by an integer, where `range_of` tells which parts are small enough to come out."""
    if divisor == 0:
        raise ZeroDivisionError(f"modulo of {numerator} by zero")
    if divisor < 0:
        return -mod_by_constant(-numerator, -divisor, range_of)
    rest = _reduce_modulo(numerator, divisor)
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


def _reduce_modulo(dim: Dim, divisor: int) -> Dim:
    """What is congruent to `dim`: coefficients in `(-divisor / 2, divisor / 2]`, the constant in `[0, divisor)`."""
    opened = total(_open_mod(coefficient, monomial, divisor) for coefficient, monomial in dim.terms)
    terms: list[Term] = []
    for coefficient, monomial in opened.terms:
        residue = coefficient % divisor
        if monomial and 2 * residue > divisor:
            residue -= divisor
        if residue:
            terms.append((residue, monomial))
    return intern_dim(tuple(terms))


def _open_mod(coefficient: int, monomial: Monomial, divisor: int) -> Dim:
    """The term, or `coefficient * a` for a term `coefficient * mod(a, k)` that is congruent to it."""
    atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
    inner = atom.denominator.constant_value if isinstance(atom, ModAtom) else None
    if isinstance(atom, ModAtom) and inner is not None and coefficient * inner % divisor == 0:
        return coefficient * atom.numerator
    return intern_dim(((coefficient, monomial),))
