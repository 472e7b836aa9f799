"""Plain Python in a text: constants and functions of numbers, strings, tuples and arrays.

Only the functions listed here are known, which have no effects: nothing that the text or its surroundings define runs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relax_dialect.frontend.tvmscript.text import evaluator
from relax_dialect.frontend.tvmscript.text.captured import Opaque
from relax_dialect.frontend.tvmscript.text.errors import TVMScriptError
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.static import describe, is_dtype_name
from tir_dialect.dims import Dim

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.text.static import StaticReader

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


def _dtype_name(name: object) -> str:
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
_METHODS = frozenset({"astype", "copy", "flatten", "item", "max", "min", "reshape", "tolist", "transpose"})
_PROPERTIES = frozenset({"T", "dtype", "eps", "itemsize", "max", "min", "ndim", "shape", "size"})

_FUNCTIONS: dict[tuple[str, str], Any] = {
    **{("math", name): getattr(math, name) for name in _MATH},
    **{("numpy", name): getattr(np, name) for name in _ARRAYS},
    **{("numpy", name): _filled(getattr(np, name)) for name in _SHAPED},
    ("numpy", "arange"): _arange,
    ("numpy", "dtype"): _dtype_name,
    ("numpy", "eye"): _eye,
    ("numpy", "finfo"): np.finfo,
    ("numpy", "iinfo"): np.iinfo,
    ("numpy", "linspace"): _linspace,
}
_CONSTANTS = ("e", "inf", "nan", "pi")
_ERRORS = (ValueError, TypeError, ZeroDivisionError, OverflowError, IndexError, KeyError, AttributeError)


def python_value(reader: StaticReader, node: ast.expr) -> object:
    """What an expression of plain Python comes to; `TVMScriptError` for one that is none."""
    try:
        found = _computed(reader, node)
    except TVMScriptError:
        raise
    except _ERRORS as error:
        reader.fail(node, str(error))
    return _plain(found)


def _plain(value: Any) -> object:
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    if isinstance(value, list | tuple):
        return tuple(map(_plain, cast("list[object]", value)))
    return _dtype_name(cast("object", value)) if isinstance(value, np.dtype) else value


def _computed(reader: StaticReader, node: ast.expr) -> object:
    match node:
        case ast.Call():
            return _call(reader, node)
        case ast.Attribute():
            return _attribute(reader, node)
        case ast.Subscript():
            return cast("Any", reader.value(node.value))[reader.value(node.slice)]
        case ast.IfExp():
            return reader.value(node.body if _truth(reader, node.test) else node.orelse)
        case ast.BoolOp():
            return _connected(reader, node)
        case ast.JoinedStr():
            return "".join(_piece(reader, each) for each in node.values)
        case ast.ListComp() | ast.GeneratorExp():
            return tuple(_comprehended(reader, node.elt, node.generators))
        case _:
            return _refused(reader, node)


def _refused(reader: StaticReader, node: ast.expr) -> object:
    found = reader.aliases.resolve(node.func if isinstance(node, ast.Call) else node)
    if found is not None and found[0] in ("math", "numpy"):
        reader.fail(node, f"{'.'.join(found)} is not among the functions of Python that texts may use; give its value")
    reader.fail(node, "expected a number, a string, a dimension, or a tuple of those")


def _truth(reader: StaticReader, node: ast.expr) -> bool:
    value = reader.value(node)
    if isinstance(value, bool | int | float | str | tuple | None):
        return bool(cast("object", value))
    reader.fail(node, "expected what is true or false when the text is read; in the program, use `if`")


def _connected(reader: StaticReader, node: ast.BoolOp) -> object:
    found: object = None
    for each in node.values:
        found = reader.value(each)
        if isinstance(found, Dim) or bool(found) is isinstance(node.op, ast.Or):
            break
    return found


def _piece(reader: StaticReader, node: ast.expr) -> str:
    if not isinstance(node, ast.FormattedValue):
        return reader.text(node)
    if node.format_spec is not None:
        reader.fail(node, "expected a name or number in braces without a format")
    value = reader.value(node.value)
    if not isinstance(value, bool | int | float | str | Dim | tuple | None):
        reader.fail(node.value, f"expected what is known when the text is read, got {describe(value)}")
    return str(cast("object", value))


def _comprehended(reader: StaticReader, element: ast.expr, parts: list[ast.comprehension]) -> Iterator[object]:
    if not parts:
        yield reader.value(element)
        return
    part, *rest = parts
    items = items_of(reader.value(part.iter))
    if items is None:
        reader.fail(part.iter, "expected a tuple or range, which is known when the text is read")
    for item in items:
        with reader.scope.inner():
            _bind(reader, part.target, item)
            if all(_truth(reader, test) for test in part.ifs):
                yield from _comprehended(reader, element, rest)


def _bind(reader: StaticReader, target: ast.expr, value: object) -> None:
    if isinstance(target, ast.Name):
        reader.scope.bind(target.id, value)
        return
    items = items_of(value) or ()
    if not isinstance(target, ast.Tuple) or len(items) != len(target.elts):
        reader.fail(target, "expected a name, or as many names as there are values")
    for each, item in zip(target.elts, items, strict=True):
        _bind(reader, each, item)


def _attribute(reader: StaticReader, node: ast.Attribute) -> object:
    found = reader.aliases.resolve(node)
    if found is not None:
        namespace, name = found
        if namespace in ("math", "numpy") and name in _CONSTANTS:
            return getattr(math, name)
        return str(np.dtype(name)) if namespace == "numpy" and is_dtype_name(name) else _refused(reader, node)
    owner = reader.value(node.value)
    if isinstance(owner, Opaque):
        return owner.attribute(node.attr)
    if isinstance(owner, np.ndarray | np.iinfo | np.finfo) and node.attr in _PROPERTIES:
        return getattr(cast("Any", owner), node.attr)
    return _refused(reader, node)


def _call(reader: StaticReader, node: ast.Call) -> object:
    function = _function(reader, node.func)
    if function is None:
        return _refused(reader, node)
    named = {each.arg: reader.value(each.value) for each in node.keywords if each.arg is not None}
    return function(*reader.elements(node.args), **named)


def _function(reader: StaticReader, node: ast.expr) -> Callable[..., Any] | None:
    """The function of Python that a call means, if it is one of those that are known."""
    if isinstance(node, ast.Name):
        return None if node.id in reader.scope else BUILTINS.get(node.id)
    found = reader.aliases.resolve(node)
    if found is not None:
        if found[0] == "numpy" and is_dtype_name(found[1]):
            return np.dtype(found[1]).type
        return _FUNCTIONS.get(found)
    if isinstance(node, ast.Attribute) and node.attr in _METHODS:
        owner = reader.value(node.value)
        return getattr(cast("Any", owner), node.attr) if isinstance(owner, np.ndarray) else None
    return None


def joined(kind: ast.operator, left: object, right: object) -> object:
    """Arithmetic of arrays, `+` of tuples or strings, `*` of one and a number; `None` for anything else."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        compute = evaluator.NUMBER_OPERATORS.get(type(kind))
        return None if compute is None else compute(cast("Any", left), cast("Any", right))
    if isinstance(kind, ast.Add) and type(left) is type(right) and isinstance(left, tuple | str):
        return cast("Any", left) + right
    one, count = (right, left) if isinstance(left, int) else (left, right)
    if isinstance(kind, ast.Mult) and isinstance(one, tuple | str) and isinstance(count, int) and count <= _MOST:
        return cast("Any", one) * count
    return None
