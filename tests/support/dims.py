"""Random dimensions as syntax trees, with a reference meaning that shares no code with the implementation.

A tree is an integer, the name of a symbol, or a tuple of an operator and its arguments.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TypeAlias

from hypothesis import strategies as st

from tir_dialect.dims import Dim, broadcast, ceildiv, constant, floordiv, maximum, minimum, mod, symbol

Tree: TypeAlias = "int | str | tuple[str, Tree, Tree]"

SYMBOLS = ("k", "m", "n")
NO_VALUE = (ZeroDivisionError, ValueError)


def _reference_broadcast(lhs: int, rhs: int) -> int:
    if lhs != rhs and 1 not in (lhs, rhs):
        raise ValueError("extents differ")
    return rhs if lhs == 1 else lhs


REFERENCE: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "ceildiv": lambda a, b: -((-a) // b),
    "min": min,
    "max": max,
    "broadcast": _reference_broadcast,
}

BUILD: Mapping[str, Callable[[Dim, Dim], Dim]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": floordiv,
    "%": mod,
    "ceildiv": ceildiv,
    "min": minimum,
    "max": maximum,
    "broadcast": broadcast,
}


def trees(operators: tuple[str, ...] = tuple(REFERENCE), size: int = 8) -> st.SearchStrategy[Tree]:
    """Trees of at most `size` leaves; divisors are constants more often than not."""
    leaves = st.sampled_from(SYMBOLS) | st.integers(-6, 8)
    divisions = [op for op in operators if op in ("//", "%", "ceildiv")]

    def extend(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        general = st.tuples(st.sampled_from(operators), inner, inner)
        if not divisions:
            return general
        divisors = st.sampled_from((-4, -3, -2, 2, 3, 4, 6, 8, 12))
        return general | st.tuples(st.sampled_from(divisions), inner, divisors)

    return st.recursive(leaves, extend, max_leaves=size)


def build(tree: Tree) -> Dim:
    """The dimension that a tree is; ZeroDivisionError or ValueError where a part of it never has a value."""
    if isinstance(tree, tuple):
        op, lhs, rhs = tree
        return BUILD[op](build(lhs), build(rhs))
    return constant(tree) if isinstance(tree, int) else symbol(tree)


def value(tree: Tree, env: Mapping[str, int]) -> int | None:
    """The value of a tree, or None where it has none."""
    try:
        return _value(tree, env)
    except NO_VALUE:
        return None


def _value(tree: Tree, env: Mapping[str, int]) -> int:
    if isinstance(tree, tuple):
        op, lhs, rhs = tree
        return REFERENCE[op](_value(lhs, env), _value(rhs, env))
    return tree if isinstance(tree, int) else env[tree]


def environments(low: int, high: int, names: tuple[str, ...] = SYMBOLS) -> Iterator[dict[str, int]]:
    """All values of the symbols in `[low, high]`."""
    for values in product(range(low, high + 1), repeat=len(names)):
        yield dict(zip(names, values, strict=True))
