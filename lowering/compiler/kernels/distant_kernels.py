"""Kernels as text, which the worker process schedules, lowers and compiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from xdsl.context import Context

from lowering.compiler.kernels.kernel_lowering import KernelOptions, code_key, lower_kernel, tir_passes
from lowering.context import make_context
from lowering.llvm.binding import llvm
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.parsing import parse_module
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.garbage import release
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target


@dataclass(frozen=True)
class KernelText:
    """A request: a kernel, to be scheduled by the default rules."""

    text: str
    key: str
    salt: str
    symbol: str
    target: Target
    options: KernelOptions


@dataclass(frozen=True)
class KernelCode:
    """The reply."""

    data: bytes
    """The object file."""

    routines: Mapping[str, str]
    """LLVM text of routines that it calls, by symbol."""


def sent(
    group: Sequence[PrimFuncOp], key: str, salt: str, symbol: str, target: Target, options: KernelOptions
) -> KernelText:
    """A function, with those that it calls, in words."""
    return KernelText("\n".join(map(str, group)), key, salt, symbol, target, options)


def compile_kernel(kernel: KernelText, known: frozenset[str]) -> KernelCode:
    """Schedules, lowers and compiles; routines that are known are left out.

    Raises `ValueError` if the text has lost something that the code depends on.
    """
    module = parse_module(kernel.text, ctx=_context())
    group = [op for op in module.ops if isinstance(op, PrimFuncOp)]
    if code_key(group, kernel.salt, None, Fingerprint()) != kernel.key:
        raise ValueError("the text of a kernel is read as another one")
    lowered = lower_kernel(group, kernel.symbol, kernel.target, kernel.options)
    text = lowered.text
    routines = {symbol: give() for symbol, give in lowered.routines.items() if symbol not in known}
    lowered.release()
    release(module)
    return KernelCode(compile_object(text, kernel.target, CompileOptions(kernel.options.opt_level)), routines)


def load() -> None:
    """Loads what makes kernels."""
    for name in ("lowering.kernels.schedule_cpu", "lowering.tir_to_llvm.convert_tir_to_llvm"):
        import_module(name)
    tir_passes()
    llvm()
    _context()


@cache
def _context() -> Context:
    return make_context()
