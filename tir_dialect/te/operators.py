"""Arithmetic, comparison, selection and conversion: the meaning of Python's operators on expressions.

Integer `//` and `%` round towards minus infinity, as in Python and NumPy; `truncdiv` and `truncmod` round towards zero,
as in C. Arithmetic on dimensions alone stays a dimension. Nothing is promoted: see `coerce`.
`repr` shows expressions in the notation of Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Literal, TypeAlias
from typing import cast as cast_to

from xdsl.dialects.builtin import IndexType, f32, i1, i32

from tir_dialect import dims, dtypes
from tir_dialect.dtypes import ElementType
from tir_dialect.te import nodes
from tir_dialect.te.coerce import (
    adopt,
    as_condition,
    as_expr,
    integer_range,
    is_bool,
    is_float,
    is_index,
    is_integer,
    is_unsigned,
    number_dtype,
    unify,
)
from tir_dialect.te.emit_scalar import DIM_FUNCTIONS, Signs
from tir_dialect.te.expr import INDEX, OPERATORS, DType, Expr, Operand, Scalar
from tir_dialect.te.nodes import free_variables, post_order

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


Predicate: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]

_LEFT_UNIT = {"add": 0, "multiply": 1}
_RIGHT_UNIT = {"add": 0, "multiply": 1, "subtract": 0, "floordiv": 1}


def refuse(what: str, expected: str, operand: Expr) -> TypeError:
    """The error for an operand of the wrong kind of dtype."""
    return TypeError(f"te.{what}: expected {expected}, got {operand.dtype}")


def _constant_dim(expr: Expr) -> int | None:
    return expr.dim.constant_value if isinstance(expr, nodes.Size) else None


def _index_arithmetic(name: str, a: Expr, b: Expr) -> Expr:
    if isinstance(a, nodes.Size) and isinstance(b, nodes.Size):
        return nodes.size(DIM_FUNCTIONS[name](a.dim, b.dim))
    if (right := _constant_dim(b)) is not None and right == _RIGHT_UNIT.get(name):
        return a
    if (left := _constant_dim(a)) is not None and left == _LEFT_UNIT.get(name):
        return b
    return nodes.apply(name, a.dtype, a, b)


def operands_of(name: str, lhs: Operand, rhs: Operand) -> tuple[Expr, Expr]:
    """Both sides in one dtype; two integers of Python are indices, as sizes are computed of them."""
    if all(isinstance(side, int) and number_dtype(side) == i32 for side in (lhs, rhs)):
        return adopt(cast_to("int", lhs), INDEX), adopt(cast_to("int", rhs), INDEX)
    a, b = unify(name, (lhs, rhs))
    return a, b


def _arithmetic(name: str, lhs: Operand, rhs: Operand) -> Expr:
    a, b = operands_of(name, lhs, rhs)
    if is_bool(a.dtype):
        raise refuse(name, "numbers", a)
    return _index_arithmetic(name, a, b) if is_index(a.dtype) else nodes.apply(name, a.dtype, a, b)


def add(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs + rhs`; integers wrap around."""
    return _arithmetic("add", lhs, rhs)


def subtract(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs - rhs`; integers wrap around."""
    return _arithmetic("subtract", lhs, rhs)


def multiply(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs * rhs`; integers wrap around."""
    return _arithmetic("multiply", lhs, rhs)


def divide(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs / rhs` of floats; TypeError for integers, whose quotient would need another dtype."""
    a, b = unify("divide", (lhs, rhs))
    if not is_float(a.dtype):
        raise refuse("divide", "floats (use // for integers)", a)
    return nodes.apply("divide", a.dtype, a, b)


def div(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs / rhs` as in C: the quotient of integers is rounded towards zero."""
    a, b = operands_of("div", lhs, rhs)
    return divide(a, b) if is_float(a.dtype) else truncdiv(a, b)


def floordiv(lhs: Operand, rhs: Operand) -> Expr:
    """The quotient rounded towards minus infinity"""
    return _arithmetic("floordiv", lhs, rhs)


def floormod(lhs: Operand, rhs: Operand) -> Expr:
    """The remainder of `floordiv`: it has the sign of `rhs`."""
    return _arithmetic("floormod", lhs, rhs)


def ceildiv(lhs: Operand, rhs: Operand) -> Expr:
    """The quotient of integers rounded towards plus infinity; `rhs` must be positive where they are indices."""
    a, b = operands_of("ceildiv", lhs, rhs)
    if is_float(a.dtype) or is_bool(a.dtype):
        raise refuse("ceildiv", "integers", a)
    if is_index(a.dtype):
        return floordiv(add(a, subtract(b, 1)), b)
    # a + b - 1 could leave the dtype
    rest = select(compare("ne", floormod(a, b), 0), adopt(1, a.dtype), adopt(0, a.dtype))
    return add(floordiv(a, b), rest)


def truncdiv(lhs: Operand, rhs: Operand) -> Expr:
    """The quotient of integers rounded towards zero."""
    a, b = operands_of("truncdiv", lhs, rhs)
    if is_index(a.dtype):
        return _index_quotient(a, b)
    if not is_integer(a.dtype):
        raise refuse("truncdiv", "integers", a)
    return nodes.apply("truncdiv", a.dtype, a, b)


def _index_quotient(a: Expr, b: Expr) -> Expr:
    quotient = floordiv(a, b)
    if _divides_unsigned(a, b):
        return quotient
    is_rounded = bitwise_and(compare("lt", quotient, 0), compare("ne", floormod(a, b), 0))
    return add(quotient, select(is_rounded, dims.constant(1), dims.constant(0)))


def _divides_unsigned(a: Expr, b: Expr) -> bool:
    zero = nodes.size(dims.constant(0))
    axes = (each for each in free_variables((a, b)) if each.lo is zero)
    return Signs(axes).divides_unsigned(a, b)


def truncmod(lhs: Operand, rhs: Operand) -> Expr:
    """The remainder of `truncdiv`, C's `%` and `fmod`: it has the sign of `lhs`."""
    a, b = operands_of("truncmod", lhs, rhs)
    if is_index(a.dtype):
        return floormod(a, b) if _divides_unsigned(a, b) else subtract(a, multiply(_index_quotient(a, b), b))
    if not (is_integer(a.dtype) or is_float(a.dtype)):
        raise refuse("truncmod", "floats or integers", a)
    return nodes.apply("truncmod", a.dtype, a, b)


def minimum(lhs: Operand, rhs: Operand) -> Expr:
    """The smaller operand; NaN if either is NaN, as `np.minimum`."""
    return _extremum("minimum", lhs, rhs)


def maximum(lhs: Operand, rhs: Operand) -> Expr:
    """The larger operand; NaN if either is NaN, as `np.maximum`."""
    return _extremum("maximum", lhs, rhs)


def _extremum(name: str, lhs: Operand, rhs: Operand) -> Expr:
    a, b = operands_of(name, lhs, rhs)
    if is_bool(a.dtype):
        return bitwise_and(a, b) if name == "minimum" else bitwise_or(a, b)
    return _arithmetic(name, a, b)


def power(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs` to the power `rhs`, both floats or both integers; an integer to a negative power rounds towards zero."""
    a, b = unify("power", (lhs, rhs))
    if is_bool(a.dtype) or is_index(a.dtype):
        raise refuse("power", "floats or integers", a)
    return nodes.apply("power", a.dtype, a, b)


def negative(operand: Operand) -> Expr:
    """`-operand`; unsigned integers wrap around."""
    (a,) = unify("negative", (operand,))
    return nodes.apply("negative", a.dtype, a) if is_float(a.dtype) else subtract(0, a)


def absolute(operand: Operand) -> Expr:
    """The absolute value; that of the smallest signed integer is itself."""
    (a,) = unify("absolute", (operand,))
    if is_bool(a.dtype) or is_unsigned(a.dtype):
        return a
    return maximum(a, subtract(0, a)) if is_index(a.dtype) else nodes.apply("absolute", a.dtype, a)


def compare(predicate: Predicate, lhs: Operand, rhs: Operand) -> Expr:
    """An `i1`: IEEE comparison of floats (only `ne` holds for NaN), signed or unsigned comparison of integers."""
    a, b = unify("compare", (lhs, rhs))
    return nodes.apply(predicate, i1, a, b)


def _bitwise(name: str, lhs: Operand, rhs: Operand) -> Expr:
    a, b = unify(name, (lhs, rhs))
    if not (is_bool(a.dtype) or is_integer(a.dtype)):
        raise refuse(name, "integers or truth values", a)
    return nodes.apply(name, a.dtype, a, b)


def bitwise_and(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs & rhs`; the conjunction of conditions."""
    return _bitwise("bitwise_and", lhs, rhs)


def bitwise_or(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs | rhs`; the disjunction of conditions."""
    return _bitwise("bitwise_or", lhs, rhs)


def bitwise_xor(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs ^ rhs`; the exclusive or of conditions."""
    return _bitwise("bitwise_xor", lhs, rhs)


def bitwise_not(operand: Operand) -> Expr:
    """`~operand`; the negation of a condition."""
    a = as_expr("bitwise_not", operand)
    if is_bool(a.dtype):
        return bitwise_xor(a, True)
    return bitwise_xor(a, integer_range(a.dtype)[1] if is_unsigned(a.dtype) else -1)


def left_shift(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs << rhs`; the amount must be at least 0 and less than the width."""
    return _shift("left_shift", lhs, rhs)


def right_shift(lhs: Operand, rhs: Operand) -> Expr:
    """`lhs >> rhs`: arithmetic for signed integers, logical for unsigned; same bounds on the amount."""
    return _shift("right_shift", lhs, rhs)


def _shift(name: str, lhs: Operand, rhs: Operand) -> Expr:
    a, b = unify(name, (lhs, rhs))
    if not is_integer(a.dtype):
        raise refuse(name, "integers", a)
    return nodes.apply(name, a.dtype, a, b)


def logical_and(*conditions: Operand) -> Expr:
    """Whether all conditions hold; true for none. All of them are evaluated."""
    terms = [as_condition("logical_and", condition) for condition in conditions] or [adopt(True, i1)]
    return reduce(bitwise_and, terms)


def logical_or(*conditions: Operand) -> Expr:
    """Whether some condition holds; false for none. All of them are evaluated."""
    terms = [as_condition("logical_or", condition) for condition in conditions] or [adopt(False, i1)]
    return reduce(bitwise_or, terms)


def logical_not(condition: Operand) -> Expr:
    """Whether the condition does not hold."""
    return bitwise_not(as_condition("logical_not", condition))


def select(condition: Operand, then: Operand, otherwise: Operand) -> Expr:
    """`then` if `condition` holds, else `otherwise`; both are evaluated, so the loads of both must be in bounds.

    Two numbers of Python have TVM's dtype, `i32`, `f32` or `i1`.
    """
    a, b = _sides("select", then, otherwise)
    return nodes.apply("select", a.dtype, as_condition("select", condition), a, b)


def if_then_else(condition: Operand, then: Operand, otherwise: Operand) -> Expr:
    """`then` if `condition` holds, else `otherwise`; only the chosen one is evaluated, so that it can guard a load.

    Two numbers of Python have TVM's dtype, `i32`, `f32` or `i1`.
    """
    a, b = _sides("if_then_else", then, otherwise)
    return nodes.conditional(as_condition("if_then_else", condition), a, b)


def _sides(what: str, then: Operand, otherwise: Operand) -> tuple[Expr, Expr]:
    kinds = [number_dtype(side) for side in (then, otherwise)]
    if None not in kinds:
        kind = f32 if f32 in kinds else i32 if i32 in kinds else i1
        return adopt(cast_to("Scalar", then), kind), adopt(cast_to("Scalar", otherwise), kind)
    a, b = unify(what, (then, otherwise))
    return a, b


DTypeLike: TypeAlias = "str | ElementType | IndexType"
"""A dtype by name (`"f32"`, `"float32"`, `"index"`) or as a type."""


def to_dtype(dtype: DTypeLike) -> DType:
    """The dtype with a name; ValueError for one that buffers cannot have."""
    if isinstance(dtype, IndexType) or dtype == "index":
        return INDEX
    return dtypes.parse_dtype(dtype) if isinstance(dtype, str) else dtypes.lookup(dtype).type


def const(value: Scalar, dtype: DTypeLike) -> Expr:
    """The number `value` of dtype `dtype`; a float without a fraction may be an integer. TypeError for text."""
    kind = to_dtype(dtype)
    if isinstance(value, str | bytes):
        raise TypeError(f"const: expected a number, got {value!r}")
    is_whole = isinstance(value, float) and value.is_integer() and not is_float(kind)
    return adopt(int(value) if is_whole else value, kind)


def cast(operand: Operand, dtype: DTypeLike) -> Expr:
    """`operand` converted to `dtype`.

    A float becomes an integer by dropping its fraction; outside of the range it is the end of the range, and NaN is 0.
    An integer that is too wide loses its upper bits, and anything is a true `i1` if it is not 0.
    """
    to = to_dtype(dtype)
    a = as_expr("cast", operand)
    if a.dtype == to:
        return a
    if not is_bool(to):
        return nodes.convert(a, to)
    # Not all small floats have a zero.
    small = not isinstance(a.dtype, IndexType) and dtypes.is_small_float(a.dtype)
    return compare("ne", nodes.convert(a, f32) if small else a, 0)


def reinterpret(operand: Operand, dtype: DTypeLike) -> Expr:
    """The bits of `operand` read as `dtype`, which must have the same width."""
    to = to_dtype(dtype)
    a = as_expr("reinterpret", operand)
    widths = [getattr(kind, "bitwidth", None) for kind in (a.dtype, to)]
    if None in widths or widths[0] != widths[1]:
        raise TypeError(f"te.reinterpret: expected dtypes of one width, got {a.dtype} and {to}")
    return nodes.apply("reinterpret", to, a)


def call_extern(dtype: DTypeLike, symbol: str, *args: Expr) -> Expr:
    """The result of the C function `symbol` of scalars, which must be pure: it may be called any number of times."""
    return nodes.call_extern(symbol, to_dtype(dtype), args)


def scalar(name: str, dtype: DTypeLike) -> Expr:
    """A scalar parameter of the function."""
    if not isinstance(cast_to("object", name), str):
        raise TypeError(f"te: expected the name of a scalar, got {name!r}")
    kind = to_dtype(dtype)
    if isinstance(kind, IndexType):
        raise TypeError(f'te: the scalar "{name}" cannot be an index, use te.var for a size or a dtype such as "i64"')
    return nodes.Param(name, kind)


OPERATORS.update(
    {
        function.__name__: function
        for function in (
            absolute,
            add,
            bitwise_and,
            bitwise_not,
            bitwise_or,
            bitwise_xor,
            cast,
            compare,
            divide,
            floordiv,
            floormod,
            left_shift,
            multiply,
            negative,
            power,
            right_shift,
            subtract,
            text,
        )
    }
)
