"""Splitting a sum into parts that share no symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tir_dialect.dims.expr import Dim, Term, intern_dim


def independent_parts(dim: Dim, related: Callable[[str], Iterable[str]]) -> list[Dim]:
    """Parts whose sum is `dim` without its constant, such that terms of different parts depend on different symbols.

    `related(name)` are the symbols whose values limit those of `name`. Linear in the number of terms.
    """
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        root = name
        while (above := parent.setdefault(root, root)) != root:
            root = above
        while parent[name] != root:
            parent[name], name = root, parent[name]
        return root

    terms = [(term, _one_symbol(term)) for term in dim.terms if term[1]]
    for (_, monomial), first in terms:
        for name in frozenset[str]().union(*(atom.symbols for atom, _ in monomial)):
            for other in (name, *related(name)):
                parent[find(other)] = find(first)
    groups: dict[str, list[Term]] = {}
    for term, first in terms:
        groups.setdefault(find(first), []).append(term)
    return [intern_dim(tuple(group)) for group in groups.values()]


def _one_symbol(term: Term) -> str:
    """Any symbol of a term, the same in every run; atoms without symbols depend on nothing but themselves."""
    names = frozenset[str]().union(*(atom.symbols for atom, _ in term[1]))
    return min(names, default="")
