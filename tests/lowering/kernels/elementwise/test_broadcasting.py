"""Operands that may be broadcast, as the call decides: values, memory around buffers, and the code of inner loops."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.elementwise.broadcasting import has_flag, is_flag
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.dims import parse_dim
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import Target
from tir_dialect.types import LoopKind

CASES = {
    "sum": ("[%a, %b, %c, %d]", "%x: !relax.tensor<[a, b], f32>, %y: !relax.tensor<[c, d], f32>", "relax.add %x, %y"),
    "known rows": (
        "[%a, %b, %c]",
        "%x: !relax.tensor<[a, b, 20], f32>, %y: !relax.tensor<[c, 1, 20], f32>",
        "relax.subtract %x, %y",
    ),
    "three": (
        "[%a, %b, %c, %d, %e]",
        "%x: !relax.tensor<[a, b, c], f32>, %y: !relax.tensor<[d, e], f32>",
        "relax.multiply %x, %y",
    ),
}


def function_of(name: str) -> PrimFuncOp:
    """The kernel of an operator."""
    symbols, parameters, op = CASES[name]
    return kernel_of_program(f"relax.func @main{symbols}({parameters}) {{\n%r = {op}\nrelax.return %r\n}}")


@cache
def kernel_of(name: str) -> tuple[PrimFuncOp, Kernels]:
    """The function, and its code."""
    func = function_of(name)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), cache=NO_CACHE)


def check(name: str, sizes: dict[str, int], apply: np.ufunc) -> None:
    """One call between guards: values as NumPy's, and nothing outside is touched."""
    func, kernels = kernel_of(name)
    rng = np.random.default_rng(0)
    shapes = [[extent.evaluate(sizes) for extent in param.type.shape] for param in func.params]
    x, y = (rng.standard_normal(shape, np.float32) for shape in shapes[:2])
    for at_end in (True, False):
        guarded = [Guarded(each, at_end) for each in (x, y, np.full(shapes[2], np.nan, np.float32))]
        symbols = {symbol: sizes[symbol] for symbol in func.symbol_names}
        assert call(kernels, func, [each.array for each in guarded], symbols) == 0
        np.testing.assert_array_equal(guarded[2].array, apply(x, y))
        for each in guarded:
            each.release()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (5, 1), (3, 16), (7, 37), (0, 5), (4, 0), (300, 400)])
def test_every_way_of_two_dimensions(rows: int, columns: int) -> None:
    for a, c in product((rows, 1), repeat=2):
        for b, d in product((columns, 1), repeat=2):
            check("sum", {"a": a, "b": b, "c": c, "d": d}, np.add)


def test_rows_of_a_known_length() -> None:
    for a, b, c in product((1, 3), (1, 70), (1, 3)):
        check("known rows", {"a": a, "b": b, "c": c}, np.subtract)


def test_inner_axes_are_joined_or_not() -> None:
    for b, c, d, e in product((1, 5), (1, 33), (1, 5), (1, 33)):
        check("three", {"a": 4, "b": b, "c": c, "d": d, "e": e}, np.multiply)


def test_no_vector_is_gathered() -> None:
    func = function_of("sum")
    schedule(func, Target.parse("x86-64-v4"))
    lanes = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED]
    assert len(lanes) == 8  # whole and masked vectors, for both strides of both operands
    for loop in lanes:
        for load in (op for op in loop.walk() if isinstance(op, LoadOp)):
            assert load.indices[0].owner.name == "arith.addi", "a step along the lanes is multiplied"


def test_flags() -> None:
    flag = parse_dim("min(max(0, m + 1 - broadcast(k, m)), 1)")
    assert is_flag(flag)
    assert has_flag(flag * parse_dim("n"))
    assert not is_flag(flag * 2)
    assert not has_flag(parse_dim("min(m, 1) + min(n, 2)") - parse_dim("min(m, 1)"))
