"""Sizes: expressions of PyTorch (`torch.SymInt`, of SymPy) as dimensions, what is known about their symbols, and
numbers that depend on them as scalar tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from xdsl.dialects.builtin import f64

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.program import Refusal
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
    if kind in _ROUNDINGS:
        return rounded(_ROUNDINGS[kind], _quotient(expression.args[0]))
    make = _FUNCTIONS.get(kind)
    if make is None or (kind == "Mul" and any(arg.is_Rational and not arg.is_Integer for arg in expression.args)):
        raise Refusal(f"the size {expression} is no dimension, which is made of +, *, //, %, min and max")
    return make([of_expression(arg) for arg in expression.args])


# Numbers with a fraction, of which sizes are made by rounding


@dataclass(frozen=True)
class Quotient:
    """A number made of sizes: the quotient of two integers.

    PyTorch computes it in `f64`, where it comes out the same for sizes below 2 ** 32: factors are multiples of a power
    of 2 that is not small, and what is rounded is one quotient at most.
    """

    top: Dim
    bottom: Dim

    @property
    def is_exact(self) -> bool:
        """Whether the number itself is an `f64`."""
        divisor = self.bottom.constant_value
        return divisor is not None and divisor & (divisor - 1) == 0

    def plus(self, other: Quotient) -> Quotient:
        """The sum."""
        top = total([product([self.top, other.bottom]), product([other.top, self.bottom])])
        return self._with(other, top, product([self.bottom, other.bottom]))

    def times(self, other: Quotient) -> Quotient:
        """The product."""
        return self._with(other, product([self.top, other.top]), product([self.bottom, other.bottom]))

    def over(self, other: Quotient) -> Quotient:
        """The quotient."""
        if not other.is_exact:
            raise Refusal("a size made of quotients of quotients is no dimension")
        top, bottom = product([self.top, other.bottom]), product([self.bottom, other.top])
        if bottom.constant_value is not None and bottom.constant_value < 0:
            top, bottom = product([constant(-1), top]), product([constant(-1), bottom])
        return Quotient(top, bottom)

    def _with(self, other: Quotient, top: Dim, bottom: Dim) -> Quotient:
        if not self.is_exact and not other.is_exact:
            raise Refusal("a size made of several quotients is no dimension")
        return Quotient(top, bottom)


def number_as_quotient(number: float) -> Quotient:
    """A constant; `Refusal` if it is no multiple of a power of 2 that is not small, such as 0.1."""
    fraction = Fraction(number)
    if fraction.denominator > FINEST:
        raise Refusal(f"a size made of {number} is no dimension: only fractions such as 0.5 and 1.25 are exact")
    return Quotient(constant(fraction.numerator), constant(fraction.denominator))


FINEST = 1 << 16
"""The greatest denominator of constants."""


def rounded(how: str, number: Quotient) -> Dim:
    """A number that is not negative rounded `down`, `up`, or to the `nearest` integer, of two the even one."""
    top, bottom = number.top, number.bottom
    if how != "nearest":
        return ceildiv(top, bottom) if how == "up" else floordiv(top, bottom)
    doubled, divisor = total([product([constant(2), top]), bottom]), product([constant(2), bottom])
    nearest = floordiv(doubled, divisor)
    is_between = total([constant(1), product([constant(-1), minimum(constant(1), mod(doubled, divisor))])])
    return total([nearest, product([constant(-1), is_between, mod(nearest, constant(2))])])


def _quotient(expression: Any) -> Quotient:
    """A number of SymPy."""
    kind = type(expression).__name__
    if expression.is_number:
        return number_as_quotient(float(expression))
    if kind in ("IntTrueDiv", "FloatTrueDiv"):
        left, right = map(_quotient, expression.args)
        return left.over(right)
    if kind in ("Add", "Mul") and not expression.is_integer:
        return reduce(Quotient.plus if kind == "Add" else Quotient.times, map(_quotient, expression.args))
    return Quotient(of_expression(expression.args[0] if kind == "ToFloat" else expression), constant(1))


_ROUNDINGS = {"FloorToInt": "down", "TruncToInt": "down", "CeilToInt": "up", "RoundToInt": "nearest"}
"""By the name of the class in PyTorch; sizes are not negative, so that what is cut off is less than them."""


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


_COMPARISONS: Mapping[str, Callable[..., Expr]] = {
    "Equality": op.equal,
    "Unequality": op.not_equal,
    "StrictLessThan": op.less,
    "LessThan": op.less_equal,
    "StrictGreaterThan": op.greater,
    "GreaterThan": op.greater_equal,
}
_CONNECTIVES: Mapping[str, Callable[..., Expr]] = {
    "And": op.logical_and,
    "Or": op.logical_or,
}
_ARITHMETIC: Mapping[str, Callable[[list[Expr]], Expr]] = {
    "Add": lambda args: reduce(op.add, args),
    "Mul": lambda args: reduce(op.multiply, args),
    "Pow": lambda args: op.power(*args),
    "FloatPow": lambda args: op.power(*args),
    "IntTrueDiv": lambda args: op.divide(*args),
    "FloatTrueDiv": lambda args: op.divide(*args),
    "OpaqueUnaryFn_sqrt": lambda args: op.sqrt(*args),
    "OpaqueUnaryFn_log": lambda args: op.log(*args),
    "OpaqueUnaryFn_exp": lambda args: op.exp(*args),
    "ToFloat": lambda args: args[0],
}
"""Functions of floating-point numbers, by the name of the class in SymPy or PyTorch."""


@dataclass(frozen=True)
class Numbers:
    """Makes scalars of numbers, where a builder stands."""

    bb: BlockBuilder
    floats: Mapping[str, Expr]
    """The symbols that stand for floating-point numbers which are data."""

    def scalar(self, value: Any) -> Expr:
        """A symbolic number: an `i64`, an `f64` or an `i1`. `Refusal` if it is made of other functions."""
        expression = value.node.expr
        match type(value).__name__:
            case "SymBool":
                return self._truth(expression)
            case "SymInt":
                return self.size(of_expression(expression))
            case _:
                return self._float(expression)

    def size(self, dim: Dim) -> Expr:
        """A dimension as a scalar of `i64`."""
        return op.reshape(op.shape_to_tensor([dim]), [])

    def _truth(self, expression: Any) -> Expr:
        kind = type(expression).__name__
        if kind in _COMPARISONS:
            return _COMPARISONS[kind](*map(self._float, expression.args))
        if kind in _CONNECTIVES:
            return reduce(_CONNECTIVES[kind], map(self._truth, expression.args))
        if kind == "Not":
            return op.logical_not(self._truth(expression.args[0]))
        raise Refusal(f"the condition {expression} cannot be computed at run time")

    def _float(self, expression: Any) -> Expr:
        kind = type(expression).__name__
        if expression.is_Symbol and str(expression) in self.floats:
            return self.floats[str(expression)]
        if expression.is_Number:
            return self.bb.const(float(expression), f64)
        if expression.is_integer:
            return op.astype(self.size(of_expression(expression)), f64)
        if kind not in _ARITHMETIC:
            raise Refusal(f"the number {expression} cannot be computed at run time")
        return _ARITHMETIC[kind]([self._float(each) for each in expression.args])
