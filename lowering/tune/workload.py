"""The workload of a program: the kernels that it calls, with sizes and number of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import tvm_ffi
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.cache.code_cache import CodeCache
from lowering.pipelines import RelaxToVMPass, RelaxToVMPlainPass
from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass
from lowering.tune.call import Call
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from vm_dialect.observers import Decision
from vm_dialect.program import Site


class _Recorder:
    """A VM instrument that counts kernel calls by their arguments."""

    def __init__(self, kernels: frozenset[str]):
        self.kernels = kernels
        self.calls: Counter[Call] = Counter()

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        if site.callee in self.kernels:
            self.calls[Call(site.callee, tuple(map(_argument, arguments)))] += 1
        return Decision.RUN

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        """Does nothing."""


def _argument(value: Any) -> tuple[str, tuple[int, ...]] | float:
    return (str(value.dtype), tuple(value.shape)) if isinstance(value, tvm_ffi.Tensor) else value


def kernels_of(module: ModuleOp, target: Target | None = None, opt_level: int = 3) -> ModuleOp:
    """The module as `build` lowers it, in which every PrimFunc is a kernel."""
    lowered = module.clone()
    ExposePrimFuncsPass().apply(Context(), lowered)
    pipeline = RelaxToVMPass if opt_level else RelaxToVMPlainPass
    pipeline.run(Context(), lowered, target or Target.host())
    return lowered


def record_calls(
    module: ModuleOp,
    entry: str,
    arguments: Sequence[Any],
    target: Target | None = None,
    opt_level: int = 3,
    cache: CodeCache | bool = True,
) -> Counter[Call]:
    """How often each kernel is called with which sizes when `entry` is called; `ValueError` if there is none.

    `cache` as in `build`.
    """
    from lowering.compiler.build import build

    kernels = kernels_of(module, target, opt_level)
    executable = build(module, mode="bytecode", target=target, opt_level=opt_level, cache=cache)
    if entry not in executable.entries:
        raise ValueError(f"expected entry to be one of {', '.join(executable.entries)}, got {entry}")
    machine = VirtualMachine(executable)
    recorder = _Recorder(frozenset(op.sym_name.data for op in kernels.ops if isinstance(op, PrimFuncOp)))
    with machine.instrumented(recorder):
        machine[entry](*arguments)
    return recorder.calls
