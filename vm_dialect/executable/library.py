"""Shared libraries: the native objects of an executable, linked so that `tvm_ffi.load_module` opens them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path

from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.library_constants import SIGNATURES, write_constants, write_text
from vm_dialect.executable.model import SIGNATURES_NOTE, FunctionKind

SYMBOL_PREFIX = "__tvm_ffi_"
"""A library exports a function `f` of the packed calling convention under this prefix and its name."""

_RESERVED = frozenset({"_library_ctx", "_library_bin"})
_RESERVED_PREFIXES = ("_metadata_", "_doc_")
"""What tvm-ffi looks for under the same prefix in every library, and takes for data or for functions of its own."""

LIBRARIES_NOTE = "libraries"
"""Note of the metadata: names of the libraries that the native objects need, separated by spaces, as for `cc -l`."""

_DRIVERS = ("cc", "gcc", "clang")


_LIBRARIES = "lowering.vm_to_llvm.library"
"""The module with `library_objects`, if it is installed."""


def export_library(executable: ExecutableContents, path: str | PathLike[str]) -> None:
    """Links the native objects into the shared library `path`, of which others see the functions, and a text about
    their arguments, alone.

    On a processor without the instructions that the code may use, each call raises `RuntimeError` that names them.

    `ValueError` if the executable is not whole in native code of this kind of machine; `RuntimeError` if no linker is
    found or it fails.
    """
    _check_native(executable)
    command = linker()
    code = _library_objects(executable)
    with tempfile.TemporaryDirectory() as folder:
        objects: list[str] = []
        for index, data in enumerate(code):
            position = Path(folder, f"{index}.o")
            position.write_bytes(data)
            objects.append(str(position))
        if constants := write_constants(executable.constants, Path(folder)):
            objects.append(str(constants))
        objects.append(str(write_text(SIGNATURES, _signatures(executable), Path(folder))))
        exported = Path(folder, "exported")
        exported.write_text(f"{{ global: {SYMBOL_PREFIX}*; {SIGNATURES}; local: *; }};\n")
        libraries = [f"-l{name}" for name in executable.metadata.notes.get(LIBRARIES_NOTE, "").split()]
        _run(
            [
                *command,
                "-shared",
                f"-Wl,--version-script={exported}",
                "-o",
                os.fspath(path),
                *objects,
                *libraries,
                "-lm",
                "-pthread",
            ]
        )


def _library_objects(executable: ExecutableContents) -> Sequence[bytes]:
    """The objects that a shared library is linked from: an executable's own, and what they need beside other libraries.

    `ValueError` for code of another architecture; `RuntimeError` if the package `lowering` is not installed.
    """
    try:
        provider = import_module(_LIBRARIES)
    except ImportError as error:
        raise RuntimeError(
            "compiled code needs a run-time support to be linked: install the package 'lowering'"
        ) from error
    return provider.library_objects(executable)


def _signatures(executable: ExecutableContents) -> str:
    """How functions are called, as JSON: names and types of parameters and results, and the note of the metadata."""
    functions = (executable.functions[executable.function_index[name]] for name in executable.entries)
    said = {
        each.name: (each.parameters, each.result_names, each.types.parameters, each.types.result) for each in functions
    }
    return json.dumps({"functions": said, SIGNATURES_NOTE: executable.metadata.notes.get(SIGNATURES_NOTE, "")})


def linker() -> list[str]:
    """The command that links: `$CC`, or the C compiler driver of the system; `RuntimeError` if there is none."""
    if chosen := os.environ.get("CC"):
        return chosen.split()
    for driver in _DRIVERS:
        if found := shutil.which(driver):
            return [found]
    raise RuntimeError(
        f"export_library needs a linker: install one of {', '.join(_DRIVERS)}, or set CC; "
        "save() writes a file that needs none"
    )


def _check_native(executable: ExecutableContents) -> None:
    bytecode = [name for name in executable.entries if _kind(executable, name) is FunctionKind.BYTECODE]
    if bytecode:
        raise ValueError(f"export_library: no native code for {', '.join(bytecode)}: build with mode native")
    if not executable.native:
        raise ValueError("export_library: the executable has no native code: build with mode native")
    for name in executable.entries:
        _check_name(name)
    symbols = {symbol for native in executable.native for symbol in native.symbols}
    missing = [name for name in executable.entries if f"{SYMBOL_PREFIX}{name}" not in symbols]
    if missing:
        raise ValueError(f"export_library: the native code has no symbol {SYMBOL_PREFIX}{missing[0]}")


def _check_name(name: str) -> None:
    """`ValueError` for the few names that a function may have, but no function of a library."""
    if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
        raise ValueError(f"export_library: tvm-ffi takes {SYMBOL_PREFIX}{name} for its own, rename the function {name}")
    if "\0" in name or "@" in name:
        character, meaning = (
            ("a zero byte", "ends a symbol") if "\0" in name else ("@", "begins the version of a symbol")
        )
        raise ValueError(f"export_library: {character} {meaning} of a library, rename the function {name!r}")


def _kind(executable: ExecutableContents, name: str) -> FunctionKind:
    return executable.functions[executable.function_index[name]].kind


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"cannot run the linker {command[0]}: {error}") from error
    if done.returncode != 0:
        raise RuntimeError(f"the linker {command[0]} failed: {done.stderr.strip()}")
