"""The canonical form of a dimension: a polynomial with integer coefficients over atoms.

Dimensions and atoms are hash-consed: two that are equal in canonical form are one object, so `is`, `==` and
dictionary look-ups compare pointers. The tables are weak; an expression that nobody uses is freed.

What canonical means. Polynomial identities are decided completely. `floordiv`, `mod`, `min`, `max` and `broadcast`
are reduced by the rules of `division.py` and `lattice.py`, each valid for all integers of either sign; the rest is
for the `Prover`, which knows bounds. These two files add their functions to `FUNCTIONS` when the package is imported.
An expression that divides by zero, or broadcasts extents that differ, has no value. Canonicalisation never takes a
value away and never changes one, but it may drop an addend that has none: `0 * floordiv(n, m)` is `0`.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from threading import Lock
from typing import ClassVar, Self, TypeAlias
from weakref import WeakValueDictionary

from tir_dialect.dims.text import MAX_NESTING, Parser, StringSource, TokenSource, is_symbol_name

SortKey: TypeAlias = "tuple[object, ...]"

MAX_TERMS = 1 << 12
"""Terms of an expression, and products of terms that are computed for one product of expressions."""

MAX_DEGREE = 128
"""Factors of a term: twice as many as tensors have axes."""

MAX_BITS = 1024
"""Bits of a coefficient: products of a few numbers of 64 bits, which the prover makes, are less."""

MAX_SIZE = 1 << 14
"""Symbols, numbers and functions in the text of an expression."""

FUNCTIONS: dict[str, Callable[..., Dim]] = {}
"""The functions by their names in text; each gives the canonical form, for operands that are dimensions."""

_atoms: WeakValueDictionary[tuple[type[Atom], object], Atom] = WeakValueDictionary()
_dims: WeakValueDictionary[tuple[Term, ...], Dim] = WeakValueDictionary()
_lock = Lock()


class DimSizeError(ValueError):
    """An expression that is too large to compute with."""


class Atom(ABC):
    """An indivisible factor of a monomial: a symbol, or a function of other dimensions.

    `operands` are the arguments of the function (none for a symbol), `symbols` the names of all symbols inside.
    `sort_key` orders atoms in the same way in every run. `depth` is 0 for a symbol, and the nesting of a function;
    `size` is how many symbols, numbers and functions its text has.
    """

    __slots__ = ("__weakref__", "depth", "operands", "size", "sort_key", "symbols")

    rank: ClassVar[int]
    """Position of the class in the order of atoms."""

    operands: tuple[Dim, ...]
    symbols: frozenset[str]
    sort_key: SortKey
    depth: int
    size: int

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an atom is immutable: cannot set {name}")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @classmethod
    def _intern(cls, payload: object, fields: Sequence[tuple[str, object]]) -> Self:
        found = _atoms.get((cls, payload))
        if found is None:
            with _lock:
                found = _atoms.get((cls, payload))
                if found is None:
                    found = object.__new__(cls)
                    for name, value in fields:
                        object.__setattr__(found, name, value)
                    _atoms[cls, payload] = found
        assert isinstance(found, cls)  # the table is keyed by class
        return found


class SymbolAtom(Atom):
    """A named integer, by default at least 0."""

    __slots__ = ()

    rank = 0

    @classmethod
    def get(cls, name: str) -> Self:
        """The symbol `name`; ValueError where the name is not possible."""
        found = _atoms.get((cls, name))
        if isinstance(found, cls):
            return found
        if not is_symbol_name(name):
            raise ValueError(f"'{name}' cannot name a symbol: expected letters, digits, '_', '$' and '.'")
        symbols = frozenset((name,))
        fields = (("operands", ()), ("symbols", symbols), ("sort_key", (cls.rank, name)), ("depth", 0), ("size", 1))
        return cls._intern(name, fields)

    @property
    def name(self) -> str:
        """The name, unique within a function."""
        return next(iter(self.symbols))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"SymbolAtom({self.name!r})"

    def __reduce__(self) -> tuple[Callable[[str], Self], tuple[str]]:
        return type(self).get, (self.name,)


class FunctionAtom(Atom):
    """A function of dimensions, in canonical form: no rule of the canonical form applies to it.

    `FUNCTIONS[spelling]` makes the canonical form.
    """

    __slots__ = ()

    spelling: ClassVar[str]
    """The name of the function in text."""

    @classmethod
    def get(cls, operands: tuple[Dim, ...]) -> Self:
        """The atom over `operands`, unsimplified; ValueError where functions are nested too deeply."""
        found = _atoms.get((cls, operands))
        if isinstance(found, cls):
            return found
        inner = [atom for operand in operands for _, monomial in operand.terms for atom, _ in monomial]
        depth = 1 + max((atom.depth for atom in inner), default=0)
        if depth > MAX_NESTING:
            raise DimSizeError(f"dimension is nested deeper than {MAX_NESTING} levels")
        size = 1 + sum(
            1 + sum(a.size * power for a, power in monomial) for operand in operands for _, monomial in operand.terms
        )
        if size > MAX_SIZE:
            raise DimSizeError(f"dimension has more than {MAX_SIZE} symbols, numbers and functions")
        symbols = frozenset[str]().union(*(operand.symbols for operand in operands))
        key = (cls.rank, *(operand.sort_key for operand in operands))
        fields = (("operands", operands), ("symbols", symbols), ("sort_key", key), ("depth", depth), ("size", size))
        return cls._intern(operands, fields)

    @abstractmethod
    def value_of(self, operands: Sequence[int]) -> int:
        """The value of the function for these values of the operands."""

    def __str__(self) -> str:
        return f"{self.spelling}({', '.join(map(str, self.operands))})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self.operands))})"

    def __reduce__(self) -> tuple[Callable[[tuple[Dim, ...]], Self], tuple[tuple[Dim, ...]]]:
        return type(self).get, (self.operands,)


Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
"""A product of atoms with their powers (at least 1), sorted by atom; the empty product is 1."""

Term: TypeAlias = tuple[int, Monomial]
"""A coefficient, which is not 0, and its monomial."""


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

        def of_atom(atom: Atom, operands: Sequence[Dim]) -> Dim:
            if isinstance(atom, FunctionAtom):
                return FUNCTIONS[atom.spelling](*operands)
            name = str(atom)
            return to_dim(values[name]) if name in values else from_atom(atom)

        return self if self.symbols.isdisjoint(values) else rewrite(self, of_atom)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value, with floor division and modulo as in Python.

        Raises KeyError for a symbol without a value, ZeroDivisionError, and ValueError for extents that do not
        broadcast.
        """
        if (name := self.as_symbol) is not None:
            return values[name]
        if (number := self.constant_value) is not None:
            return number
        known: dict[Atom, int] = {}

        def of_atom(atom: Atom) -> int:
            if not isinstance(atom, FunctionAtom):
                return values[str(atom)]
            found = known.get(atom)
            if found is None:
                found = known[atom] = atom.value_of([of_dim(operand) for operand in atom.operands])
            return found

        def of_dim(part: Dim) -> int:
            return sum(c * prod(of_atom(atom) ** power for atom, power in monomial) for c, monomial in part.terms)

        return of_dim(self)

    def __str__(self) -> str:
        found = self._text
        if found is None:
            # The text of `dim`, which parses back to it: positive terms first, high degrees before low ones.
            if not self.terms:
                found = "0"
            else:
                ordered = sorted(self.terms, key=lambda term: term[0] < 0)
                pieces = [_format_term(ordered[0])]
                for coefficient, monomial in ordered[1:]:
                    sign = "-" if coefficient < 0 else "+"
                    pieces.append(f"{sign} {_format_term((abs(coefficient), monomial))}")
                found = " ".join(pieces)
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
        return FUNCTIONS["floordiv"](self, as_dim(other))

    def __rfloordiv__(self, other: int) -> Dim:
        return as_dim(other) // self

    def __mod__(self, other: Dim | int) -> Dim:
        if _is_foreign(other):
            return NotImplemented
        return FUNCTIONS["mod"](self, as_dim(other))

    def __rmod__(self, other: int) -> Dim:
        return as_dim(other) % self


DimLike: TypeAlias = Dim | int | str
"""A dimension, an integer, or text: the name of a symbol or an expression."""


def _is_foreign(operand: object) -> bool:
    # an operand that knows dimensions (an expression of te) answers itself
    return not isinstance(operand, Dim | int) and not hasattr(operand, "__index__")


def _format_term(term: Term) -> str:
    coefficient, monomial = term
    if not monomial:
        return str(coefficient)
    powers: list[str] = []
    for atom, power in monomial:
        powers.extend([str(atom)] * power)
    factors = " * ".join(powers)
    if coefficient == 1:
        return factors
    return f"-{factors}" if coefficient == -1 else f"{coefficient} * {factors}"


def rewrite(dim: Dim, of_atom: Callable[[Atom, Sequence[Dim]], Dim]) -> Dim:
    """The expression built anew, bottom up: `of_atom` gets every distinct atom and its new operands."""
    known: dict[Atom, Dim] = {}

    def visit(part: Dim) -> Dim:
        results: list[Dim] = []
        for coefficient, monomial in part.terms:
            result = constant(coefficient)
            for atom, power in monomial:
                if atom not in known:
                    known[atom] = of_atom(atom, [visit(operand) for operand in atom.operands])
                for _ in range(power):
                    result = multiply(result, known[atom])
            results.append(result)
        return results[0] if len(results) == 1 else total(results)

    return visit(dim)


def intern_dim(terms: tuple[Term, ...]) -> Dim:
    """The one dimension with these terms, which must be in order, each monomial once, without coefficients 0.

    `DimSizeError` if they are too many or too large.
    """
    found = _dims.get(terms)
    if found is None:
        if len(terms) > MAX_TERMS:
            raise DimSizeError(f"dimension has more than {MAX_TERMS} terms")
        for coefficient, monomial in terms:
            if coefficient.bit_length() > MAX_BITS:
                raise DimSizeError(f"dimension has a number of more than {MAX_BITS} bits")
            if len(monomial) > 1 or (monomial and monomial[0][1] > 1):
                degree = sum(power for _, power in monomial)
                if degree > MAX_DEGREE:
                    raise DimSizeError(f"dimension has a product of more than {MAX_DEGREE} factors")
        with _lock:
            found = _dims.get(terms)
            if found is None:
                found = object.__new__(Dim)
                for name, value in (("terms", terms), ("_sort_key", None), ("_symbols", None), ("_text", None)):
                    object.__setattr__(found, name, value)
                _dims[terms] = found
    return found


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


class _Builder:
    def constant(self, value: int) -> Dim:
        return constant(value)

    def symbol(self, name: str) -> Dim:
        return symbol(name)

    def apply(self, function: str, operands: Sequence[Dim]) -> Dim:
        match function:
            case "+":
                return total(operands)
            case "-":
                return -operands[0]
            case "*":
                return multiply(operands[0], operands[1])
            case _:
                return FUNCTIONS[function](*operands)


def parse_tokens(source: TokenSource) -> Dim:
    """Parses one dimension and stops at the first token that does not continue it."""
    return Parser(source, _Builder()).sum()


@lru_cache(maxsize=1024)
def parse_dim(text: str) -> Dim:
    """The dimension that `text` is; DimSyntaxError (a ValueError) where it is none."""
    source = StringSource(text)
    result = parse_tokens(source)
    source.expect_end()
    return result


def to_dim(value: DimLike) -> Dim:
    """`value` as a dimension."""
    if isinstance(value, Dim):
        return value
    return parse_dim(value) if isinstance(value, str) else constant(value)
