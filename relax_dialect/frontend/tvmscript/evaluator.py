"""Arithmetic on what is known from the text alone: numbers, dimensions, tuples, strings and arrays.

This is the only thing that computes while a text is read. It knows Python's arithmetic, and the functions that are
listed here, which have no effects.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from tir_dialect import dims
from tir_dialect.dims import Dim, DimSizeError, constant, maximum, minimum


class StaticError(ValueError):
    """Arithmetic that has no result; the caller adds the position."""


Number: TypeAlias = bool | int | float

LIMIT = 1 << 64
"""No integer of a program is as large as this."""

NUMBER_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
}

_INTEGER_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}


def _shift(value: Dim, bits: Dim) -> int:
    """The power of two that a shift by a number of bits means."""
    known = bits.constant_value
    if known is None or not 0 <= known < 64:
        raise StaticError(f"expected dimensions to be shifted by 0 to 63 bits, got {bits}")
    return 1 << known


def _shift_left(left: Dim, right: Dim) -> Dim:
    return left * _shift(left, right)


def _shift_right(left: Dim, right: Dim) -> Dim:
    return dims.floordiv(left, constant(_shift(left, right)))


def _lowest_bits(left: Dim, right: Dim) -> Dim:
    """`n & 7`, which is what is left of `n` by 8."""
    mask = right.constant_value
    if mask is None or mask < 0 or mask & (mask + 1):
        raise StaticError(f"expected the lowest bits of a dimension, such as n & 7, got {left} & {right}")
    return dims.mod(left, constant(mask + 1))


_DIM_OPERATORS: Mapping[type[ast.operator], Callable[[Dim, Dim], Dim]] = {
    ast.Add: Dim.__add__,
    ast.Sub: Dim.__sub__,
    ast.Mult: Dim.__mul__,
    ast.FloorDiv: dims.floordiv,
    ast.Mod: dims.mod,
    ast.LShift: _shift_left,
    ast.RShift: _shift_right,
    ast.BitAnd: _lowest_bits,
}

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

DIM_FUNCTIONS: Mapping[str, Callable[[Dim, Dim], Dim]] = {
    "min": dims.minimum,
    "max": dims.maximum,
    "floordiv": dims.floordiv,
    "floormod": dims.mod,
    "ceildiv": dims.ceildiv,
    "indexdiv": dims.floordiv,
    "indexmod": dims.mod,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "bitwise_and": _lowest_bits,
    "truncdiv": dims.floordiv,
    "truncmod": dims.mod,
    "Min": dims.minimum,
    "Max": dims.maximum,
    "FloorDiv": dims.floordiv,
    "FloorMod": dims.mod,
    "Add": Dim.__add__,
    "Sub": Dim.__sub__,
    "Mul": Dim.__mul__,
}
"""Functions of `T` on dimensions, which are never negative: there, truncation is rounding down."""

VALUE_AT: Mapping[str, int] = {"meta_var": 0, "const": 0, "IntImm": 1, "FloatImm": 1}
"""Functions of which the text means one argument: what keeps TVM from making a variable, numbers of a dtype."""


def items_of(value: object) -> tuple[object, ...] | None:
    """The items of a tuple; `None` if the value is none."""
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else None


def is_number(value: object) -> bool:
    """Whether a value is a number or a truth value."""
    return isinstance(value, bool | int | float)


def as_dim(value: object) -> Dim | None:
    """A dimension, if the value is one or an integer."""
    if isinstance(value, Dim):
        return value
    return constant(value) if isinstance(value, int) and not isinstance(value, bool) else None


def simplest(dim: Dim) -> Dim | int:
    """An integer if the dimension is constant."""
    known = dim.constant_value
    return dim if known is None else known


def binary(kind: ast.operator, left: object, right: object) -> Number | Dim | None:
    """Arithmetic on two numbers or dimensions; `None` if one side is neither."""
    if isinstance(left, bool | int | float) and isinstance(right, bool | int | float):
        return _on_numbers(kind, left, right)
    one, other = as_dim(left), as_dim(right)
    if one is None or other is None:
        return None
    compute = _DIM_OPERATORS.get(type(kind))
    if compute is None:
        raise StaticError(f"expected one of + - * // % << >> & between dimensions, got {type(kind).__name__}")
    try:
        return simplest(compute(one, other))
    except DimSizeError as error:
        raise StaticError(str(error)) from error
    except ZeroDivisionError:
        raise StaticError("division by zero") from None


def _on_numbers(kind: ast.operator, left: Number, right: Number) -> Number:
    try:
        if isinstance(kind, ast.Pow):
            return _power(left, right)
        if isinstance(left, int) and isinstance(right, int) and (apply := _INTEGER_OPERATORS.get(type(kind))):
            if isinstance(kind, ast.LShift | ast.RShift) and not 0 <= right < 64:
                raise StaticError(f"expected a shift by 0 to 63 bits, got {right}")
            return _bounded(apply(left, right))
        compute = NUMBER_OPERATORS.get(type(kind))
        if compute is None:
            raise StaticError(f"{type(kind).__name__} has no meaning between {left} and {right}")
        return _bounded(compute(left, right))
    except ZeroDivisionError:
        raise StaticError("division by zero") from None
    except OverflowError:
        raise StaticError("the number is too large") from None


def _power(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int):
        if right > 64 and abs(left) > 1:
            raise StaticError("expected an integer of 64 bits, got a larger one")
        if right < 0:
            return _power(float(left), float(right))
    result = left**right
    if isinstance(result, complex):
        raise StaticError(f"{left} ** {right} is no real number")
    return _bounded(result)


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and not -LIMIT < value < LIMIT:
        raise StaticError("expected an integer of 64 bits, got a larger one")
    return value


def unary(kind: ast.unaryop, value: object) -> Number | Dim | None:
    """`-x`, `+x`, `not x`, `~x` of a number or dimension; `None` for anything else."""
    if isinstance(kind, ast.Not):
        return not value if isinstance(value, bool | int | float) else None
    if isinstance(value, bool | int | float):
        if isinstance(kind, ast.Invert):
            return ~int(value) if isinstance(value, int) else None
        return -value if isinstance(kind, ast.USub) else +value
    dim = as_dim(value)
    if dim is None or isinstance(kind, ast.Invert):
        return None
    return simplest(-dim) if isinstance(kind, ast.USub) else dim


def compare(kind: ast.cmpop, left: object, right: object) -> bool | None:
    """A comparison of two numbers or strings, or with `None`; `None` for anything else."""
    if isinstance(kind, ast.Is | ast.IsNot) and (left is None or right is None):
        return (left is right) is isinstance(kind, ast.Is)
    if isinstance(kind, ast.In | ast.NotIn) and isinstance(left, str) and isinstance(right, str | tuple):
        return (left in right) is isinstance(kind, ast.In)
    apply = _COMPARISONS.get(type(kind))
    if apply is not None and isinstance(left, str) and isinstance(right, str):
        return apply(left, right)
    if apply is None or not isinstance(left, bool | int | float) or not isinstance(right, bool | int | float):
        return None
    return apply(left, right)


_LARGEST = 1 << 24
"""No array that a text makes has more elements."""

_MOST = 64
"""How often a text repeats a tuple at most."""


def _range(*ends: int) -> tuple[int, ...]:
    values = range(*ends)
    if len(values) > _LARGEST:
        raise ValueError("the range is too long")
    return tuple(values)


def _filled(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes an array of a shape, which may not be too large."""

    def of_shape(shape: int | tuple[int, ...], *rest: Any, **named: Any) -> Any:
        if math.prod(shape if isinstance(shape, tuple) else (shape,)) > _LARGEST:
            raise ValueError("the array is too large")
        return make(shape, *rest, **named)

    return of_shape


def _arange(*ends: int, dtype: str | None = None) -> object:
    return np.asarray(_range(*ends), dtype)


def _eye(rows: int, columns: int | None = None, *rest: Any, **named: Any) -> object:
    if rows * (rows if columns is None else columns) > _LARGEST:
        raise ValueError("the array is too large")
    return np.eye(rows, columns, *rest, **named)


def _linspace(start: float, stop: float, num: int = 50, **named: Any) -> object:
    if num > _LARGEST:
        raise ValueError("the array is too large")
    return cast("Any", np.linspace)(start, stop, num, **named)


def numpy_dtype_name(name: object) -> str:
    """The name that NumPy gives a dtype."""
    return str(np.dtype(cast("Any", name)))


BUILTINS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "float": float,
    "int": int,
    "len": len,
    "list": tuple,
    "max": max,
    "min": min,
    "range": _range,
    "round": round,
    "str": str,
    "sum": sum,
    "tuple": tuple,
}

_MATH = ("ceil", "cos", "exp", "floor", "gcd", "log", "log2", "pow", "prod", "sin", "sqrt", "tanh")

_ARRAYS = ("abs", "array", "asarray", "diag", "exp", "log", "prod", "reshape", "sqrt", "transpose")

_SHAPED = ("empty", "full", "ones", "zeros")

ARRAY_METHODS = frozenset({"astype", "copy", "flatten", "item", "max", "min", "reshape", "tolist", "transpose"})

ARRAY_PROPERTIES = frozenset({"T", "dtype", "eps", "itemsize", "max", "min", "ndim", "shape", "size"})

PYTHON_FUNCTIONS: dict[tuple[str, str], Any] = {
    **{("math", name): getattr(math, name) for name in _MATH},
    **{("numpy", name): getattr(np, name) for name in _ARRAYS},
    **{("numpy", name): _filled(getattr(np, name)) for name in _SHAPED},
    ("numpy", "arange"): _arange,
    ("numpy", "dtype"): numpy_dtype_name,
    ("numpy", "eye"): _eye,
    ("numpy", "finfo"): np.finfo,
    ("numpy", "iinfo"): np.iinfo,
    ("numpy", "linspace"): _linspace,
}

MATH_CONSTANTS = ("e", "inf", "nan", "pi")


def joined(kind: ast.operator, left: object, right: object) -> object:
    """Arithmetic of arrays, `+` of tuples or strings, `*` of one and a number; `None` for anything else."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        compute = NUMBER_OPERATORS.get(type(kind))
        return None if compute is None else compute(cast("Any", left), cast("Any", right))
    if isinstance(kind, ast.Add) and type(left) is type(right) and isinstance(left, tuple | str):
        return cast("Any", left) + right
    one, count = (right, left) if isinstance(left, int) else (left, right)
    if isinstance(kind, ast.Mult) and isinstance(one, tuple | str) and isinstance(count, int) and count <= _MOST:
        return cast("Any", one) * count
    return None


def _less(left: Dim, right: Dim) -> Dim:
    return minimum(maximum(right - left, 0), 1)


def _differ(left: Dim, right: Dim) -> Dim:
    return minimum(maximum(left - right, right - left), 1)


INDICATORS: Mapping[type[ast.cmpop], Callable[[Dim, Dim], Dim]] = {
    ast.Lt: _less,
    ast.LtE: lambda left, right: 1 - _less(right, left),
    ast.Gt: lambda left, right: _less(right, left),
    ast.GtE: lambda left, right: 1 - _less(left, right),
    ast.Eq: lambda left, right: 1 - _differ(left, right),
    ast.NotEq: _differ,
}
"""1 where a comparison holds, else 0; what holds where another one does not is 1 less that."""
