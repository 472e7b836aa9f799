"""Vectors whose length the machine has, as vectors of a fixed length.

A program with `T.vscale()` is right for every number that it may be: a vector of `4 * T.vscale()` lanes has as many
times 4 lanes as a register has 128 bits. Vectors of the IR have fixed lengths, so that the number is put in the place
of the call before anything else is read: that of the target, or 1 if none is given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from relax_dialect.frontend.tvmscript.text.scope import Deferred

_CALL = "vscale"
_UNIT_BITS = 128
_CALLED = re.compile(r"[\w.]*\bvscale\(\)")
_DTYPE = re.compile(r"([a-z]+\d*(?:_\w+?)?)xvscalex(\d+)")


def vscale_of(vector_bits: int | None) -> int:
    """How often a register of a machine has 128 bits; 1 if its width is not known or smaller."""
    return 1 if vector_bits is None else max(1, vector_bits // _UNIT_BITS)


def with_fixed_lanes(body: Sequence[ast.stmt], vscale: int) -> list[ast.stmt]:
    """Statements with a number for `T.vscale()`, and with so many lanes in the names of dtypes."""
    return [_Fixed(vscale).visit(statement) for statement in body]


def fixed_value(value: object, vscale: int) -> object:
    """The same for what a name around a text stands for: the name of a dtype, or an expression."""
    match value:
        case str():
            return _fixed_text(value, vscale)
        case Deferred(expression=str() as text):
            return Deferred(_CALLED.sub(str(vscale), _fixed_text(text, vscale)))
        case _:
            return value


class _Fixed(ast.NodeTransformer):
    """Replaces calls of `T.vscale` and names of dtypes of scalable vectors."""

    def __init__(self, vscale: int):
        self._vscale = vscale

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr == _CALL and not node.args and not node.keywords:
            return ast.copy_location(ast.Constant(self._vscale), node)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return ast.copy_location(ast.Constant(_fixed_text(node.value, self._vscale)), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = _fixed_text(node.attr, self._vscale)
        return node


def _fixed_text(text: str, vscale: int) -> str:
    """`float32xvscalex4` as `float32x8` where `vscale` is 2."""
    return _DTYPE.sub(lambda found: f"{found[1]}x{int(found[2]) * vscale}", text)
