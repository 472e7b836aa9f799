"""Builtins that call functions. The machine runs its own closures without these, on its own stack."""

from __future__ import annotations

from typing import Any

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.table import builtin
from vm_dialect.messages import render
from vm_dialect.values import kind_of


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
