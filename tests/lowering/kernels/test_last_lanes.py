"""Elements of one and two bytes: kernels write those of the result and no byte beside them, for every size of a row.

LLVM 22 writes four bytes for a masked store of one lane that was made shorter, where it knows the mask; so it is not
told.
"""

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.tir_to_llvm.conftest import call
from tir_dialect.ops.function import PrimFuncOp

DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "i8": np.int8}
WIDE = {"bf16": "f32", "f16": "f32", "i8": "i32"}
OPERATORS = {
    "copy": "relax.add %x, %x",
    "converted": "relax.astype %w dtype = {0}",
    "rows": "relax.sum %y axes = [0]",
    "product": "relax.matmul %a, %y",
}
DECLARED = (
    "%x: !relax.tensor<[{n}], {d}>, %w: !relax.tensor<[{n}], {w}>, "
    "%y: !relax.tensor<[3, {n}], {d}>, %a: !relax.tensor<[2, 3], {d}>"
)
CANARY = 64
"""Bytes before and after a result."""


@cache
def kernels_of(dtype: str, sizes: tuple[str, ...]) -> tuple[dict[tuple[str, str], PrimFuncOp], Kernels]:
    """A function for each operator and declared size, `n` for any one, in one module."""
    text, keys = "", [(name, size) for name in OPERATORS for size in sizes]
    for index, (name, size) in enumerate(keys):
        declared = DECLARED.format(n=size, d=dtype, w=WIDE[dtype])
        symbols = "[%n]" if size == "n" else "[%n in [1, 1]]" if size == "one" else ""
        declared = declared.replace("one", "n")
        body = f"%r = {OPERATORS[name].format(dtype)}\nrelax.return %r"
        text += f"relax.func @f{index}{symbols}({declared}) -> !relax.object {{\n{body}\n}}\n"
    module = parse_module(text)
    LegalizeOpsPass().apply(Context(), module)
    funcs = [op for op in module.ops if isinstance(op, PrimFuncOp)]
    return dict(zip(keys, funcs, strict=True)), compile_prim_funcs(
        ModuleOp([func.clone() for func in funcs]), cache=NO_CACHE
    )


def check(name: str, dtype: str, func: PrimFuncOp, kernels: Kernels, n: int) -> None:
    kind, wide = DTYPES[dtype], {"f32": np.float32, "i32": np.int32}[WIDE[dtype]]
    w = (np.arange(n) % 7 - 3).astype(wide)
    y, a = np.stack([w, w + 1, 2 * w]).astype(kind), np.array([[1, 2, 3], [-1, 0, 1]], kind)
    given = {"copy": [w.astype(kind)] * 2, "converted": [w], "rows": [y], "product": [a, y]}[name]
    given = given[: len(func.params) - 1]
    expected = {
        "copy": lambda: 2 * w,
        "converted": lambda: w,
        "rows": lambda: y.astype(wide).sum(0),
        "product": lambda: a.astype(wide) @ y.astype(wide),
    }[name]().astype(kind)
    memory = np.full(expected.nbytes + 2 * CANARY, 0xA5, np.uint8)
    result = memory[CANARY : CANARY + expected.nbytes].view(kind).reshape(expected.shape)
    assert call(kernels, func, [*given, result], {symbol: n for symbol in func.symbol_names}) == 0
    np.testing.assert_array_equal(result.astype(wide), expected.astype(wide), f"{name} {n}")
    beside = np.concatenate([memory[:CANARY], memory[CANARY + expected.nbytes :]])
    assert (beside == 0xA5).all(), f"{name} of {n} elements writes beside its result"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_size(dtype: str) -> None:
    funcs, kernels = kernels_of(dtype, ("n",))
    for (name, _), func in funcs.items():
        for n in range(71):
            check(name, dtype, func, kernels, n)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_that_are_known(dtype: str) -> None:
    """Those that leave one lane for the last vector: LLVM would find out."""
    funcs, kernels = kernels_of(dtype, ("1", "9", "17", "33", "65", "one"))
    for (name, size), func in funcs.items():
        check(name, dtype, func, kernels, 1 if size == "one" else int(size))
