"""`T.if_then_else` in a dimension: what is added to one side is a product with a factor that is 0 or 1."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text import evaluator
from tir_dialect.dims import Dim, maximum, minimum, product

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.text.static import StaticReader

CHOICES = ("if_then_else", "Select")
"""The functions of `T` that give one of two sides."""


def _less(left: Dim, right: Dim) -> Dim:
    return minimum(maximum(right - left, 0), 1)


def _differ(left: Dim, right: Dim) -> Dim:
    return minimum(maximum(left - right, right - left), 1)


_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Dim, Dim], Dim]] = {
    ast.Lt: _less,
    ast.LtE: lambda left, right: 1 - _less(right, left),
    ast.Gt: lambda left, right: _less(right, left),
    ast.GtE: lambda left, right: 1 - _less(left, right),
    ast.Eq: lambda left, right: 1 - _differ(left, right),
    ast.NotEq: _differ,
}
"""1 where a comparison holds, else 0; what holds where another one does not is 1 less that."""


def choice(reader: StaticReader, node: ast.Call) -> Dim | int | None:
    """`T.if_then_else(n < 4, n, 4)`, of dimensions all; `None` if one is something else."""
    condition, then, otherwise = node.args
    holds = _holds(reader, condition)
    first, second = (evaluator.as_dim(reader.value(each)) for each in (then, otherwise))
    if holds is None or first is None or second is None:
        return None
    return evaluator.simplest(second + holds * (first - second))


def is_of_dimensions(reader: StaticReader, node: ast.Call) -> bool:
    """Whether all names of a choice are dimensions or numbers, and at least one a dimension."""
    if len(node.args) != 3 or node.keywords:
        return False
    operators = ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.Call | ast.Constant
    names: list[object] = []
    pending: list[ast.expr] = [*node.args]
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Name):
            names.append(reader.scope.find(each.id))
        elif isinstance(each, operators):
            pending += [part for part in ast.iter_child_nodes(each) if isinstance(part, ast.expr)]
        elif reader.aliases.resolve(each) is None:
            return False
    return any(isinstance(each, Dim) for each in names) and all(isinstance(each, Dim | int) for each in names)


def _holds(reader: StaticReader, node: ast.expr) -> Dim | None:
    """1 where a condition holds, else 0; `None` if it is none of comparisons of dimensions."""
    match node:
        case ast.Compare(ops=[kind]) if type(kind) in _COMPARISONS:
            left, right = (evaluator.as_dim(reader.value(each)) for each in (node.left, node.comparators[0]))
            return None if left is None or right is None else _COMPARISONS[type(kind)](left, right)
        case ast.BoolOp():
            return _connected(node.op, [_holds(reader, each) for each in node.values])
        case ast.UnaryOp(op=ast.Not()):
            return None if (holds := _holds(reader, node.operand)) is None else 1 - holds
        case _:
            return None


def _connected(operator: ast.boolop, parts: Sequence[Dim | None]) -> Dim | None:
    known = [each for each in parts if each is not None]
    if len(known) != len(parts):
        return None
    return product(known) if isinstance(operator, ast.And) else 1 - product(1 - each for each in known)
