"""The values that a polynomial takes modulo an integer, by enumeration."""

from __future__ import annotations

from itertools import product
from math import prod

from tir_dialect.dims.atoms import Atom
from tir_dialect.dims.expr import Dim

LIMIT = 2048
"""Most combinations of residues that are looked at."""


def residues(dim: Dim, divisor: int) -> set[int] | None:
    """A set that contains `dim % divisor` for all values of the atoms; None where there are too many to look at.

    Atoms count as independent and free, so every residue of a polynomial in symbols is attained.
    """
    modulus = abs(divisor)
    atoms: list[Atom] = sorted({a for _, monomial in dim.terms for a, _ in monomial}, key=lambda a: a.sort_key)
    if modulus ** len(atoms) > LIMIT:
        return None
    found: set[int] = set()
    for values in product(range(modulus), repeat=len(atoms)):
        env = dict(zip(atoms, values, strict=True))
        found.add(sum(c * prod(env[a] ** power for a, power in monomial) for c, monomial in dim.terms) % modulus)
        if len(found) == modulus:
            break
    return found
