"""Minimum, maximum and broadcast in canonical form.

* All three are associative, commutative and idempotent: operands are flattened, sorted and without repetition.
* Of operands that differ by a constant only one stays: `min(n, n + 1) = n`.
* Absorption: `min(a, max(a, b)) = a`, `max(a, min(a, b)) = a`.
* `broadcast(1, a) = a`; `broadcast(a, b) = b` where `b` is never 1, such as a constant or `2 * n`, because `a` can
  then only be `1` or `b`. Extents of 0 follow the same rule, as in NumPy: `broadcast(1, 0) = 0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from tir_dialect.dims.division import coefficient_gcd, without_constant
from tir_dialect.dims.expr import FUNCTIONS, Dim, FunctionAtom, as_dim, constant, from_atom


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
