"""The canonical form of a dimension: a polynomial with integer coefficients over atoms.

Dimensions and atoms are hash-consed: two that are equal in canonical form are one object, so `is`, `==` and
dictionary look-ups compare pointers. The tables are weak; an expression that nobody uses is freed.

What canonical means. Polynomial identities are decided completely. `floordiv`, `mod`, `min`, `max` and `broadcast`
are reduced by the rules of `division.py` and `lattice.py`, each valid for all integers of either sign; the rest is
for the `Prover`, which knows bounds. An expression that divides by zero, or broadcasts extents that differ, has no
value. Canonicalisation never takes a value away and never changes one, but it may drop a part that has none:
`0 * floordiv(n, m)` is `0`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from tir_dialect.dims.atoms import Atom, DimSizeError, SortKey, SymbolAtom

if TYPE_CHECKING:
    from tir_dialect.dims.text import DimLike

Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
"""A product of atoms with their powers (at least 1), sorted by atom; the empty product is 1."""

Term: TypeAlias = tuple[int, Monomial]
"""A coefficient, which is not 0, and its monomial."""

MAX_TERMS = 1 << 12
"""Terms of an expression, and products of terms that are computed for one product of expressions."""

MAX_DEGREE = 128
"""Factors of a term: twice as many as tensors have axes."""

MAX_BITS = 1024
"""Bits of a coefficient: products of a few numbers of 64 bits, which the prover makes, are less."""


class Dim:
    """An immutable integer expression in canonical form; equal expressions are the same object.

    `terms` is the structure: coefficients with their monomials, those of high degree first and the constant term
    (monomial `()`) last; zero has no terms. Make one with `symbol`, `constant`, `to_dim`, the operators
    `+ - * // %` and the functions of this package.
    """

    __slots__ = ("__weakref__", "_sort_key", "_symbols", "_text", "terms")

    terms: tuple[Term, ...]
    _sort_key: SortKey | None
    _symbols: frozenset[str] | None
    _text: str | None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a dimension is immutable: cannot set {name}")

    def __copy__(self) -> Dim:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Dim:
        return self

    def __reduce__(self) -> tuple[Callable[[tuple[Term, ...]], Dim], tuple[tuple[Term, ...]]]:
        return intern_dim, (self.terms,)

    @property
    def is_constant(self) -> bool:
        """Whether the expression is an integer."""
        return not self.terms or not self.terms[0][1]

    @property
    def constant_value(self) -> int | None:
        """The integer that the expression is, or None."""
        return self.constant_term if self.is_constant else None

    def __int__(self) -> int:
        """The integer that the expression is; TypeError if it has symbols."""
        if (value := self.constant_value) is None:
            raise TypeError(f"the dimension {self} is no number")
        return value

    @property
    def constant_term(self) -> int:
        """The integer that is added to the other terms; 0 when there is none."""
        return self.terms[-1][0] if self.terms and not self.terms[-1][1] else 0

    @property
    def as_atom(self) -> Atom | None:
        """The atom that the expression is, or None."""
        if len(self.terms) != 1:
            return None
        coefficient, monomial = self.terms[0]
        return monomial[0][0] if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 else None

    @property
    def as_symbol(self) -> str | None:
        """The name of the symbol that the expression is, or None."""
        atom = self.as_atom
        return atom.name if isinstance(atom, SymbolAtom) else None

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols in the expression."""
        found = self._symbols
        if found is None:
            parts = {atom.symbols for _, monomial in self.terms for atom, _ in monomial}
            found = frozenset[str]().union(*parts) if len(parts) != 1 else parts.pop()
            object.__setattr__(self, "_symbols", found)
        return found

    @property
    def sort_key(self) -> SortKey:
        """Orders dimensions in the same way in every run."""
        found = self._sort_key
        if found is None:
            found = tuple((monomial_key(monomial), coefficient) for coefficient, monomial in self.terms)
            object.__setattr__(self, "_sort_key", found)
        return found

    def substitute(self, values: Mapping[str, DimLike]) -> Dim:
        """The expression with all symbols of `values` replaced at once; symbols that are not named stay."""
        from tir_dialect.dims.traverse import substitute

        return substitute(self, values)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value, with floor division and modulo as in Python.

        Raises KeyError for a symbol without a value, ZeroDivisionError, and ValueError for extents that do not
        broadcast.
        """
        from tir_dialect.dims.traverse import evaluate

        return evaluate(self, values)

    def __str__(self) -> str:
        found = self._text
        if found is None:
            from tir_dialect.dims.text import format_dim

            found = format_dim(self)
            object.__setattr__(self, "_text", found)
        return found

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __add__(self, other: Dim | int) -> Dim:
        if _is_foreign(other):
            return NotImplemented
        return add(self, as_dim(other))

    def __radd__(self, other: int) -> Dim:
        return add(as_dim(other), self)

    def __sub__(self, other: Dim | int) -> Dim:
        if _is_foreign(other):
            return NotImplemented
        return add(self, scale(as_dim(other), -1))

    def __rsub__(self, other: int) -> Dim:
        return add(as_dim(other), scale(self, -1))

    def __mul__(self, other: Dim | int) -> Dim:
        if _is_foreign(other):
            return NotImplemented
        return multiply(self, as_dim(other))

    def __rmul__(self, other: int) -> Dim:
        return multiply(as_dim(other), self)

    def __neg__(self) -> Dim:
        return scale(self, -1)

    def __floordiv__(self, other: Dim | int) -> Dim:
        if _is_foreign(other):
            return NotImplemented
        from tir_dialect.dims.division import floordiv

        return floordiv(self, as_dim(other))

    def __rfloordiv__(self, other: int) -> Dim:
        return as_dim(other) // self

    def __mod__(self, other: Dim | int) -> Dim:
        if _is_foreign(other):
            return NotImplemented
        from tir_dialect.dims.division import mod

        return mod(self, as_dim(other))

    def __rmod__(self, other: int) -> Dim:
        return as_dim(other) % self


def _is_foreign(operand: object) -> bool:
    # an operand that knows dimensions (an expression of te) answers itself
    return not isinstance(operand, Dim | int) and not hasattr(operand, "__index__")


_dims: WeakValueDictionary[tuple[Term, ...], Dim] = WeakValueDictionary()
_lock = Lock()


def intern_dim(terms: tuple[Term, ...]) -> Dim:
    """The one dimension with these terms, which must be in order, each monomial once, without coefficients 0.

    `DimSizeError` if they are too many or too large.
    """
    found = _dims.get(terms)
    if found is None:
        _check_size(terms)
        with _lock:
            found = _dims.get(terms)
            if found is None:
                found = object.__new__(Dim)
                for name, value in (("terms", terms), ("_sort_key", None), ("_symbols", None), ("_text", None)):
                    object.__setattr__(found, name, value)
                _dims[terms] = found
    return found


def _check_size(terms: tuple[Term, ...]) -> None:
    if len(terms) > MAX_TERMS:
        raise DimSizeError(f"dimension has more than {MAX_TERMS} terms")
    for coefficient, monomial in terms:
        if coefficient.bit_length() > MAX_BITS:
            raise DimSizeError(f"dimension has a number of more than {MAX_BITS} bits")
        if len(monomial) > 1 or (monomial and monomial[0][1] > 1):
            degree = sum(power for _, power in monomial)
            if degree > MAX_DEGREE:
                raise DimSizeError(f"dimension has a product of more than {MAX_DEGREE} factors")


def monomial_key(monomial: Monomial) -> SortKey:
    """Orders monomials: high degree first, then by atoms; the constant monomial comes last."""
    return -sum(power for _, power in monomial), tuple((atom.sort_key, -power) for atom, power in monomial)


def from_monomials(coefficients: Mapping[Monomial, int]) -> Dim:
    """The sum of `coefficients[m] * m`."""
    terms = [(coefficient, monomial) for monomial, coefficient in coefficients.items() if coefficient]
    if len(terms) > 1:
        terms.sort(key=lambda term: monomial_key(term[1]))
    return intern_dim(tuple(terms))


@lru_cache(maxsize=1024, typed=True)
def constant(value: int) -> Dim:
    """The dimension that is the integer `value`."""
    value = operator.index(value)
    return intern_dim(((value, ()),) if value else ())


def symbol(name: str) -> Dim:
    """The dimension that is the symbol `name`; ValueError where the name is not possible."""
    return from_atom(SymbolAtom.get(name))


def from_atom(atom: Atom) -> Dim:
    """The dimension that is one atom."""
    return intern_dim(((1, ((atom, 1),)),))


def from_term(coefficient: int, monomial: Monomial) -> Dim:
    """The dimension that is one term, as `Dim.terms` has them."""
    return intern_dim(((coefficient, monomial),) if coefficient else ())


def as_dim(value: Dim | int) -> Dim:
    """`value` as a dimension (for text there is `to_dim`)."""
    return value if isinstance(value, Dim) else constant(value)


@lru_cache(maxsize=8192)
def add(lhs: Dim, rhs: Dim) -> Dim:
    """The sum."""
    if not rhs.terms:
        return lhs
    if not lhs.terms:
        return rhs
    coefficients = {monomial: coefficient for coefficient, monomial in lhs.terms}
    for coefficient, monomial in rhs.terms:
        coefficients[monomial] = coefficients.get(monomial, 0) + coefficient
    return from_monomials(coefficients)


def scale(dim: Dim, factor: int) -> Dim:
    """The product with an integer."""
    if factor == 1:
        return dim
    return intern_dim(tuple((coefficient * factor, monomial) for coefficient, monomial in dim.terms) if factor else ())


@lru_cache(maxsize=8192)
def multiply(lhs: Dim, rhs: Dim) -> Dim:
    """The product, multiplied out; DimSizeError if it has too many terms."""
    if lhs.is_constant:
        return scale(rhs, lhs.constant_term)
    if rhs.is_constant:
        return scale(lhs, rhs.constant_term)
    if len(lhs.terms) * len(rhs.terms) > MAX_TERMS:
        raise DimSizeError(
            f"the product of {len(lhs.terms)} and {len(rhs.terms)} terms has too many terms, the limit is {MAX_TERMS}"
        )
    coefficients: dict[Monomial, int] = {}
    for left, left_monomial in lhs.terms:
        for right, right_monomial in rhs.terms:
            monomial = multiply_monomials(left_monomial, right_monomial)
            coefficients[monomial] = coefficients.get(monomial, 0) + left * right
    return from_monomials(coefficients)


def multiply_monomials(lhs: Monomial, rhs: Monomial) -> Monomial:
    """The product of two monomials."""
    if not lhs or not rhs:
        return lhs or rhs
    powers = dict(lhs)
    for atom, power in rhs:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda factor: factor[0].sort_key))


def total(dims: Iterable[Dim | int]) -> Dim:
    """The sum; 0 of nothing. Linear in the number of terms."""
    coefficients: dict[Monomial, int] = {}
    for dim in dims:
        for coefficient, monomial in as_dim(dim).terms:
            coefficients[monomial] = coefficients.get(monomial, 0) + coefficient
    return from_monomials(coefficients)


def product(dims: Iterable[Dim | int]) -> Dim:
    """The product; 1 of nothing."""
    result = constant(1)
    for dim in dims:
        result = multiply(result, as_dim(dim))
    return result
