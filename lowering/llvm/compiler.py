"""LLVM IR to optimised LLVM IR, assembly or an object file, for a target."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from lowering.debug import Debug, debug_level, show
from lowering.llvm.binding import (
    CodegenError,
    FunctionPasses,
    ModuleRef,
    TargetMachine,
    TuningOptions,
    llvm,
    refusing_unknown_names,
    target_family,
)
from tir_dialect.codegen_hints import PLAIN_ADDRESSES, REPEATED_WORK, SCALAR_LOOP
from tir_dialect.target import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

Source: TypeAlias = "ModuleOp | str"
"""A module of the llvm dialect, or LLVM IR text."""

_OPTIONS = Lock()
"""Held while code is generated, since LLVM's options for it are the process's."""

_LONG = 100_000
"""Characters of text from which on LLVM's strength reduction of loops, whose time grows with the square of the
addresses in a loop, takes half of the time of code generation or more. Code as long as this calls routines for what
counts."""

_VECTOR = re.compile(r"<\d+ x ")
_UNROLL = '!"llvm.loop.unroll.count"'
_WHOLE = re.compile(rf'"(?:{re.escape(REPEATED_WORK)}|llvm\.loop\.unroll\.full)"')
"""A hint of a loop by which functions are simplified in all ways."""

_WISH = re.compile(
    rf'"(?:{re.escape(SCALAR_LOOP)}"|llvm\.loop\.(?!unroll\.(?:full|disable|count)|vectorize\.enable", i1 false))'
)
"""A hint by which LLVM is to do more with a loop than to unroll it."""


@dataclass(frozen=True)
class CompileOptions:
    """Optimisation options of LLVM."""

    opt_level: int = 3
    """0 to 3, as in `-O3`."""

    as_written: bool = False
    """Skip LLVM's optimisation passes; only select instructions and allocate registers."""

    def key(self) -> str:
        """The options that generated code depends on, as a text for cache keys."""
        return f"O{self.opt_level}{' as written' if self.as_written else ''}"


def compile_object(source: Source, target: Target, options: CompileOptions = CompileOptions()) -> bytes:
    """An ELF object of position-independent code, which the loader and a linker both take.

    Raises `CodegenError` for text that LLVM rejects, with LLVM's message.
    """
    machine, text = target_machine(target, options.opt_level), _text(source)
    module = _optimized(text, target, options)
    level = debug_level()
    if level >= Debug.LLVM:
        show(Debug.LLVM, "optimised LLVM IR", str(module))
    with _generating(text):
        if level >= Debug.MACHINE:
            show(Debug.MACHINE, "assembly", machine.emit_assembly(module))
        return machine.emit_object(module)


def emit_assembly(source: Source, target: Target, options: CompileOptions = CompileOptions()) -> str:
    """Assembler text of the optimised module; errors as `compile_object`."""
    machine, text = target_machine(target, options.opt_level), _text(source)
    module = _optimized(text, target, options)
    with _generating(text):
        return machine.emit_assembly(module)


@contextmanager
def _generating(text: str) -> Generator[None]:
    """LLVM's options are as the hints in the text say, and its length."""
    plain = len(text) > _LONG or f'"{PLAIN_ADDRESSES}"' in text
    with _OPTIONS:
        if plain:
            llvm().set_option("relax", "-disable-lsr=1")
        try:
            yield
        finally:
            if plain:
                llvm().set_option("relax", "-disable-lsr=0")


def emit_llvm_ir(source: Source, target: Target, options: CompileOptions | None = None) -> str:
    """LLVM IR text with the target's triple and data layout; optimised where `options` are given.

    Errors as `compile_object`.
    """
    if options is None:
        return str(_verified(_text(source), target))
    return str(_optimized(_text(source), target, options))


@lru_cache(maxsize=16)
def target_machine(target: Target, opt_level: int = 3) -> TargetMachine:
    """LLVM's description of a target; raises `CodegenError` if LLVM does not know its triple, processor or features."""

    def made() -> TargetMachine:
        return target_family(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=opt_level, reloc="pic", codemodel="small", jit=True
        )

    host = Target.host()
    try:
        if (target.cpu, target.features) == (host.cpu, host.features):
            return made()
        return refusing_unknown_names(made)
    except RuntimeError as error:
        raise CodegenError(f"no code generator for {target.triple}: {error}") from error


def _verified(text: str, target: Target) -> ModuleRef:
    try:
        module = llvm().parse_assembly(text, llvm().create_context())
        module.triple = target.triple
        module.data_layout = str(target_machine(target).target_data)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM rejects the module: {str(error).strip()}") from error
    return module


def _text(source: Source) -> str:
    if isinstance(source, str):
        return source
    # Not at the top: loading compiled code needs this file's target machines, but no IR.
    from lowering.llvm.llvm_text import llvm_text

    return llvm_text(source)


def _optimized(text: str, target: Target, options: CompileOptions) -> ModuleRef:
    module = _verified(text, target)
    if options.opt_level == 0 or options.as_written:
        return module
    machine = target_machine(target, options.opt_level)
    if _loops_are_done(text):
        # What every function needs, and what loops with a count of turns ask for. Nothing is inlined, and what does
        # not change in a loop is before it already: a tenth of the time of everything, for the same code in the loops
        # that count. Only where loops repeat work it takes a third to a half.
        level = min(options.opt_level, 2)
        builder = llvm().create_pass_builder(machine, _tuning(level, loops=False))
        usual = builder.getFunctionPassManager() if _WHOLE.search(text) else _brief()
        passes = [usual, *([_unrolling()] if _UNROLL in text else [])]
        for function in module.functions:
            if not function.is_declaration:
                for each in passes:
                    each.run(function, builder)
    else:
        # Everything that LLVM has for this level.
        builder = llvm().create_pass_builder(machine, _tuning(options.opt_level, loops=options.opt_level >= 2))
        builder.getModulePassManager().run(module, builder)
    return module


def _loops_are_done(text: str) -> bool:
    """Whether LLVM has nothing to add to the loops: who wrote vectors has unrolled too, and no hint asks for more."""
    return _VECTOR.search(text) is not None and _WISH.search(text) is None


def _brief() -> FunctionPasses:
    passes = llvm().create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def _unrolling() -> FunctionPasses:
    passes = llvm().create_new_function_pass_manager()
    passes.add_loop_unroll_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def _tuning(level: int, loops: bool) -> TuningOptions:
    tuning = llvm().create_pipeline_tuning_options(level)
    tuning.loop_vectorization = tuning.slp_vectorization = loops
    tuning.loop_interleaving = tuning.loop_unrolling = loops
    return tuning
