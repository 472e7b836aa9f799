"""Compilation of prim_funcs to callable machine code: deduplicated, cached on disk, loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernel_maker import (
    DEFAULT_OPTIONS,
    CodeMaker,
    Kernel,
    KernelMaker,
    KernelOptions,
    SharedRoutines,
    code_key,
)
from lowering.compiler.program_cache import compiler_version
from lowering.compiler.tuning_file import nothing_is_tuned
from lowering.debug import ProgressBar
from lowering.llvm.background import Background
from lowering.llvm.binding import library_version
from lowering.llvm.code_cache import CodeCache, cache_key, default_cache
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.llvm_text import spent_text
from lowering.runtime.loading import LoadedCode, load_objects
from lowering.tir_to_llvm.emitter import KernelSignature, kernel_signature
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

if TYPE_CHECKING:
    import tvm_ffi


@dataclass(frozen=True)
class Kernels:
    """The compiled prim_funcs of a module."""

    symbols: Mapping[str, str]
    """Symbol in the objects of each public prim_func; equal functions share one."""

    pending: Mapping[str, Future[bytes]]
    """Object files by the symbol that they define; some may still be being compiled."""

    signatures: Mapping[str, KernelSignature]
    """What each public prim_func takes."""

    target: Target
    cache: CodeCache

    extern: Mapping[str, int] = field(default_factory=dict[str, int])
    """Addresses of C functions that `tir.call_extern` names."""

    @cached_property
    def objects(self) -> Mapping[str, bytes]:
        """Object file by the symbol that it defines; `CodegenError` if LLVM has rejected the code."""
        return {symbol: data.result() for symbol, data in self.pending.items()}

    @cached_property
    def code(self) -> LoadedCode:
        """The code in memory; it stays there as long as this object.

        Raises `CodegenError` for a C function that is neither in `extern` nor in the run-time libraries.
        """
        return load_objects(list(self.objects.values()), self.extern)

    def address(self, name: str) -> int:
        """The address of `i32 f(i64 symbols..., parameters...)` for a prim_func; `KeyError` if there is none."""
        return self.code.address(self.symbols[name])

    def packed(self, name: str) -> tvm_ffi.Function:
        """A prim_func as a function of tvm-ffi, which checks its arguments; `KeyError` if there is none.

        It takes the parameters, tensors and numbers, in order; before them may come the values of all symbols. Strides
        that are symbols of nothing else are those of the tensors, which are not copied. The function keeps the code in
        memory.
        """
        import tvm_ffi

        from lowering.tir_to_llvm.packed_entry import entry_symbol

        symbol = self.symbols[name]
        entry = load_objects([self._entry(name)], {symbol: self.address(name)}, keep_alive=self.code)
        address = entry.address(entry_symbol(symbol))
        return tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=entry)

    def _entry(self, name: str) -> bytes:
        from lowering.tir_to_llvm.packed_entry import packed_entry

        signature = self.signatures[name]
        symbol = self.symbols[name]
        key = cache_key([_salt(self.target), "packed", symbol, signature.key()])
        data = self.cache.get(key)
        if data is None:
            data = compile_object(spent_text(packed_entry(signature, symbol)), self.target, CompileOptions(1))
            self.cache.put(key, data)
        return data


@dataclass(frozen=True)
class KernelPlan:
    """The prim_funcs of a module, with names for the code that is still to be made."""

    symbols: Mapping[str, str]
    """Symbol in the object file of each public prim_func; equal functions share one."""

    signatures: Mapping[str, KernelSignature]
    target: Target
    cache: CodeCache
    kernels: Mapping[str, Kernel]
    """What is compiled, by symbol."""
    options: KernelOptions
    salt: str
    """What all code depends on."""

    def start(
        self,
        background: Background,
        *,
        extern: Mapping[str, int] | None = None,
        progress: TextIO | None = None,
        after_first: Callable[[], object] = lambda: None,
    ) -> Kernels:
        """Lowers every kernel, while LLVM is at work on those before it; it may be afterwards too.

        `progress`, a terminal, gets a bar if that takes long; `after_first` is done once LLVM has a kernel to work on.

        Raises `PassFailedException` at an op that has no lowering.
        """
        maker = CodeMaker(background, self.cache, self.target, CompileOptions(self.options.opt_level))
        routines = SharedRoutines(maker, self.salt)
        bar = ProgressBar(progress, "kernels")
        pending = KernelMaker(maker, routines, self.salt).make(
            list(self.kernels.values()),
            lambda done, kernel: bar.show(done, len(self.kernels), kernel.group[0].sym_name.data),
            after_first,
        )
        bar.close()
        objects = {**pending, **routines.objects}
        return Kernels(self.symbols, objects, self.signatures, self.target, self.cache, extern or {})


def compile_prim_funcs(
    module: ModuleOp,
    target: Target | None = None,
    *,
    cache: CodeCache | None = None,
    options: KernelOptions = DEFAULT_OPTIONS,
    extern: Mapping[str, int] | None = None,
) -> Kernels:
    """Compile every public prim_func of a module, which is left as it is, for the host or another target.

    Raises `PassFailedException` at an op that has no lowering, and `CodegenError` if LLVM rejects the code.
    """
    plan = plan_kernels(module, target or Target.host(), cache or default_cache(), options)
    with Background() as background:
        kernels = plan.start(background, extern=extern)
        for data in kernels.pending.values():
            data.result()
        return kernels


def plan_kernels(module: ModuleOp, target: Target, cache: CodeCache, options: KernelOptions) -> KernelPlan:
    """Finds the public prim_funcs of a module and what their code will be called."""
    fingerprint = Fingerprint()
    salt = f"{_salt(target)} {options.key()}"
    symbols: dict[str, str] = {}
    kernels: dict[str, Kernel] = {}
    chosen = _choices(target, options)
    groups = list(kernel_groups(module))
    for group in groups:
        how = chosen(group)
        key = code_key(group, salt, how.choice_key(), fingerprint)
        symbol = symbols[group[0].sym_name.data] = f"relax_{key[:32]}"
        if symbol not in kernels:
            kernels[symbol] = Kernel(key, group, symbol, how)
    signatures = {group[0].sym_name.data: kernel_signature(group[0]) for group in groups}
    return KernelPlan(symbols, signatures, target, cache, kernels, options, salt)


def _choices(target: Target, options: KernelOptions) -> Callable[[Sequence[PrimFuncOp]], KernelOptions]:
    """How each kernel is compiled: with the schedule that tuning has found for it, if none is given."""
    if options.choice is not None or not options.schedule or nothing_is_tuned():
        return lambda group: options
    from lowering.compiler.tuning_database import default_database, kernel_key

    records = default_database().records_or_warn()

    def chosen(group: Sequence[PrimFuncOp]) -> KernelOptions:
        record = records.get(kernel_key(group, target)) if records else None
        return options if record is None else replace(options, choice=record.choice, record=record)

    return chosen


def kernel_groups(module: ModuleOp) -> Iterator[list[PrimFuncOp]]:
    """Every public prim_func, each followed by those that it calls, directly or not."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, PrimFuncOp)}
    for function in functions.values():
        if not function.is_private:
            yield [function, *_callees(function, functions)]


def _salt(target: Target) -> str:
    """What all code depends on. Schedules depend on every number of the target: for one core loops are not parallel."""
    return f"{compiler_version()} {library_version()} {target}"


def _callees(function: PrimFuncOp, functions: Mapping[str, PrimFuncOp]) -> list[PrimFuncOp]:
    """The functions that a function calls, directly or not, in order of appearance; calls to itself are kept out."""
    found: dict[str, None] = {}
    pending = [function]
    while pending:
        for name in (op.callee.root_reference.data for op in ops_in(pending.pop().body) if isinstance(op, CallOp)):
            if name not in found and name in functions:
                found[name] = None
                pending.append(functions[name])
    return [functions[name] for name in found if functions[name] is not function]
