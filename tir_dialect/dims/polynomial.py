"""Polynomial helpers: contents, common factors and division with remainder."""

from __future__ import annotations

from heapq import heappop, heappush
from math import gcd

from tir_dialect.dims.atoms import DimSizeError
from tir_dialect.dims.expr import Dim, Monomial, from_monomials, intern_dim, monomial_key, multiply_monomials

_MOST_PRODUCTS = 1 << 12
"""Of terms, in one long division."""


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
