"""Expressions as text, in the notation of Python: what `repr` shows."""

from __future__ import annotations

from collections.abc import Iterable

from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr
from tir_dialect.te.tree import post_order

MAX_LENGTH = 400
"""Longer operands are printed as `...`: expressions are graphs, whose text may be exponentially long."""

_ATOM = 100

_INFIX = {
    "bitwise_or": ("|", 2),
    "bitwise_xor": ("^", 3),
    "bitwise_and": ("&", 4),
    "left_shift": ("<<", 5),
    "right_shift": (">>", 5),
    "add": ("+", 6),
    "subtract": ("-", 6),
    "multiply": ("*", 7),
    "divide": ("/", 7),
    "floordiv": ("//", 7),
    "floormod": ("%", 7),
    "eq": ("==", 1),
    "ne": ("!=", 1),
    "lt": ("<", 1),
    "le": ("<=", 1),
    "gt": (">", 1),
    "ge": (">=", 1),
}
"""Operator and precedence of the functions that Python has an operator for."""

_COMPARISON = 1
"""The precedence of comparisons, which Python would chain."""


def text(expr: Expr) -> str:
    """`A[i, r] * B[r, j] + 1.0`: the expression as Python writes it, without the dtypes of constants.

    Functions have their names in `te`; a reduction is `sum(A[i, r], axis=[r])`. Linear in the number of nodes.
    """
    writer = _Writer()
    for each in post_order((expr,)):
        writer.add(each)
    return writer.texts[expr][0]


class _Writer:
    """The text of each node, with the precedence of its outermost operator."""

    def __init__(self) -> None:
        self.texts: dict[Expr, tuple[str, int]] = {}

    def add(self, expr: Expr) -> None:
        """Writes a node whose operands have been written."""
        self.texts[expr] = self._written(expr)

    def _written(self, expr: Expr) -> tuple[str, int]:
        match expr:
            case nodes.Var():
                return expr.name, _ATOM
            case nodes.Const():
                return str(expr.value), _ATOM
            case nodes.Size():
                dim = str(expr.dim)
                return dim, 0 if " " in dim else _ATOM
            case nodes.Apply() if expr.function in _INFIX:
                symbol, precedence = _INFIX[expr.function]
                lhs, rhs = expr.operands
                chained = precedence == _COMPARISON
                left = self._operand(lhs, precedence + chained)
                return f"{left} {symbol} {self._operand(rhs, precedence + 1)}", precedence
            case nodes.Reduce():
                return self._reduction(expr), _ATOM
            case _:
                return self._call(expr), _ATOM

    def _operand(self, expr: Expr, context: int = 0) -> str:
        """The text of an operand, in parentheses where the `context` binds more tightly."""
        written, precedence = self.texts[expr]
        if len(written) > MAX_LENGTH:
            return "..."
        return f"({written})" if precedence < context else written

    def _list(self, exprs: Iterable[Expr]) -> str:
        return ", ".join(self._operand(expr) for expr in exprs)

    def _call(self, expr: Expr) -> str:
        operands = self._list(expr.operands)
        match expr:
            case nodes.Load():
                return f"{expr.tensor.name}[{operands or '()'}]"
            case nodes.Slice():
                return f"{expr.tensor.name}[{', '.join(map(str, expr.indices))}]"
            case nodes.Apply():
                return f"{expr.function}({operands})"
            case nodes.CallExtern():
                return f"call_extern({', '.join(filter(None, (str(expr.dtype), expr.symbol, operands)))})"
            case nodes.Cast():
                return f"cast({operands}, {expr.dtype})"
            case nodes.Conditional():
                return f"if_then_else({operands})"
            case _:
                return f"{type(expr).__name__}({operands})"

    def _reduction(self, expr: nodes.Reduce) -> str:
        axes = ", ".join(axis.name for axis in expr.axes)
        init = f", init=[{self._list(expr.starts)}]" if expr.given else ""
        sources = self._list(expr.sources)
        if len(expr.sources) == 1:
            return f"{expr.reducer.name}({sources}, axis=[{axes}]{init})"
        return f"{expr.reducer.name}(({sources}), axis=[{axes}]{init})[{expr.which}]"
