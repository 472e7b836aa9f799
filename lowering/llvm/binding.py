"""The part of `llvmlite.binding` that we use, typed.

The library is loaded on the first call; what LLVM writes on stderr becomes part of the error of code generation.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar, cast


class FunctionRef(Protocol):
    """A function of a parsed LLVM module."""

    name: str
    is_declaration: bool


class ModuleRef(Protocol):
    """A parsed LLVM module."""

    triple: str
    data_layout: str
    functions: Iterable[FunctionRef]

    def verify(self) -> None:
        """Raises `RuntimeError` with LLVM's message if the module is malformed."""
        ...


class TargetMachine(Protocol):
    """A target machine: processor, features and code generation options."""

    target_data: object

    def emit_object(self, module: ModuleRef) -> bytes:
        """An object file."""
        ...

    def emit_assembly(self, module: ModuleRef) -> str:
        """Assembler text."""
        ...


class TargetRef(Protocol):
    """A backend of LLVM."""

    def create_target_machine(
        self, cpu: str, features: str, opt: int, reloc: str, codemodel: str, jit: bool
    ) -> TargetMachine:
        """The machine for a processor."""
        ...


class ModulePasses(Protocol):
    """LLVM passes in order."""

    def run(self, module: ModuleRef, builder: object) -> None:
        """Rewrites the module in place."""
        ...


class FunctionPasses(Protocol):
    """LLVM passes that look at one function, in order."""

    def run(self, function: FunctionRef, builder: object) -> None:
        """Rewrites the function in place."""
        ...

    def add_loop_unroll_pass(self) -> None:
        """Loop unrolling, by hints and the cost model of the processor."""
        ...

    def add_instruction_combine_pass(self) -> None:
        """Instruction combining (`instcombine`)."""
        ...

    def add_sroa_pass(self) -> None:
        """Scalar replacement of aggregates (`sroa`)."""
        ...

    def add_simplify_cfg_pass(self) -> None:
        """Simplification of the control flow graph (`simplifycfg`)."""
        ...


class PassBuilder(Protocol):
    """Makes LLVM's standard pipelines."""

    def getModulePassManager(self) -> ModulePasses:
        """The pipeline of the tuning options."""
        ...

    def getFunctionPassManager(self) -> FunctionPasses:
        """The part of it that simplifies single functions."""
        ...


class TuningOptions(Protocol):
    """Options of the standard pipelines."""

    loop_vectorization: bool
    slp_vectorization: bool
    loop_interleaving: bool
    loop_unrolling: bool


class ResourceTracker(Protocol):
    """Keeps loaded code in memory while it is referenced."""

    def __getitem__(self, name: str) -> int:
        """The address of an exported symbol."""
        ...


class LibraryBuilder(Protocol):
    """Collects objects and symbols to be linked in memory."""

    def add_object_img(self, data: bytes) -> object:
        """Takes an object file."""
        ...

    def import_symbol(self, name: str, address: int) -> object:
        """Defines the address of an undefined symbol."""
        ...

    def export_symbol(self, name: str) -> object:
        """Requests the address of a defined symbol."""
        ...

    def link(self, lljit: object, library_name: str) -> ResourceTracker:
        """Raises `RuntimeError` with LLVM's message if a symbol is missing."""
        ...


class Binding(Protocol):
    """`llvmlite.binding`."""

    llvm_version_info: tuple[int, int, int]

    def set_option(self, name: str, option: str) -> None:
        """Sets one of the library's own options for the whole process; `name` is the program's for messages."""
        ...

    def create_context(self) -> object:
        """A context, which owns the types of a module."""
        ...

    def parse_assembly(self, text: str, context: object) -> ModuleRef:
        """Raises `RuntimeError` with LLVM's message for bad text."""
        ...

    def create_pipeline_tuning_options(self, speed_level: int) -> TuningOptions:
        """Options for `-O<speed_level>`."""
        ...

    def create_new_function_pass_manager(self) -> FunctionPasses:
        """An empty list of passes."""
        ...

    def create_pass_builder(self, machine: TargetMachine, options: TuningOptions) -> PassBuilder:
        """Standard pipelines for a processor."""
        ...

    def create_lljit_compiler(self, machine: TargetMachine | None, *, use_jit_link: bool) -> object:
        """An in-memory linker and loader."""
        ...

    def JITLibraryBuilder(self) -> LibraryBuilder:
        """An empty library."""
        ...


LLVM_LIBRARY = "libllvmlite."
"""How the name of LLVM's shared library begins."""


@cache
def load_ahead() -> None:
    """Loads LLVM on a thread, for those who will need it soon: it takes 10 to 60 ms, of no processor while files are
    read. llvmlite would hold the interpreter's lock for that time, and finds the library loaded afterwards.

    Other libraries that are loaded meanwhile wait, and so does a fork, whose child would have half of the library. Does
    nothing where the library is not in its usual position.
    """
    package = find_spec("llvmlite")
    folders = () if package is None else package.submodule_search_locations or ()
    for path in (file for folder in folders for file in Path(folder, "binding").glob(f"{LLVM_LIBRARY}*")):
        # A function of the C library: calls of those release the lock, `ctypes.CDLL(path)` does not.
        thread = Thread(target=ctypes.CDLL(None).dlopen, args=(os.fsencode(path), os.RTLD_NOW))
        thread.start()
        os.register_at_fork(before=thread.join)


@cache
def llvm() -> Binding:
    """The library, with every backend initialized."""
    binding: Any = import_module("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return cast("Binding", binding)


@cache
def enable_inline_assembler() -> None:
    """Lets code for this kind of machine have inline assembler, which LLVM parses when it makes an object."""
    binding: Any = llvm()
    binding.initialize_native_asmparser()


@cache
def target_family(triple: str) -> TargetRef:
    """The backend for a triple; raises `RuntimeError` if LLVM has none."""
    binding: Any = llvm()
    return cast("TargetRef", binding.Target.from_triple(triple))


def library_version() -> str:
    """Version of the library and of LLVM in it, for cache keys."""
    module: Any = import_module("llvmlite")
    return f"llvmlite {module.__version__} LLVM {'.'.join(map(str, llvm().llvm_version_info))}"


class CodegenError(Exception):
    """An llvm-dialect module that has no LLVM text, text that LLVM rejects, or code that cannot be loaded."""


T = TypeVar("T")

_UNKNOWN, _IGNORED = " is not a recognized ", " (ignoring "
_STREAM = Lock()
"""Held while stderr leads elsewhere: two who change it at a time would not find the way back."""


@contextmanager
def caught_messages() -> Generator[list[str]]:
    """What is written on stderr meanwhile, by any thread: lines, which are there at the end of the `with` statement."""
    lines: list[str] = []
    with _STREAM:
        try:
            stream = os.dup(2)
        except OSError:  # a process without this stream
            yield lines
            return
        with tempfile.TemporaryFile() as messages:
            os.dup2(messages.fileno(), 2)
            try:
                yield lines
            finally:
                os.dup2(stream, 2)
                os.close(stream)
                messages.seek(0)
                lines += messages.read().decode(errors="replace").splitlines(keepends=True)


def refusing_unknown_names(make: Callable[[], T]) -> T:
    """What `make` gives; raises `CodegenError` if LLVM says that it ignores a name. Other messages pass."""
    with caught_messages() as lines:
        made = make()
    unknown = dict.fromkeys(line.partition(_IGNORED)[0] for line in lines if _UNKNOWN in line)
    if others := "".join(line for line in lines if _UNKNOWN not in line):
        os.write(2, others.encode())
    if unknown:
        raise CodegenError(f"{'; '.join(unknown)}: names are those of LLVM's -mcpu=help")
    return made
