"""Builtins that call functions, compile them when they are called, or are called for their effect."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.table import builtin
from vm_dialect.dtypes import BY_FFI_NAME
from vm_dialect.messages import render
from vm_dialect.tensors import kind_of, to_numpy


def expect_function(value: object, subject: str) -> None:
    """`TypeError` if the value is not a function."""
    if not isinstance(value, tvm_ffi.Function):
        raise TypeError(render(messages.wrong_kind(subject, "function"), name=kind_of(value)))


@builtin("make_closure", 1, None)
def make_closure(function: Any, *captured: Any) -> tvm_ffi.Function:
    """The function whose first arguments are `captured`."""
    expect_function(function, "make_closure")

    def closure(*arguments: Any) -> Any:
        return function(*captured, *arguments)

    return tvm_ffi.convert(closure)


@builtin("invoke_closure", 1, None)
def invoke_closure(function: Any, *arguments: Any) -> Any:
    """Calls a function value."""
    expect_function(function, "invoke_closure")
    return function(*arguments)


@builtin("get_packed_func", 1)
def get_packed_func(name: str) -> tvm_ffi.Function:
    """A function of the tvm-ffi registry; `ValueError` if there is none of this name."""
    function = tvm_ffi.get_global_func(name, allow_missing=True)
    if function is None:
        raise ValueError(messages.unknown_packed(name))
    return function


@builtin("call_tir_dyn", 2, None)
def call_tir_dyn(function: Any, *arguments: Any) -> None:
    """Calls a function with the arguments, the last of which, a shape, is taken apart into integers."""
    expect_function(function, "call_tir_dyn")
    *first, shape = arguments
    if not isinstance(shape, tvm_ffi.Shape):
        raise TypeError(render(messages.wrong_kind("call_tir_dyn: last argument", "shape"), name=kind_of(shape)))
    function(*first, *shape)


_COMPILER = "lowering.compiler.deferred"
"""The module whose function `run_deferred` compiles, if it is installed; it is imported by the first call."""


@builtin("run_deferred", 1, None)
def run_deferred(text: str, *arguments: Any) -> Any:
    """Calls the function that `text` is with the arguments, compiled for their ranks and dtypes.

    `RuntimeError` if the compiler is not installed; `TypeError` or `ValueError` if an op cannot take the arguments.
    """
    try:
        compiler = import_module(_COMPILER)
    except ImportError as error:
        raise RuntimeError(
            "ops on tensors of unknown rank or dtype are compiled at run time: install the package 'lowering'"
        ) from error
    return compiler.run_deferred(text, *arguments)


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
