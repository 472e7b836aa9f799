"""Sizes: expressions of PyTorch (`torch.SymInt`, of SymPy) as dimensions, and what is known of their symbols."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any

from relax_dialect.frontend.torch.errors import Refusal
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum, mod, product, symbol, total

LARGEST = 1 << 62
"""Bounds from here on say nothing: PyTorch writes them for what has no bound."""

SPECIALISED = 2
"""PyTorch traces sizes of 0 and 1 as constants, so symbolic ones begin here."""

DATA = ("u", "zuf")
"""How names of symbols begin that stand for data. Their bounds are checked by the program itself."""


def dim_of(value: Any) -> Dim:
    """A size, a number or a `torch.SymInt`, as a dimension; `Refusal` if it cannot be one."""
    return constant(int(value)) if isinstance(value, int) else of_expression(value.node.expr)


def dims_of(values: Sequence[Any]) -> list[Dim]:
    """Sizes as dimensions."""
    return [dim_of(value) for value in values]


def of_expression(expression: Any) -> Dim:
    """An integer expression of SymPy as a dimension."""
    if expression.is_Integer:
        return constant(int(expression))
    if expression.is_Symbol:
        return symbol(str(expression))
    kind = type(expression).__name__
    if kind in ("FloorToInt", "TruncToInt", "CeilToInt") and type(expression.args[0]).__name__ == "IntTrueDiv":
        left, right = map(of_expression, expression.args[0].args)
        return ceildiv(left, right) if kind == "CeilToInt" else floordiv(left, right)
    make = _FUNCTIONS.get(kind)
    if make is None or (kind == "Mul" and any(arg.is_Rational and not arg.is_Integer for arg in expression.args)):
        raise Refusal(f"the size {expression} is no dimension, which is made of +, *, //, %, min and max")
    return make([of_expression(arg) for arg in expression.args])


def _power(args: Sequence[Dim]) -> Dim:
    base, exponent = args
    if exponent.constant_value is None or exponent.constant_value < 0:
        raise Refusal(f"the size {base} ** {exponent} is no dimension")
    return product([base] * exponent.constant_value)


_FUNCTIONS: Mapping[str, Callable[[Sequence[Dim]], Dim]] = {
    "Add": total,
    "Mul": product,
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": lambda args: floordiv(*args),
    "CleanDiv": lambda args: floordiv(*args),
    "CeilDiv": lambda args: ceildiv(*args),
    "Mod": lambda args: mod(*args),
    "PythonMod": lambda args: mod(*args),
    "ModularIndexing": lambda args: mod(floordiv(args[0], args[1]), args[2]),
    "Max": lambda args: reduce(maximum, args),
    "Min": lambda args: reduce(minimum, args),
    "Identity": lambda args: args[0],
}
"""By the name of the class in SymPy or PyTorch."""


def bounds_of(
    ranges: Mapping[Any, Any], squeezed: Collection[str] = (), counted: Collection[str] = ()
) -> dict[str, tuple[int, int | None]]:
    """The bounds of symbols from `ExportedProgram.range_constraints`.

    Tracing takes sizes of inputs to be at least 2, which says nothing of the program: PyTorch, too, runs it with 0 and
    1. So are sizes that are `counted` by an operator of a library. But a dimension that is `squeezed` has to be another
    than 1, as the rank of the result depends on it.
    """
    found: dict[str, tuple[int, int | None]] = {}
    for name, interval in ranges.items():
        lower, upper = (_finite(end) for end in (interval.lower, interval.upper))
        least = max(lower or 0, 0)
        if str(name) in squeezed:
            least = max(least, SPECIALISED)
        elif least == SPECIALISED and (str(name) in counted or not str(name).startswith(DATA)):
            least = 0
        found[str(name)] = (least, upper)
    return found


def symbols_in(sizes: Sequence[Any]) -> set[str]:
    """The symbols in sizes."""
    symbolic = [each.node.expr for each in sizes if not isinstance(each, int)]
    return {str(symbol) for expression in symbolic for symbol in expression.free_symbols}


def _finite(end: Any) -> int | None:
    """An end of an interval, or `None` if it is infinite."""
    return int(end) if end.is_Integer and abs(int(end)) < LARGEST else None
