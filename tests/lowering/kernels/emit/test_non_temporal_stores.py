"""Results that are too large for the caches are written by non-temporal stores, at any alignment."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.kernels.memory_bound import kernel
from tests.lowering.kernels.memory_bound_programs import PROGRAMS
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect import te
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

STREAM = r"store <\d+ x float> .*, align (\d+), !nontemporal"


def doubled(*shape: int | None) -> PrimFuncOp:
    """A map of numbers whose sizes are known, or not."""
    x = te.placeholder([te.var(f"n{axis}") if size is None else size for axis, size in enumerate(shape)], "f32", "x")
    return te.create_prim_func([x, te.compute(x.shape, lambda *at: x[at] + x[at], name="y")], name="doubled")


def text(func: PrimFuncOp, machine: str) -> str:
    target = Target.parse(machine)
    schedule(func, target)
    return llvm_text(lower_prim_funcs([func], LoweringOptions.of(target)))


@pytest.mark.parametrize(("machine", "bytes_"), [("x86-64-v3 cores=1", 32), ("x86-64-v4 cores=1", 64)])
def test_whole_registers_are_stored_non_temporally_before_a_fence(machine: str, bytes_: int) -> None:
    lowered = text(doubled(None, None), f"{machine} l3-bytes=8192")
    assert re.findall(STREAM, lowered) == [str(bytes_)]
    assert re.search(r"icmp sge i64 %v\d+, 1024", lowered), "half of the cache has 1024 numbers"
    assert lowered.count("call void @llvm.x86.sse.sfence()") == 1


@pytest.mark.parametrize(
    ("func", "machine"),
    [
        (doubled(16, 32), "x86-64-v3 cores=1 l3-bytes=8192"),  # known to be small
        (doubled(None, None), "neoverse-n1 cores=1 l3-bytes=8192"),
        (kernel("transposed"), "x86-64-v3 cores=1 l3-bytes=8192"),  # which writes parts of lines
        (kernel("sum of rows"), "x86-64-v3 cores=1 l3-bytes=8192"),
    ],
)
def test_other_stores_are_temporal(func: PrimFuncOp, machine: str) -> None:
    lowered = text(func.clone(), machine)
    assert "nontemporal" not in lowered
    assert "sfence" not in lowered


def test_a_non_temporal_result_is_not_prefetched() -> None:
    func = kernel("softmax").clone()
    lowered = text(func, "x86-64-v3 cores=1 l3-bytes=8192")
    assert re.search(r"select i1 %v\d+, i64 1, i64 0", lowered), "no index of what is asked for depends on the size"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["broadcast", "silu", "softmax", "layer norm", "running sums"])
def test_values(name: str) -> None:
    func = kernel(name)
    target = Target.parse("host cores=2 l3-bytes=512 task-percent=1")
    kernels = compile_prim_funcs(ModuleOp([func.clone()]), target, cache=NO_CACHE)
    for m, n in ((0, 3), (1, 1), (3, 21), (5, 64), (9, 40), (2, 301)):
        rng = np.random.default_rng(n)
        shapes = [tuple({"m": m, "n": n}[letter] for letter in shape) for shape in PROGRAMS[name].shapes]
        given = [rng.standard_normal(shape).astype(np.float32) for shape in (*shapes, (m, n))]
        expected = [each.copy() for each in given]
        run_prim_func(func, expected, {"m": m, "n": n})
        for at_end in (True, False):
            guarded = [Guarded(each, at_end) for each in given]
            assert call(kernels, func, [each.array for each in guarded], {"m": m, "n": n}) == 0
            np.testing.assert_allclose(guarded[-1].array, expected[-1], rtol=3e-5, atol=3e-6)
            for each in guarded:
                each.release()
