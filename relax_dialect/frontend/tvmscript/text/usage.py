"""Which names statements bind and use, as far as the text alone says it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def name_counts(statements: Sequence[ast.stmt]) -> Counter[str]:
    """How often each name occurs, also in strings, where dimensions are written."""
    found: Counter[str] = Counter()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(_IDENTIFIER.findall(node.value))
    return found


def bound_names(statements: Sequence[ast.stmt]) -> list[str]:
    """The names that are bound when the statements have been run, the last one last."""
    found: dict[str, None] = {}
    for name in _bindings(statements):
        found.pop(name, None)
        found[name] = None
    return list(found)


def _bindings(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.Assign():
                for target in statement.targets:
                    yield from _targets(target)
            case ast.AnnAssign() | ast.AugAssign():
                yield from _targets(statement.target)
            case ast.With():
                yield from _outputs(statement)
            case ast.If():
                others = bound_names(statement.orelse)
                yield from (name for name in bound_names(statement.body) if name in others)
            case ast.FunctionDef():
                yield statement.name
            case _:
                pass


def _targets(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _outputs(statement: ast.With) -> Iterator[str]:
    """The outputs of a dataflow region."""
    last = statement.body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        yield from (each.id for each in last.value.args if isinstance(each, ast.Name))


def returns(node: ast.If) -> bool:
    """Whether a branch of the `if` ends the function."""
    return any(
        isinstance(last, ast.Return) or (isinstance(last, ast.If) and returns(last))
        for last in (arm[-1] for arm in (node.body, node.orelse) if arm)
    )


def returned_behind(region: ast.With) -> tuple[ast.With, ast.Return] | None:
    """A dataflow region that ends in `return x`, as one that ends in `R.output(x)`, and the return; else `None`."""
    last, opened = region.body[-1], region.items[0].context_expr
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    if not isinstance(opened, ast.Call) or not isinstance(opened.func, ast.Attribute):
        return None
    name = last.value.id if isinstance(last.value, ast.Name) else "returned"
    bound = [] if isinstance(last.value, ast.Name) else [ast.Assign([ast.Name(name, ast.Store())], last.value)]
    output = ast.Call(ast.Attribute(opened.func.value, "output", ast.Load()), [ast.Name(name, ast.Load())], [])
    body = [*region.body[:-1], *bound, ast.Expr(output)]
    for made in (*bound, body[-1]):
        for each in ast.walk(made):
            if not hasattr(each, "lineno"):
                ast.copy_location(each, last)
    behind = ast.Return(ast.copy_location(ast.Name(name, ast.Load()), last))
    return ast.copy_location(ast.With(region.items, body), region), ast.copy_location(behind, last)
