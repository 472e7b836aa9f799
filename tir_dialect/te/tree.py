"""Walks over expressions, which are graphs: each node is visited once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr


def post_order(
    roots: Iterable[Expr], children: Callable[[Expr], tuple[Expr, ...]] = lambda expr: expr.operands
) -> Iterator[Expr]:
    """Every expression under `roots`, operands first; `children` may stop the walk at a node. No recursion."""
    done: set[Expr] = set()
    stack = [(root, False) for root in reversed(tuple(roots))]
    while stack:
        expr, expanded = stack.pop()
        if expr in done:
            continue
        below = () if expanded else children(expr)
        if not below:
            done.add(expr)
            yield expr
            continue
        stack.append((expr, True))
        stack.extend((child, False) for child in reversed(below))


def rebuild(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    """`expr` with other operands of the same dtypes."""
    if all(a is b for a, b in zip(operands, expr.operands, strict=True)):
        return expr
    match expr:
        case nodes.Load():
            return nodes.load(expr.tensor, operands)
        case nodes.Apply():
            return nodes.apply(expr.function, expr.dtype, *operands)
        case nodes.CallExtern():
            return nodes.call_extern(expr.symbol, expr.dtype, operands)
        case nodes.Cast():
            return nodes.convert(operands[0], expr.dtype)
        case nodes.Conditional():
            return nodes.conditional(*operands)
        case nodes.Reduce():
            return nodes.reduce(expr.reducer, operands, expr.axes, expr.which, expr.given)
        case _:
            raise TypeError(f"te: a {type(expr).__name__} has no operands")


def substitute(roots: Iterable[Expr], replacements: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """The expressions `roots` with every occurrence of a key replaced; a key that is replaced is not looked into."""
    roots = tuple(roots)
    done: dict[Expr, Expr] = {}
    for expr in post_order(roots, lambda node: () if node in replacements else node.operands):
        replacement = replacements.get(expr)
        if replacement is None:
            replacement = rebuild(expr, tuple(done[operand] for operand in expr.operands))
        done[expr] = replacement
    return tuple(done[root] for root in roots)


def free_variables(roots: Iterable[Expr]) -> list[nodes.IterVar]:
    """The iteration variables that `roots` use and no reduction inside binds, in order of first use."""
    found: dict[nodes.IterVar, None] = {}
    _collect(roots, frozenset(), found)
    return list(found)


def _collect(roots: Iterable[Expr], bound: frozenset[nodes.IterVar], found: dict[nodes.IterVar, None]) -> None:
    for expr in post_order(roots, lambda node: () if isinstance(node, nodes.Reduce) else node.operands):
        if isinstance(expr, nodes.Reduce):
            _collect(expr.operands, bound | frozenset(expr.axes), found)
        elif isinstance(expr, nodes.IterVar) and expr not in bound:
            found.setdefault(expr)
