"""Loading of program files as callable functions, in one of the three execution modes."""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from lowering.verify.module import verify_module
from xdsl_relax.cli.failures import ToolError, with_traceback

if TYPE_CHECKING:
    from relax_dialect.frontend.onnx.parameters import GivenShapes
    from tir_dialect.target import Target
    from vm_dialect import Executable
    from vm_dialect.profiler import Profile

MODES = ("native", "bytecode", "interpret")
MODULE_SUFFIXES = (".mlir", ".onnx", ".pt2")
EXECUTABLE_SUFFIX = ".rvm"
LIBRARY_SUFFIX = ".so"
MOST_TEXT = 1 << 30
"""Characters of a text."""


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


def read_module(path: str, weights: str | None = None, shapes: GivenShapes = ()) -> ModuleOp:
    """The module in a file, not yet verified, with weights from another; `ToolError` for a file of another kind.

    `shapes` are those of the inputs of an ONNX model, as `import_model` takes them.
    """
    if Path(path).suffix not in MODULE_SUFFIXES:
        raise ToolError(f"expected a file that ends in one of {', '.join(MODULE_SUFFIXES)}, got {path}")
    if (read := IMPORTERS.get(Path(path).suffix)) is not None:
        from vm_dialect.files import open_regular

        open_regular(path).close()
        return read(path, shapes)
    if isinstance(shapes, Mapping) and shapes:
        raise ToolError(f"{path}: --shape is for ONNX models; the text says its shapes")
    module = parse_module(read_text(path), path)
    if weights is not None:
        from lowering.compiler.weight_files import load_weights

        load_weights(module, weights)
    return module


def read_text(path: str) -> str:
    """The text in a file or pipe; `ToolError` if there is something else in it, or no end of it."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MOST_TEXT + 1)
    except UnicodeDecodeError as error:
        raise ToolError(no_text(path, error)) from error
    if len(text) > MOST_TEXT:
        raise ToolError(f"{path}: expected a text of at most {MOST_TEXT} characters")
    return text


def no_text(path: str, error: UnicodeDecodeError) -> str:
    """What is said of a file that holds something else than text."""
    return f"{path}: expected text in UTF-8, got the byte {error.object[error.start]:#04x} at position {error.start}"


def read_onnx(path: str, shapes: GivenShapes = ()) -> ModuleOp:
    """An ONNX model as a module, its inputs with the shapes that are given; `ToolError` if it cannot be imported, or
    the package `onnx` is missing.
    """
    from relax_dialect.frontend.onnx import OnnxImportError, import_model

    try:
        return import_model(path, shapes=shapes)
    except OnnxImportError as error:
        raise ToolError(f"{path}: {error}") from error
    except ModuleNotFoundError as error:
        raise ToolError(f"{path} needs the package onnx: pip install onnx ({error})") from error


def read_torch(path: str, shapes: GivenShapes = ()) -> ModuleOp:
    """An exported program of PyTorch, which says all shapes, as a module; `ToolError` if it cannot be imported, or
    `torch` is missing.
    """
    from relax_dialect.frontend.torch import TorchImportError, import_file

    if isinstance(shapes, Mapping) and shapes:
        raise ToolError(f"{path}: shapes are given for ONNX models; exported programs of PyTorch have theirs")
    try:
        return import_file(path)
    except TorchImportError as error:
        raise ToolError(f"{path}: {error}") from error
    except ModuleNotFoundError as error:
        raise ToolError(f"{path} needs the package torch: pip install torch ({error})") from error


IMPORTERS: Mapping[str, Callable[[str, GivenShapes], ModuleOp]] = {".onnx": read_onnx, ".pt2": read_torch}
"""What reads the files of other systems, by how their names end."""


def load_python_files(paths: Sequence[str]) -> None:
    """Runs Python files, which register packed functions or tensor intrinsics; `ToolError` for what one raises."""
    for path in paths:
        try:
            runpy.run_path(path)
        except Exception as error:
            raise ToolError(with_traceback(f"{path}: {type(error).__name__}: {error}", error)) from error


def load_program(path: str, entry: str, options: BuildOptions) -> Program:
    """The function `entry` of the program in `path`: a module, which is built, or an executable or a library, which is
    loaded.
    """
    started = time.perf_counter()
    if Path(path).suffix == LIBRARY_SUFFIX:
        return _of_library(path, entry, options, started)
    if Path(path).suffix == EXECUTABLE_SUFFIX:
        if options.mode == "interpret":
            raise ToolError(f"expected a module to interpret, got the executable {path}")
        from vm_dialect import Executable

        return _compiled(Executable.load(path, trust=options.trust), entry, "loaded", started)
    from lowering.compiler.host_functions import HostFunction

    module = read_module(path, options.weights, options.shapes)
    host = HostFunction.of(module, entry)
    if options.mode == "interpret":
        program = _interpreted(module, entry, started)
    else:
        program = _compiled(build_executable(module, options), entry, f"{options.mode}, built", started)
    if host is None:
        return program
    return replace(program, call=host.bound(program.call), profile=None, parameters=None)


def load_executable(path: str, options: BuildOptions) -> Executable:
    """The executable in a file, or that of the module in it; `ToolError` for a shared library."""
    if Path(path).suffix == LIBRARY_SUFFIX:
        raise ToolError(f"{path} is a shared library, which is machine code: give the module or its bytecode")
    if Path(path).suffix != EXECUTABLE_SUFFIX:
        return build_executable(read_module(path, options.weights, options.shapes), options)
    from vm_dialect import Executable

    return Executable.load(path, trust=options.trust)


def _of_library(path: str, entry: str, options: BuildOptions, started: float) -> Program:
    from vm_dialect.files import open_regular
    from vm_dialect.library import load_library

    if options.mode != "native":
        raise ToolError(f"{path} is a shared library, which is machine code; leave out --mode {options.mode}")
    open_regular(path).close()
    try:
        library = load_library(path)
    except (OSError, RuntimeError) as error:  # no library at all, or one for another machine
        raise ToolError(str(error)) from error
    _require_entry(entry, library.entries)
    function = library[entry]
    return Program(function, f"loaded in {_milliseconds(started)}", None, function.parameters, function.result_names)


def parameters_of(module: ModuleOp, entry: str) -> Sequence[str] | None:
    """What the parameters of a function of the graph level are called; `None` if there is no such function."""
    from relax_dialect.ops.structure import FuncOp

    found = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == entry)
    return next((func.param_names for func in found), None)


def memory_text(path: str, weights: str | None = None, shapes: GivenShapes = ()) -> str:
    """The memory usage of each function of the module in a file; `ToolError` for an executable."""
    from lowering.relax.memory.report import memory_report

    module = read_module(path, weights, shapes)
    verify_module(module)
    return memory_report(module).as_text()


def _interpreted(module: ModuleOp, entry: str, started: float) -> Program:
    from xdsl.context import Context

    from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass
    from relax_dialect.interpreter import run
    from relax_dialect.ops.structure import FuncOp
    from vm_dialect.builtins import register_globals

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
    results = () if func.result_names is None else tuple(name.data for name in func.result_names)
    return Program(lambda *arguments: run(module, entry, arguments), origin, None, func.param_names, results)


def _compiled(executable: Executable, entry: str, how: str, started: float) -> Program:
    from vm_dialect import VirtualMachine
    from vm_dialect.executable import FunctionKind
    from vm_dialect.executable.model import OBSERVED_NOTE

    _require_entry(entry, executable.entries)
    try:
        machine = VirtualMachine(executable)
    except RuntimeError as error:  # built for another machine
        raise ToolError(str(error)) from error
    info = executable.functions[executable.function_index[entry]]
    is_watched = info.kind is FunctionKind.BYTECODE or OBSERVED_NOTE in executable.metadata.notes
    profile = partial(machine.profile, entry) if is_watched else None
    origin = f"{how} in {_milliseconds(started)}"
    return Program(machine[entry], origin, profile, info.parameters, info.result_names)


def _require_entry(name: str, entries: Sequence[str]) -> None:
    if not entries:
        raise ToolError("the module has no function that can be run: it is empty, or all of them are private")
    if name not in entries:
        raise ToolError(f"expected --entry to be one of {', '.join(entries)}, got {name}")


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
