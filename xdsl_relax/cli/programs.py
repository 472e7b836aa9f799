"""Loading of program files as callable functions, in one of the three execution modes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ModuleOp

from lowering.verify import verify_module
from tir_dialect.extensions import ExtensionError, load_extension
from xdsl_relax import file_kinds
from xdsl_relax.cli.diagnostics import ToolError
from xdsl_relax.errors import with_traceback
from xdsl_relax.file_kinds import STDIN, Holds, ReadOptions, kind_of, require_kind, source_of

if TYPE_CHECKING:
    from relax_dialect.frontend.onnx.parameters import GivenShapes
    from tir_dialect.target import Target
    from vm_dialect import Executable
    from vm_dialect.callee import Callee
    from vm_dialect.library import Library
    from vm_dialect.profiler import Profile
    from xdsl_relax.cli.values import Signature

MODES = ("native", "bytecode", "interpret")


@dataclass(frozen=True)
class BuildOptions:
    """The options of `lowering.build`."""

    mode: str = "native"
    target: str | None = None
    """The target, in the syntax of `Target.parse`; the host if `None`. The first of several."""
    opt_level: int = 3
    cache: bool = True
    weights: str | None = None
    """The file with the weights that the text of the module names; not for `build`, which takes them by name."""
    shapes: GivenShapes = ()
    """The shapes of the inputs of an ONNX model; not for `build`."""
    trust: bool = False
    """Whether an executable may hold machine code that this user has not made, and call what it likes."""
    targets: Sequence[str] = ()
    """All targets, if there are several: for executables and libraries."""
    instrument: bool = False
    """Whether native code tells whoever watches of its calls."""


@dataclass(frozen=True)
class Program:
    """A function that is ready to be called."""

    call: Callable[..., object]
    origin: str
    """How it was built, for the summary: `native, built in 12 ms`."""
    profile: Callable[..., Profile] | None = None
    """Calls the function once and returns a profile; `None` for what tells nobody of its calls."""
    parameters: Sequence[str] | None = None
    """What the parameters are called, if they have names."""
    result_names: Sequence[str] = ()
    """What the model calls the result, or each field of it; empty if it does not say."""
    entry: str = "main"
    """The function."""
    signature: Signature | None = None
    """What is known about its parameters; `None` for a kernel with a convention of its own."""


def read_module(path: str, weights: str | None = None, shapes: GivenShapes = ()) -> ModuleOp:
    """The module in a file or on standard input, not yet verified, with weights from another file.

    `shapes` are those of the inputs of an ONNX model, as `import_model` takes them.
    """
    module = file_kinds.read_module(path, ReadOptions(shapes=shapes))
    load_weights_into(module, weights)
    return module


def load_weights_into(module: ModuleOp, path: str | None) -> None:
    """Gives a module the weights that its text names, from a file, if there is one."""
    if path is not None:
        from lowering.compiler.weight_files import load_weights

        load_weights(module, path)


def load_python_files(names: Sequence[str]) -> None:
    """Runs Python files and imports modules, which register what they have; `ToolError` for what one raises."""
    for name in names:
        try:
            load_extension(name)
        except ExtensionError as error:
            raise ToolError(with_traceback(str(error), error.__cause__ or error)) from error


def load_program(path: str, entry: str | None, options: BuildOptions) -> Program:
    """The function `entry` of the program in `path`, or that of `main_entry`: of a module, which is built, or of an
    executable or a library, which is loaded.
    """
    started = time.perf_counter()
    kind = require_kind(path, *Holds)
    if kind.holds is Holds.LIBRARY:
        return _of_library(path, entry, options, started)
    if kind.holds is Holds.EXECUTABLE:
        if options.mode == "interpret":
            raise ToolError(f"expected a module to interpret, got the executable {path}")
        return _compiled(_read_executable(path, options.trust), entry, "loaded", started)
    from lowering.compiler.host_functions import HostFunction
    from relax_dialect.ops.structure import FuncOp
    from xdsl_relax.cli.values import Signature

    module = read_module(path, options.weights, options.shapes)
    name = entry_of(module, entry)
    host = HostFunction.of(module, name)
    if options.mode == "interpret":
        program = _interpreted(module, name, started)
    else:
        declared = next((op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name), None)
        program = _compiled(build_executable(module, options), name, f"{options.mode}, built", started)
        if declared is not None:  # which says the bounds of symbols, too
            program = replace(program, signature=Signature.of_func(declared))
    if host is None:
        return program
    return replace(program, call=host.bound(program.call), profile=None, parameters=None, signature=None)


def signatures_text(path: str, options: BuildOptions) -> str:
    """A line for each public function of a program, which is not built."""
    from xdsl_relax.cli.values import Signature, signatures_in

    kind = require_kind(path, *Holds)
    if kind.holds is Holds.LIBRARY:
        library = _open_library(path)
        found = [Signature.of_compiled(library[name]) for name in library.entries]
    elif kind.holds is Holds.EXECUTABLE:
        from vm_dialect import VirtualMachine

        executable = _read_executable(path, options.trust)
        machine = VirtualMachine(executable)
        found = [Signature.of_compiled(cast("Callee", machine[name])) for name in executable.entries]
    else:
        module = read_module(path, options.weights, options.shapes)
        verify_module(module)
        found = signatures_in(module)
    _require_some([each.name for each in found])
    return "\n".join(f"@{each.text()}" for each in found)


def _read_executable(path: str, trust: bool) -> Executable:
    from vm_dialect import Executable

    data = source_of(path).data
    return Executable.load(path, trust=trust) if data is None else Executable.from_bytes(data, trust=trust)


def entry_of(module: ModuleOp, given: str | None) -> str:
    """The function that is given, or else that of `main_entry` among the public functions of a module."""
    from relax_dialect.ops.structure import FuncOp
    from tir_dialect.ops.function import PrimFuncOp

    if given is not None:
        return given
    funcs = [op.sym_name.data for op in module.ops if isinstance(op, FuncOp) and not op.is_private]
    kernels = [op.sym_name.data for op in module.ops if isinstance(op, PrimFuncOp) and not op.is_private]
    lowered = any(op.name in ("vm.func", "llvm.func") for op in module.ops)
    return "main" if lowered and not funcs else main_entry(funcs or kernels)


def main_entry(names: Sequence[str]) -> str:
    """`main`, or the only function; `ToolError` lists them where that is not clear."""
    _require_some(names)
    if "main" not in names and len(names) > 1:
        raise ToolError(f"the program has several functions, say which: --entry {' or '.join(names)}")
    return "main" if "main" in names else names[0]


def _of_library(path: str, entry: str | None, options: BuildOptions, started: float) -> Program:
    from xdsl_relax.cli.values import Signature

    if options.mode != "native":
        raise ToolError(f"{path} is a shared library, which is machine code; leave out --mode {options.mode}")
    library = _open_library(path)
    name = main_entry(library.entries) if entry is None else entry
    _require_entry(name, library.entries)
    function = library[name]
    origin = f"loaded in {_milliseconds(started)}"
    signature = Signature.of_compiled(function)
    return Program(function, origin, None, function.parameters, function.result_names, name, signature)


def _open_library(path: str) -> Library:
    from vm_dialect.files import open_regular
    from vm_dialect.library import load_library

    if path == STDIN:
        raise ToolError("a shared library is opened by the system: give its file, not standard input")
    open_regular(path).close()
    try:
        return load_library(path)
    except (OSError, RuntimeError) as error:  # no library at all, or one for another machine
        raise ToolError(str(error)) from error


def require_source(path: str, option: str) -> None:
    """`ToolError` unless a file holds a module, which an option needs."""
    kind = require_kind(path, *Holds)
    if kind.holds is not Holds.MODULE:
        raise ToolError(f"{option} needs the module, {path} is {kind.what}, which is compiled already")


def load_executable(path: str, options: BuildOptions) -> Executable:
    """The executable in a file, or that of the module in it; `ToolError` for a shared library."""
    kind = kind_of(path)
    if kind is not None and kind.holds is Holds.LIBRARY:
        raise ToolError(f"{path} is a shared library, which is machine code: give the module or its bytecode")
    if kind is None or kind.holds is not Holds.EXECUTABLE:
        return build_executable(read_module(path, options.weights, options.shapes), options)
    return _read_executable(path, options.trust)


def parameters_of(module: ModuleOp, entry: str) -> Sequence[str] | None:
    """What the parameters of a function of the graph level are called; `None` if there is no such function."""
    from relax_dialect.ops.structure import FuncOp

    found = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == entry)
    return next((func.param_names for func in found), None)


def memory_text(path: str, weights: str | None = None, shapes: GivenShapes = ()) -> str:
    """The memory usage of each function of the module in a file; `ToolError` for an executable."""
    from lowering.relax.memory.plan_memory import memory_report

    require_source(path, "--report-memory")
    module = read_module(path, weights, shapes)
    verify_module(module)
    return memory_report(module).as_text()


def _interpreted(module: ModuleOp, entry: str, started: float) -> Program:
    from xdsl.context import Context

    from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass
    from relax_dialect.interpreter import run
    from relax_dialect.ops.structure import FuncOp
    from vm_dialect.builtins import register_globals
    from xdsl_relax.cli.values import Signature

    register_globals()  # what was deferred calls one of them
    verify_module(module)
    ExposePrimFuncsPass().apply(Context(), module)
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not op.is_private}
    lowered = next((op.name for op in module.ops if op.name in ("vm.func", "llvm.func")), None)
    if not functions and lowered is not None:
        raise ToolError(f"expected functions of the graph level to interpret, got {lowered}; leave out --mode")
    _require_entry(entry, list(functions))
    origin = f"interpreted, read in {_milliseconds(started)}"
    func = functions[entry]
    signature = Signature.of_func(func)
    names, results = signature.parameters, signature.result_names
    return Program(lambda *arguments: run(module, entry, arguments), origin, None, names, results, entry, signature)


def _compiled(executable: Executable, entry: str | None, how: str, started: float) -> Program:
    from vm_dialect import VirtualMachine
    from vm_dialect.executable import FunctionKind
    from vm_dialect.executable.model import OBSERVED_NOTE
    from xdsl_relax.cli.values import Signature

    name = main_entry(executable.entries) if entry is None else entry
    _require_entry(name, executable.entries)
    try:
        machine = VirtualMachine(executable)
    except RuntimeError as error:  # built for another machine
        raise ToolError(str(error)) from error
    except ValueError as error:
        if "is not registered" not in str(error):
            raise
        raise ToolError(f"{error}\nhint: --load FILE.py runs a file that does so") from error
    info = executable.functions[executable.function_index[name]]
    is_watched = info.kind is FunctionKind.BYTECODE or OBSERVED_NOTE in executable.metadata.notes
    profile = partial(machine.profile, name) if is_watched else None
    origin = f"{how} in {_milliseconds(started)}"
    function = machine[name]
    signature = Signature.of_compiled(cast("Callee", function))
    return Program(function, origin, profile, info.parameters, info.result_names, name, signature)


def _require_entry(name: str, entries: Sequence[str]) -> None:
    _require_some(entries)
    if name not in entries:
        raise ToolError(f"expected --entry to be one of {', '.join(entries)}, got {name}")


def _require_some(entries: Sequence[str]) -> None:
    if not entries:
        raise ToolError("the module has no function that can be run: it is empty, or all of them are private")


def target_of(options: BuildOptions) -> Target:
    """The target to compile for; `ValueError` for an invalid description."""
    from tir_dialect.target import Target

    if options.targets:
        raise ToolError("expected one --target; several are for executables (.rvm) and libraries (.so)")
    return Target.host() if options.target is None else Target.parse(options.target)


def build_executable(module: ModuleOp, options: BuildOptions) -> Executable:
    """Compiles `module` as the options say."""
    from lowering import build

    return build(
        module,
        mode="native" if options.mode == "native" else "bytecode",
        target=options.targets or options.target,
        opt_level=options.opt_level,
        cache=options.cache,
        instrument=options.instrument,
        progress=sys.stderr if sys.stderr.isatty() else None,
    )


def _milliseconds(started: float) -> str:
    return f"{1000 * (time.perf_counter() - started):.1f} ms"
