"""Code for AArch64 with NEON computes what the interpreter does, and touches nothing outside of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from unicorn import UcError
from xdsl.context import Context

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import CodeCache
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from relax_dialect.builder import BlockBuilder, Expr, op, tensor
from tests.lowering.llvm.aarch64.support import TARGET, emulator_of
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

pytestmark = pytest.mark.sampled(2)

Shape = tuple[str | int, ...]

PROGRAMS: dict[str, tuple[Callable[..., Expr], str, list[Shape]]] = {
    "exp": (op.exp, "f32", [("n", "m")]),
    "gelu": (op.nn.gelu, "f32", [("n", "m")]),
    "tanh_f16": (op.tanh, "f16", [("n", "m")]),
    "add_row_bf16": (op.add, "bf16", [("n", "m"), ("m",)]),
    "quotients_i8": (op.floor_divide, "i8", [("n", "m"), ("n", 1)]),
    "quotients_i32": (op.floor_divide, "i32", [("n", "m"), ("n", 1)]),
    "quotients_i64": (op.floor_divide, "i64", [("n", "m"), ("n", "m")]),
    "transpose": (op.permute_dims, "f32", [("n", "m")]),
    "sum_0": (lambda x: op.sum(x, axes=[0]), "f32", [("n", "m")]),
    "max_1_i8": (lambda x: op.max(x, axes=[1]), "i8", [("n", "m")]),
    "argmax": (lambda x: op.argmax(x, axis=1), "f32", [("n", "m")]),
    "cumsum": (lambda x: op.cumsum(x, axis=1), "f32", [("n", "m")]),
    "softmax": (lambda x: op.nn.softmax(x, axis=1), "f32", [("n", "m")]),
    "layer_norm": (lambda x, g, b: op.nn.layer_norm(x, g, b, axes=[-1]), "f32", [("n", "m"), ("m",), ("m",)]),
    "product": (op.matmul, "f32", [("n", "k"), ("k", "m")]),
    "product_f16": (op.matmul, "f16", [("n", "k"), ("k", "m")]),
    "product_i8": (lambda x, y: op.matmul(x, y, out_dtype="i32"), "i8", [("n", "k"), ("k", "m")]),
    "product_of_a_row": (op.matmul, "f32", [(1, "k"), ("k", "m")]),
    "convolution": (lambda x, w: op.nn.conv2d(x, w, padding=[1, 1]), "f32", [("b", 8, "h", "w"), (16, 8, 3, 3)]),
    "depthwise": (lambda x, w: op.nn.conv2d(x, w, padding=[1, 1], groups=8), "f32", [("b", 8, "h", "w"), (8, 1, 3, 3)]),
    "pooling": (lambda x: op.nn.max_pool2d(x, [3, 3], strides=[2, 2]), "f32", [("b", 8, "h", "w")]),
}

SIZES = [
    {"n": 0, "m": 3, "k": 4, "b": 0, "h": 7, "w": 9},
    {"n": 1, "m": 1, "k": 0, "b": 1, "h": 3, "w": 3},
    {"n": 7, "m": 33, "k": 17, "b": 1, "h": 8, "w": 13},
    {"n": 13, "m": 40, "k": 5, "b": 2, "h": 4, "w": 5},
]

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
TOLERANCES = {np.dtype(np.float32): 1e-5, np.dtype(np.float16): 4e-3, np.dtype(ml_dtypes.bfloat16): 2e-2}


def kernels_of(name: str) -> list[PrimFuncOp]:
    """The kernels of one program."""
    body, dtype, shapes = PROGRAMS[name]
    builder = BlockBuilder()
    with builder.function("main", {f"x{i}": tensor(shape, dtype) for i, shape in enumerate(shapes)}) as parameters:
        builder.emit_func_output(body(*parameters))
    module = builder.get()
    LegalizeOpsPass().apply(Context(), module)
    return [func for func in module.ops if isinstance(func, PrimFuncOp)]


def arguments_of(func: PrimFuncOp, sizes: Mapping[str, int]) -> list[NDArray[Any]]:
    """Random numbers for every parameter; results are overwritten."""
    rng = np.random.default_rng(sizes["m"])
    types = [parameter.type for parameter in func.body.block.args if isinstance(parameter.type, BufferType)]
    shapes = [tuple(dim.evaluate(sizes) for dim in buffer.shape) for buffer in types]
    return [
        np.asarray(rng.integers(-7, 8, shape) if "i" in str(buffer.dtype) else rng.standard_normal(shape)).astype(
            DTYPES[str(buffer.dtype)]
        )
        for shape, buffer in zip(shapes, types, strict=True)
    ]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels(name: str):
    """All sizes, of arrays that end before a page that is not mapped, and that begin after one."""
    (func,) = kernels_of(name)
    compiled = compile_prim_funcs(func.parent_op(), TARGET, cache=CodeCache(None))
    emulator = emulator_of(compiled)
    kernel = func.sym_name.data
    for sizes in SIZES:
        arguments = arguments_of(func, sizes)
        expected = [argument.copy() for argument in arguments]
        run_prim_func(func, expected, {})
        symbols = [sizes[symbol] for symbol in compiled.signatures[kernel].symbol_names]
        for at_end in (False, True):
            found = emulator.call(compiled.symbols[kernel], symbols, arguments, at_end=at_end)
            for array, data in zip(expected, found, strict=True):
                compare(np.frombuffer(data, array.dtype).reshape(array.shape), array)


@pytest.mark.parametrize("at_end", [False, True])
def test_an_access_outside_is_seen(at_end: bool):
    """A row more than the array has is written."""
    (func,) = kernels_of("exp")
    compiled = compile_prim_funcs(func.parent_op(), TARGET, cache=CodeCache(None))
    emulator = emulator_of(compiled)
    rows = np.ones((8, 128), np.float32)
    symbol = compiled.symbols[func.sym_name.data]
    assert emulator.call(symbol, rows.shape, [rows, rows], at_end=at_end)[0] == rows.tobytes()
    with pytest.raises(UcError, match="Invalid memory"):
        emulator.call(symbol, (9, 128), [rows, rows], at_end=at_end)


def compare(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    """Integers are equal, other numbers as close as sums in another order are."""
    tolerance = TOLERANCES.get(expected.dtype, 0)
    wide = np.float64 if tolerance else expected.dtype
    np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)
