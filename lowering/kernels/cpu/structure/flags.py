"""Strides that are 0 or nonzero depending on the call: those of operands that may have to be broadcast."""

from __future__ import annotations

from functools import lru_cache

from tir_dialect.dims import Bounds, Dim, MinAtom, from_atom
from tir_dialect.dims.bounds import Ranges


@lru_cache(maxsize=4096)
def is_flag(dim: Dim) -> bool:
    """Whether a dimension is 0 or 1, depending on the call."""
    return isinstance(dim.as_atom, MinAtom) and Ranges(Bounds()).of(dim) == (0, 1)


def has_flag(dim: Dim) -> bool:
    """Whether a flag is among the factors of a dimension."""
    return any(is_flag(from_atom(atom)) for _, monomial in dim.terms for atom, _ in monomial)
