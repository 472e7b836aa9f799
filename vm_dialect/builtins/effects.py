"""Builtins that are called for their effect: text on the standard output, and errors with text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from vm_dialect.builtins.table import builtin
from vm_dialect.dtypes import BY_FFI_NAME
from vm_dialect.tensors import to_numpy
from vm_dialect.values import kind_of


@builtin("print", 1, None)
def print_(format: str, *values: Any) -> None:
    """Writes a line: `format` with its `{}` replaced by the text of the values."""
    print(_fill(format, values))


@builtin("fail", 1, None)
def fail(format: str, *values: Any) -> None:
    """`ValueError` with `format`, its `{}` replaced by the text of the values."""
    raise ValueError(_fill(format, values))


def _fill(format: str, values: Sequence[Any]) -> str:
    first, *rest = format.split("{}")
    if len(rest) != len(values):
        raise ValueError(f"format has {len(rest)} marks for {len(values)} values: {format}")
    return first + "".join(text_of(value) + part for value, part in zip(values, rest, strict=True))


MOST_FIELDS = 10_000
"""Of all tuples in a value that is printed: a tuple may hold another one many times over."""


def text_of(value: Any) -> str:
    """What is written for a value: `3`, `true`, `[2, 4]`, NumPy's text of a tensor, `(a, b)`, `null`.

    `ValueError` for tuples of too many fields in all.
    """
    return _text_of(value, itertools.count())


def _text_of(value: Any, fields: Iterator[int]) -> str:
    if next(fields) > MOST_FIELDS:
        raise ValueError(f"print: a tuple of more than {MOST_FIELDS} fields in all")
    match kind_of(value):
        case "null":
            return "null"
        case "bool":
            return "true" if value else "false"
        case "shape":
            return f"[{', '.join(map(str, value))}]"
        case "tuple":
            return f"({', '.join(_text_of(field, fields) for field in value)})"
        case "tensor":
            return str(to_numpy(value))
        case "dtype":
            element = BY_FFI_NAME.get(str(value))
            return str(value) if element is None else element.name
        case "int" | "float" | "string":
            return str(value)
        case kind:
            return f"<{kind}>"
