"""Dimensions as numbers of 64 bits, computed in the order of compiled code: what overflows there does so here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, mul, sub

from relax_dialect.interpreter.runtime_values import is_int
from tir_dialect.dims import Atom, Dim, FunctionAtom, Monomial


def evaluate(dim: Dim, symbols: Mapping[str, int]) -> int:
    """The value of a dimension; `ValueError` if it divides by zero or overflows, as in the virtual machine."""
    if (name := dim.as_symbol) is not None:
        return symbols[name]
    if (number := dim.constant_value) is not None:
        return number
    try:
        return _of_dim(dim, symbols)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None


def _of_dim(dim: Dim, symbols: Mapping[str, int]) -> int:
    positive = [_of_term(c, monomial, symbols) for c, monomial in dim.terms if c > 0]
    negative = [_of_term(-c, monomial, symbols) for c, monomial in dim.terms if c < 0]
    return _fold(sub, [_fold(add, positive), *negative])


def _of_term(coefficient: int, monomial: Monomial, symbols: Mapping[str, int]) -> int:
    return _fold(mul, [*(_of_atom(atom, symbols) for atom, power in monomial for _ in range(power)), coefficient])


def _of_atom(atom: Atom, symbols: Mapping[str, int]) -> int:
    if isinstance(atom, FunctionAtom):
        return _exact(atom.value_of([_of_dim(operand, symbols) for operand in atom.operands]))
    return symbols[str(atom)]


def _fold(function: Callable[[int, int], int], values: Sequence[int]) -> int:
    return reduce(lambda a, b: _exact(function(a, b)), values) if values else 0


def _exact(value: int) -> int:
    if not is_int(value):
        raise ValueError("a size does not fit into 64 bits")
    return value
