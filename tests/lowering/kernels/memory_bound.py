"""Kernels of the memory-bound programs."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.kernels.memory_bound_programs import PROGRAMS
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import VirtualMachine


def kernel(name: str) -> PrimFuncOp:
    return _legalized(name).clone()


@cache
def _legalized(name: str) -> PrimFuncOp:
    module = parse_module(PROGRAMS[name].text)
    LegalizeOpsPass().apply(Context(), module)
    return next(op for op in module.ops if isinstance(op, PrimFuncOp))


@cache
def compiled(name: str):
    return VirtualMachine(build(parse_module(PROGRAMS[name].text)))["main"]


@cache
def native_kernel(name: str) -> tuple[Kernels, PrimFuncOp]:
    func = kernel(name).clone()
    return compile_prim_funcs(ModuleOp([func])), func
