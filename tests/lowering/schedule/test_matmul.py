"""Contractions on the default schedule: the same values as before, whatever the sizes, one artefact for all of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.context import Context

from lowering import build
from lowering.legalize.legalize_ops import LegalizeOpsPass
from lowering.parsing import parse_module
from lowering.schedule.cpu.contraction import find_contraction
from lowering.schedule.schedule_cpu import schedule
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

PROGRAMS = {
    "matmul": ("[%m, %n, %k](%x: !relax.tensor<[m, k], f32>, %y: !relax.tensor<[k, n], f32>)", "relax.matmul %x, %y"),
    "batched": (
        "[%b, %m, %n, %k](%x: !relax.tensor<[b, m, k], f32>, %y: !relax.tensor<[b, k, n], f32>)",
        "relax.matmul %x, %y",
    ),
    "several row axes": (
        "[%b, %m, %n, %k](%x: !relax.tensor<[b, m, k], f32>, %y: !relax.tensor<[k, n], f32>)",
        "relax.matmul %x, %y",
    ),
    "double": ("[%m, %n, %k](%x: !relax.tensor<[m, k], f64>, %y: !relax.tensor<[k, n], f64>)", "relax.matmul %x, %y"),
    "row vector": ("[%n, %k](%x: !relax.tensor<[k], f32>, %y: !relax.tensor<[k, n], f32>)", "relax.matmul %x, %y"),
}
SIZES = (
    (0, 3, 2),
    (3, 0, 2),
    (3, 4, 0),
    (7, 4, 0),
    (1, 1, 1),
    (4, 129, 9),
    (5, 33, 7),
    (14, 32, 512),
    (31, 65, 130),
    (64, 64, 1030),
)


def text(name: str) -> str:
    signature, op = PROGRAMS[name]
    return f"relax.func @main{signature} -> !relax.object {{\n  %0 = {op}\n  relax.return %0\n}}"


@cache
def compiled(name: str):
    return VirtualMachine(build(parse_module(text(name))))["main"]


def operands(name: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(m + 7 * n + 31 * k)
    dtype = np.float64 if name == "double" else np.float32
    shapes = {
        "batched": ((2, m, k), (2, k, n)),
        "several row axes": ((2, m, k), (k, n)),
        "row vector": ((k,), (k, n)),
    }.get(name, ((m, k), (k, n)))
    return tuple(generator.standard_normal(shape).astype(dtype) for shape in shapes)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_native_agrees_with_numpy(name: str, sizes: tuple[int, int, int]) -> None:
    x, y = operands(name, *sizes)
    result = np.from_dlpack(compiled(name)(x, y))
    np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_structure_is_recognised(name: str) -> None:
    assert find_contraction(kernel(name)) is not None


def kernel(name: str) -> PrimFuncOp:
    module = parse_module(text(name))
    LegalizeOpsPass().apply(Context(), module)
    return next(op for op in module.ops if isinstance(op, PrimFuncOp))


@pytest.mark.parametrize("machine", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", ["matmul", "several row axes"])
def test_the_scheduled_function_means_the_same(name: str, machine: str) -> None:
    before, after = kernel(name), kernel(name)
    schedule(after, Target.parse(machine))
    after.verify()
    for sizes in ((1, 1, 1), (3, 5, 2), (8, 17, 3)):
        x, y = operands(name, *sizes)
        results = [np.full((x @ y).shape, np.nan, np.float32) for _ in range(2)]
        run_prim_func(before, [x, y, results[0]])
        run_prim_func(after, [x, y, results[1]])
        np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
