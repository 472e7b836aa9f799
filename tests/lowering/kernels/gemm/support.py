"""Contractions in Einstein's notation: their kernels, and runs of these between guard pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.kernel_maker import run_tir_passes
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.llvm.compiler import emit_assembly
from lowering.llvm.llvm_text import llvm_text
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


@dataclass(frozen=True)
class Sum:
    """A sum of products in Einstein's notation; a letter is a symbol."""

    subscripts: str
    dtype: str = "f32"

    @property
    def operands(self) -> list[str]:
        return self.subscripts.partition("->")[0].split(",")

    @property
    def text(self) -> str:
        letters = ", ".join(f"%{letter}" for letter in sorted(set("".join(self.operands))))
        types = [f"!relax.tensor<[{', '.join(operand)}], {self.dtype}>" for operand in self.operands]
        return f"""relax.func @main[{letters}](%x: {types[0]}, %y: {types[1]}) -> !relax.object {{
  %0 = relax.einsum %x, %y subscripts = "{self.subscripts}"
  relax.return %0
}}"""

    def arrays(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        rng = np.random.default_rng(sum(sizes.values()))
        shapes = [[sizes[letter] for letter in operand] for operand in self.operands]
        return [rng.standard_normal(shape).astype(DTYPES[self.dtype]) for shape in shapes]

    def expected(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.einsum(self.subscripts, *[array.astype("f8") for array in arrays])

    def check(self, result: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
        tolerance = {"bf16": 2e-2, "f16": 2e-3}.get(self.dtype, 1e-4)
        np.testing.assert_allclose(result.astype("f8"), self.expected(arrays), rtol=tolerance, atol=tolerance)


SUMS = {
    "product": Sum("mk,kn->mn"),
    "left transposed": Sum("km,kn->mn"),
    "right transposed": Sum("mk,nk->mn"),
    "both transposed": Sum("km,nk->mn"),
    "result transposed": Sum("mk,nk->nm"),
    "row vector": Sum("k,kn->n"),
    "column vector": Sum("nk,k->n"),
    "batched": Sum("bmk,bkn->bmn"),
    "batched, transposed": Sum("bmk,bnk->bmn"),
    "batch last": Sum("mkb,knb->mnb"),
    "several rows": Sum("bmk,kn->bmn"),
    "several columns": Sum("mk,knb->mnb"),
    "columns apart": Sum("mk,nkb->nmb"),
    "two sums": Sum("mkb,kbn->mn"),
    "two sums, turned": Sum("mkb,nbk->mn"),
    "f64": Sum("mk,kn->mn", "f64"),
    "bf16": Sum("mk,kn->mn", "bf16"),
    "f16": Sum("mk,nk->mn", "f16"),
}


def kernel(text: str) -> PrimFuncOp:
    module = parse_module(text)
    LegalizeOpsPass().apply(Context(), module)
    return next(op for op in module.ops if isinstance(op, PrimFuncOp))


@cache
def compiled(text: str):
    return VirtualMachine(build(parse_module(text)))["main"]


@cache
def guarded(text: str, target: Target | None = None) -> tuple[PrimFuncOp, Kernels]:
    func = kernel(text)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), target, cache=NO_CACHE)


def run_guarded(
    text: str, arrays: Sequence[np.ndarray], symbols: dict[str, int], target: Target | None = None
) -> np.ndarray:
    func, kernels = guarded(text, target)
    results: list[np.ndarray] = []
    for at_end in (True, False):
        pages = [Guarded(array, at_end) for array in arrays]
        assert call(kernels, func, [page.array for page in pages], symbols) == 0
        results.append(np.array(pages[-1].array))
        for page in pages:
            page.release()
    return results[-1]


def check_guarded(case: Sum, sizes: dict[str, int], target: Target | None = None) -> None:
    """Between guard pages, on the host or as on another machine that has its instructions."""
    arrays = case.arrays(sizes)
    result = np.full(case.expected(arrays).shape, 7, arrays[0].dtype)
    func, _ = guarded(case.text, target)
    symbols = {name: sizes[name] for name in func.symbol_names}
    case.check(run_guarded(case.text, [*arrays, result], symbols, target), arrays)


def compile_to_text(func: PrimFuncOp, target: Target) -> str:
    copy = func.clone()
    schedule(copy, target)
    module = ModuleOp([copy])
    run_tir_passes(module)
    return emit_assembly(llvm_text(lower_prim_funcs([copy], LoweringOptions.of(target))), target)


LANES = 16
"""Of the widest vectors that there are, in `f32`."""


def shifted(array: np.ndarray, shift: int) -> np.ndarray:
    """A copy that begins so many elements after where a vector may begin."""
    memory = np.zeros(array.size + 2 * LANES, array.dtype)
    first = (-(memory.ctypes.data // array.itemsize) + shift) % LANES
    found = memory[first : first + array.size].reshape(array.shape)
    found[...] = array
    return found


def known(m: int, k: int, n: int, second: str = "[{k}, {n}]", op: str = "relax.matmul %x, %y") -> str:
    """A product of matrices of known sizes."""
    return f"""
relax.func @main(%x: !relax.tensor<[{m}, {k}], f32>, %y: !relax.tensor<{second.format(k=k, n=n)}, f32>)
    -> !relax.object {{
  %0 = {op}
  relax.return %0
}}"""
