"""Run-time type checks of the arguments of primitives, by their annotations."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from typing import Any, cast

from tir_dialect.dims import Dim, DimLike
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.index_map import IndexMap

KNOWN: dict[str, object] = {
    "Block": Block,
    "Dim": Dim,
    "DimLike": DimLike,
    "IndexMap": IndexMap,
    "Loop": Loop,
    "bool": bool,
    "float": float,
    "int": int,
    "str": str,
}
"""What annotations and aliases in them are made of, beside what the module of a primitive has."""

GREATEST = 1 << 62
"""The greatest number in an argument: the sum of it and a size is an index, too."""

NAMED = ("block", "block_or_loop")
"""The parameters for which the name of a block may be given."""


def wrong_arguments(primitive: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The first argument of a wrong type, as an error message; `None` if all are right."""
    signature = _signature(primitive)
    try:
        bound = signature.bind(None, *args, **kwargs)
    except TypeError as error:
        return str(error)
    names = KNOWN | primitive.__globals__
    for name, value in list(bound.arguments.items())[1:]:
        parameter = signature.parameters[name]
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for each in cast("Sequence[object]", value) if several else (value,):
            # a block may be given by its name
            if not fits(each, str(parameter.annotation), names) and not (name in NAMED and isinstance(each, str)):
                return f'expected "{name}" to be {parameter.annotation}, got {each!r}'
    return None


def too_great(values: Sequence[Any]) -> int | None:
    """A number in arguments whose magnitude is over `GREATEST`."""
    for value in values:
        match value:
            case list() | tuple():
                found = too_great(cast("Sequence[Any]", value))
            case Dim():
                found = too_great([coefficient for coefficient, _ in value.terms])
            case _:
                found = int(value) if isinstance(value, Integral) and abs(int(value)) > GREATEST else None
        if found is not None:
            return found
    return None


_signature = cache(inspect.signature)


def fits(value: object, annotation: str, names: Mapping[str, object]) -> bool:
    """Whether a value has the type that an annotation says; `names` maps its names to types and aliases."""
    return _fits(value, _parsed(annotation), names)


@cache
def _parsed(annotation: str) -> ast.expr:
    return ast.parse(annotation, mode="eval").body


def _fits(value: object, node: ast.expr, names: Mapping[str, object]) -> bool:
    match node:
        case ast.BinOp(left=left, right=right):
            return _fits(value, left, names) or _fits(value, right, names)
        case ast.Constant(value=None):
            return value is None
        case ast.Name(id=name):
            return _is(value, names[name], names)
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _fits_generic(value, name, inner, names)
        case _:
            raise TypeError(f"'{ast.unparse(node)}' is no type that arguments are checked for")


def _fits_generic(value: object, name: str, inner: ast.expr, names: Mapping[str, object]) -> bool:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name in ("Callable", "Mapping"):
        return callable(value) if name == "Callable" else isinstance(value, Mapping)
    if name == "Literal":
        return any(isinstance(part, ast.Constant) and part.value == value for part in parts)
    if not isinstance(value, list | tuple):
        return False
    items = cast("Sequence[object]", value)
    if name == "tuple":
        return len(items) == len(parts) and all(_fits(*pair, names) for pair in zip(items, parts, strict=True))
    return all(_fits(item, inner, names) for item in items)


def _is(value: object, kind: object, names: Mapping[str, object]) -> bool:
    if isinstance(kind, str):
        return fits(value, kind, names)
    if kind is not bool and isinstance(value, bool):
        return False
    # NumPy's numbers are numbers, too
    return isinstance(value, Real if kind is float else Integral if kind is int else cast(type, kind))
