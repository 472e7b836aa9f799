"""Functions outside the module: given from Python, of the tvm-ffi registry, or of the C library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute

from tir_dialect.interpreter.boxed import call_boxed
from tir_dialect.interpreter.errors import UnsupportedOpError
from tir_dialect.interpreter.widths import outside_view, scalar_value
from tir_dialect.ops.boxed_calls import CallBoxedOp
from tir_dialect.ops.calls import CallExternOp, ForeignCallOp
from tir_dialect.types import BufferType
from vm_dialect.numpy_library import register_functions_of_tvm

Extern = Callable[..., Any]
"""A Python function; buffers arrive as NumPy arrays, scalars as numbers."""

_RUN_TIME: dict[str, Extern] = {"relax_max_threads": lambda: 1}
"""What the run time of compiled kernels has: parallel loops are interpreted on one thread."""

_C_INTEGERS = {8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}


def foreign_function(op: ForeignCallOp, externs: Mapping[str, Extern]) -> Callable[..., Any]:
    """What stands for the callee of `op`: an entry of `externs`, else a C or a registered function.

    Raises `UnsupportedOpError` if there is none of that name, or a C function whose types have no C equivalent.
    """
    types = [argument.type for argument in op.arguments]
    result = None if op.result is None else op.result.type
    name = op.function.data
    function = externs.get(name) or _RUN_TIME.get(name)
    if function is None:
        function = _c_function(name, types, result) if isinstance(op, CallExternOp) else _packed_function(name)

    def call(*arguments: Any) -> Any:
        value = function(*(_outside(argument, type) for argument, type in zip(arguments, types, strict=True)))
        return None if result is None else scalar_value(value, result)

    return call


def boxed_function(op: CallBoxedOp, externs: Mapping[str, Extern]) -> Callable[[int, int], None]:
    """What stands for the callee of `op`, as a function of where its arguments lie and how many they are."""
    name = op.function.data
    function = externs.get(name) or _packed_function(name)
    return partial(call_boxed, name, function)


def _outside(argument: Any, type: Attribute) -> Any:
    return outside_view(argument, type.dtype) if isinstance(type, BufferType) else argument


def _packed_function(name: str) -> Extern:
    import tvm_ffi

    from vm_dialect.errors import register_error_types

    register_error_types()
    register_functions_of_tvm()
    function = tvm_ffi.get_global_func(name, allow_missing=True)
    if function is None:
        raise UnsupportedOpError(f"'tir.call_packed' of \"{name}\", which is not a registered function")

    def call(*arguments: Any) -> Any:
        return function(*map(_to_ffi, arguments))

    return call


def _to_ffi(argument: Any) -> Any:
    import tvm_ffi

    if isinstance(argument, np.ndarray):
        return tvm_ffi.from_dlpack(argument)
    return argument if isinstance(argument, int | str | None | ctypes.c_void_p) else float(argument)


def _c_function(name: str, types: list[Attribute], result: Attribute | None) -> Extern:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is None:
        raise UnsupportedOpError(f"'tir.call_extern' of \"{name}\", which is not among the externs or in the C library")
    function.argtypes = [_c_type(name, type) for type in types]
    function.restype = None if result is None else _c_type(name, result)

    def call(*arguments: Any) -> Any:
        return function(*(_to_c(argument) for argument in arguments))

    return call


def _to_c(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    return argument if isinstance(argument, int) else float(argument)


def _c_type(name: str, type: Attribute) -> Any:
    match type:
        case BufferType():
            return ctypes.c_void_p
        case IndexType():
            return ctypes.c_int64
        case Float32Type():
            return ctypes.c_float
        case Float64Type():
            return ctypes.c_double
        case IntegerType() if type.width.data in _C_INTEGERS:
            return _C_INTEGERS[type.width.data]
        case _:
            raise UnsupportedOpError(f"'tir.call_extern' of \"{name}\" with type {type}; pass the function in externs")
