"""`build`: from a module of any level to an executable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, cast

import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.program_cache import FilePrograms, ModuleDigest, ProgramCache
from lowering.compiler.tuning_file import default_path
from lowering.debug import Debug, debug_level
from lowering.llvm.code_cache import CodeCache, default_cache
from lowering.parsing import require_module
from lowering.pass_context import PassContext
from tir_dialect.garbage import few_collections, importing
from tir_dialect.target import Target
from vm_dialect.executable import Executable
from vm_dialect.files import MappedFile, open_regular
from vm_dialect.tensors import to_value

if TYPE_CHECKING:
    from lowering.compiler.compilation import Program

Mode: TypeAlias = Literal["native", "bytecode"]


def build(
    module: ModuleOp,
    target: Target | str | Sequence[Target | str] | None = None,
    *,
    mode: Mode = "native",
    opt_level: int = 3,
    cache: CodeCache | bool = True,
    weights: Mapping[str, Any] | None = None,
    progress: TextIO | None = None,
    validate: bool = False,
    instrument: bool = False,
) -> Executable:
    """Compiles a module, which is left as it is. Its public functions can be called; without any, its PrimFuncs.

    `mode`: in `native` every function of the module becomes machine code; in `bytecode` functions are instructions of
    the virtual machine, which can be stepped, instrumented and profiled, and only kernels are machine code. `target` is
    the host unless named (`x86-64-v3`); several make native code for each, of which a machine runs the best that it can
    run. `opt_level` is LLVM's for kernels, 0 to 3; at 0 the graph is not optimised either. `cache` keeps whole
    executables and the code of kernels on disk: `False` for none, or one of your own.
    `weights` are the constants that the module refers to by name: arrays of any DLPack library. `progress`, a terminal,
    gets a bar if kernels take long. `validate` runs the public functions before and after each pass and at the end, on
    inputs drawn from their signatures, and raises `ValueChanged`, which names the first pass that changes what they
    compute; packed functions are called as often. `instrument` makes native code tell whoever watches of its calls
    (`VirtualMachine.profile`, `instrumented`), and takes note of how much kernels compute.
    A `PassContext` around the call holds for the passes of the graph and of its functions; of the passes of kernels,
    `schedule-cpu` can be disabled. Its target is used if none is given.

    Raises `DiagnosticException` with all errors at their ops, `CodegenError` if LLVM rejects the code, `ValueError` for
    a mode, target or level that there is not, `TypeError` for what is no module, target or mapping of weights.
    """
    require_module("build", module)
    if mode not in ("native", "bytecode"):
        raise ValueError(f"mode expected native or bytecode, got {mode}")
    if opt_level not in range(4):
        raise ValueError(f"opt_level expected 0 to 3, got {opt_level!r}")
    store, given = _cache(cache), _tensors(weights or {})
    if isinstance(target, Sequence) and not isinstance(target, str):
        for_one = partial(build, module, mode=mode, opt_level=opt_level, cache=store, weights=given)
        for_each = partial(for_one, progress=progress, validate=validate, instrument=instrument)
        return _for_targets(target, lambda each: for_each(target=each))
    machine = _target(target)

    def compiled() -> Program:
        watched = {"progress": progress, "validate": validate, "instrument": instrument}
        return _compiled(module, mode, machine, opt_level, store, weights=given, **watched)

    # Who asks to see the compiler's work wants it done.
    if validate or store.directory is None or debug_level() > Debug.NOTHING or _changes_passes(PassContext.current()):
        return compiled().executable
    how = _options(mode, opt_level, *(["instrument"] if instrument else []))
    return _found_or_compiled(ProgramCache.of(store, ModuleDigest(module), given, machine, how), compiled)


def _changes_passes(context: PassContext) -> bool:
    """Whether passes are left out or watched. What comes of them is no program for the cache."""
    return bool(context.disabled or context.instruments)


def build_file(
    files: Sequence[MappedFile],
    module: Callable[[], ModuleOp],
    options: str,
    *,
    target: Target | None = None,
    cache: CodeCache | bool = True,
) -> Executable:
    """`build` of the module that is made from files and `options`, for the host unless there is a `target`. It is made
    only if the executable is not in the cache for these very files. Its weights are in them, and no other file matters.
    """
    store, machine, how = _cache(cache), target or Target.host(), _options("native", 3)
    if store.directory is None or debug_level() > Debug.NOTHING or PassContext.entered() is not None:
        return build(module(), target=target, cache=store)
    known = FilePrograms.of(store, files, machine, [options, *how])
    found = known.load()
    if found is None:
        made = module()
        programs = ProgramCache.of(store, ModuleDigest(made), {}, machine, how)
        found = _found_or_compiled(
            programs, lambda: _compiled(made, "native", machine, 3, store, weights={}, progress=None)
        )
        known.store(programs)
    return found


def _found_or_compiled(programs: ProgramCache, compiled: Callable[[], Program]) -> Executable:
    """The executable in the cache, or one that is compiled and kept there."""
    found = programs.load()
    if found is None:
        program = compiled()
        found = program.executable
        programs.store(found, program.constants)
    return found


def _options(mode: Mode, opt_level: int, *others: str) -> tuple[str, ...]:
    """What an executable depends on besides module and target."""
    return (mode, f"O{opt_level}", tuning_stamp(), *others)


def _compiled(
    module: ModuleOp, mode: Mode, target: Target, opt_level: int, cache: CodeCache, **options: Any
) -> Program:
    """Compiles a module, whether it is in the cache of programs or not; the options are those of `compile_program`."""
    with importing():
        # Not at the top: what is in the cache needs no compiler.
        from lowering.compiler.compilation import compile_program
        from lowering.compiler.kernel_maker import KernelOptions

    with few_collections():  # passes are imported when they are needed
        kernels = KernelOptions(opt_level=opt_level, schedule="schedule-cpu" not in PassContext.current().disabled)
        return compile_program(module, mode, target, options=kernels, cache=cache, **options)


def _for_targets(targets: Iterable[Target | str], build_for: Callable[[Target], Executable]) -> Executable:
    """One executable for all targets; what needs more of a processor comes first."""
    from lowering.llvm.features import code_features
    from vm_dialect.executable.library import merged

    known = {each.code_key(): each for each in map(_target, targets)}
    if not known:
        raise ValueError("target expected at least one target, got none")
    order = sorted(known.values(), key=lambda each: (each.vector_bits, len(code_features(each) or ())), reverse=True)
    return merged([build_for(each) for each in order])


def build_uncached(module: ModuleOp, mode: Mode, weights: Mapping[str, Any]) -> Executable:
    """`build` as `Validation` wants it."""
    return build(module, mode=mode, weights=weights, cache=False)


def _tensors(weights: object) -> dict[str, tvm_ffi.Tensor]:
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights expected arrays by name, got {type(weights).__name__}")
    given = cast("Mapping[str, Any]", weights)
    return {name: weight if isinstance(weight, tvm_ffi.Tensor) else to_value(weight) for name, weight in given.items()}


def _target(target: object) -> Target:
    if target is None:
        return PassContext.current().machine or Target.host()
    if isinstance(target, str):
        return Target.parse(target)
    if not isinstance(target, Target):
        raise TypeError(f"target expected a Target, or the text of one, got {type(target).__name__}")
    return target


def _cache(cache: CodeCache | bool) -> CodeCache:
    if isinstance(cache, CodeCache):
        return cache
    return default_cache() if cache else CodeCache(None)


def tuning_stamp() -> str:
    """A text for cache keys that changes whenever the records in the database do."""
    path = default_path()
    if path is not None:
        try:
            with open_regular(path) as file:
                return f"tuning {hashlib.sha256(file.read()).hexdigest()}"
        except OSError:
            return "tuning"
    # A database in memory only.
    from lowering.compiler.tuning_database import default_database

    records = default_database().records()
    return f"tuning {json.dumps({key: record.as_json() for key, record in sorted(records.items())})}"
