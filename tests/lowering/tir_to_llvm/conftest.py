"""Fixtures that compile tir text and run it beside the reference interpreter."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, IndexType, ModuleOp
from xdsl.dialects.math import Math
from xdsl.dialects.vector import Vector
from xdsl.parser import Parser

from lowering.compiler.kernel_maker import KernelOptions
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from tir_dialect.dialect import TIR
from tir_dialect.dtypes import lookup
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType

ROUNDED_TWICE = KernelOptions(contract=False, schedule=False)
C_INTEGERS = {1: ctypes.c_bool, 8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Arith, Math, Vector, TIR):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def find(module: ModuleOp, name: str | None = None) -> PrimFuncOp:
    functions = [op for op in module.ops if isinstance(op, PrimFuncOp)]
    return next(op for op in functions if name is None or op.sym_name.data == name)


def call(kernels: Kernels, func: PrimFuncOp, args: Sequence[Any], symbols: Mapping[str, int]) -> int:
    """Calls the native function directly, without any check of the arguments."""
    values: list[Any] = [ctypes.c_int64(symbols[name]) for name in func.symbol_names]
    for argument, param in zip(args, func.params, strict=True):
        if isinstance(param.type, BufferType):
            values.append(ctypes.c_void_p(argument.ctypes.data))
        elif isinstance(param.type, IndexType):
            values.append(ctypes.c_int64(argument))
        elif lookup(param.type).is_float:
            values.append({32: ctypes.c_float, 64: ctypes.c_double}[lookup(param.type).bits](argument))
        else:
            values.append(C_INTEGERS[param.type.width.data](argument))
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *map(type, values))(kernels.address(func.sym_name.data))
    return function(*values)


def run_both(
    text: str,
    args: Sequence[Any],
    symbols: Mapping[str, int],
    *,
    name: str | None = None,
    options: KernelOptions = ROUNDED_TWICE,
    target: str = "host",
) -> tuple[list[Any], list[Any]]:
    """The arguments after the native function and after the interpreter."""
    module = parse(text)
    func = find(module, name)
    kernels = compile_prim_funcs(module, Target.parse(target), cache=NO_CACHE, options=options)
    native, reference = ([np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args] for _ in range(2))
    assert call(kernels, func, native, symbols) == 0
    run_prim_func(func, reference, symbols)
    return native, reference


Check = Callable[..., None]


@pytest.fixture
def both() -> Callable[..., tuple[list[Any], list[Any]]]:
    """`both(text, args, symbols)`: the arguments after native code and after the interpreter."""
    return run_both


@pytest.fixture
def same_as_interpreter() -> Check:
    """`check(text, args, symbols)`: native code leaves the arguments as the interpreter does, bit for bit."""

    def check(text: str, args: Sequence[Any], symbols: Mapping[str, int], **options: Any) -> None:
        native, reference = run_both(text, args, symbols, **options)
        for got, expected in zip(native, reference, strict=True):
            if isinstance(got, np.ndarray) and got.dtype.name == "bfloat16":
                got, expected = got.astype(np.float32), expected.astype(np.float32)  # NumPy knows no NaN of bfloat16
            np.testing.assert_array_equal(got, expected)

    return check


@pytest.fixture
def close_to_interpreter() -> Check:
    """As `same_as_interpreter`, up to a relative error `rtol`."""

    def check(text: str, args: Sequence[Any], symbols: Mapping[str, int], *, rtol: float, **options: Any) -> None:
        native, reference = run_both(text, args, symbols, **options)
        for got, expected in zip(native, reference, strict=True):
            np.testing.assert_allclose(np.float64(got), np.float64(expected), rtol=rtol, atol=rtol)

    return check


@pytest.fixture(scope="session")
def tir() -> Callable[[str], ModuleOp]:
    """Parses and verifies a tir module."""
    return parse


@pytest.fixture(scope="session")
def native_call() -> Callable[..., int]:
    """`native_call(kernels, func, args, symbols)` gives the status of the native function."""
    return call
