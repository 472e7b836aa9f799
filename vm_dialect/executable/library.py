"""Shared libraries: the native objects of an executable, linked so that `tvm_ffi.load_module` opens them, with
constants as assembler text and machine code for several targets.

The symbol `TABLE`, after the prefix of each target, is the address of an array of pairs, a name and a
`DLManagedTensorVersioned` (dlpack.h) that nobody frees, which a null name ends. Native code finds its constants there
when nobody hands them over. The symbol `SIGNATURES` is a C string, for `vm_dialect.load_library`.

The elements are in the library, or in a file beside it (`vm_dialect.executable.weight_file`): then `ROWS` is an array
of names, tensors and positions in the file, and `vm_dialect/executable/weights.c` puts addresses into the tensors.

Most constants are the same for all targets. One that is not, such as weights in the order in which kernels read them,
is there for each target, under a name of its own.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from errno import ENOENT
from importlib import import_module
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import tvm_ffi
from tvm_ffi import libinfo

from vm_dialect.executable.contents import ContentsT, ExecutableContents
from vm_dialect.executable.model import (
    BUILTIN_PREFIX,
    OBSERVE,
    PACKED_NOTE,
    SIGNATURES_NOTE,
    Constant,
    FunctionKind,
    same_constant,
)
from vm_dialect.executable.weight_file import SUFFIX, WeightFile
from vm_dialect.host_memory import ALIGNMENT
from vm_dialect.numpy_library import LIBRARY as NUMPY_FUNCTIONS
from vm_dialect.process import LIMIT_THREADS
from vm_dialect.tensors import tensor_element, to_numpy

_OWN = "\0for "
"""Between the name of a constant and the target that has one of its own; no text of a program has a zero byte."""


def merged(executables: Sequence[ContentsT]) -> ContentsT:
    """One executable for the targets of several, which have the same native functions; the first is preferred.

    `ValueError` for bytecode, whose instructions differ between targets.
    """
    first = executables[0]
    if any(each.metadata.mode != "native" for each in executables):
        raise ValueError("code for several targets expected mode native, got bytecode, which is for one")
    tables = [each.functions for each in executables]
    if any(table != first.functions for table in tables):
        raise ValueError("code for several targets expected the same functions for each")
    targets = ", ".join(each.metadata.target for each in executables)
    return replace(
        first,
        constants=tuple(_constants(executables)),
        code=(),
        native=tuple(item for each in executables for item in each.native),
        metadata=replace(first.metadata, target=targets),
        locations={},
        is_foreign=any(each.is_foreign for each in executables),
    )


def _constants(executables: Sequence[ExecutableContents]) -> Iterable[Constant]:
    common: dict[str, Constant] = {}
    for executable in executables:
        for constant in executable.constants:
            known = common.setdefault(constant.name, constant)
            if known is constant:
                yield constant
            elif not same_constant(known, constant):
                yield replace(constant, name=f"{constant.name}{_OWN}{executable.metadata.target}")


def constants_for(constants: Iterable[Constant], target: str) -> Mapping[str, Constant]:
    """The constants with names that code for a target uses, by the names that it uses."""
    found: dict[str, Constant] = {}
    own: dict[str, Constant] = {}
    for constant in constants:
        name, is_own, whose = constant.name.partition(_OWN)
        if not is_own and name:
            found[name] = constant
        elif whose == target:
            own[name] = constant
    return {**found, **own}


def objects_by_target(executable: ExecutableContents) -> Mapping[str, Sequence[bytes]]:
    """The machine code for each target, in the order of preference."""
    found: dict[str, list[bytes]] = {}
    for item in executable.native:
        found.setdefault(item.target, []).append(item.code)
    return found


TABLE = "relax_library_constants"
"""Name of the symbol."""

SIGNATURES = "relax_library_signatures"
"""Name of the symbol of the text that says how functions are called."""

SET_WEIGHT, WEIGHTS_FROM = "relax_set_weight", "relax_weights_from"
"""Functions of libraries whose weights are elsewhere: one weight by name, and the path of the file with the others."""

ROWS, FILE = "relax_weight_rows", "relax_weight_file"
"""Names of the symbols about elements that are in a file: the rows, and its size and identity."""


def library_name(name: str) -> str:
    """The name of a constant as a C string, which ends at a zero byte: other names have other strings."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def write_constants(
    constants: Sequence[Constant], folder: Path, prefixes: Mapping[str, str], file: WeightFile | None = None
) -> Path | None:
    """Writes an assembler file, and beside it the data that it includes, for the named tensors among `constants`.

    There is a table for each target, whose symbol has its prefix. With a `file`, the elements are in that. `None` if
    there is nothing to say.
    """
    tensors = {each.name: each.value for each in constants if each.name and isinstance(each.value, tvm_ffi.Tensor)}
    if not tensors and file is None:
        return None
    index = {name: number for number, name in enumerate(tensors)}
    lines = [".data"]
    for name, tensor in tensors.items():
        if file is None:
            data = folder / f"constant{index[name]}.bin"
            to_numpy(tensor).tofile(data)
            lines += [f".balign {ALIGNMENT}", f'relax_data{index[name]}: .incbin "{_escaped(str(data))}"']
        lines += _tensor(index[name], tensor, "0" if file is not None else f"relax_data{index[name]}")
    for target, prefix in prefixes.items():
        used = [(name, each) for name, each in constants_for(constants, target).items() if each.name in tensors]
        lines += _table(prefix, [(name, index[each.name]) for name, each in used])
    if file is not None:
        lines += _rows(file, index)
    return _written(folder / "constants.s", lines)


def _table(prefix: str, rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    """The constants of one target: names and tensors."""
    yield f'.globl "{prefix}{TABLE}"'
    yield f'.balign 8\n"{prefix}{TABLE}": .quad "{prefix}relax_constant_table"\n"{prefix}relax_constant_table":'
    yield from (f'.quad "{prefix}relax_name{number}", relax_tensor{tensor}' for number, (_, tensor) in enumerate(rows))
    yield ".quad 0, 0"
    for number, (name, _) in enumerate(rows):
        yield f'"{prefix}relax_name{number}": .byte {_bytes(library_name(name).encode())}'


def _rows(file: WeightFile, index: Mapping[str, int]) -> Iterator[str]:
    yield f".globl {ROWS}, {FILE}\n.balign 8\n{ROWS}:"
    yield from (
        f".quad relax_row{number}, relax_tensor{number}, {file.offsets[name]}" for name, number in index.items()
    )
    yield f".quad 0, 0, 0\n{FILE}: .quad {file.size}\n.byte {', '.join(map(str, file.identity))}"
    yield from (f"relax_row{number}: .byte {_bytes(library_name(name).encode())}" for name, number in index.items())


def write_text(symbol: str, text: str, folder: Path) -> Path:
    """Writes an assembler file with a C string that has a name."""
    return _written(folder / f"{symbol}.s", [".data", f".globl {symbol}", f"{symbol}: .byte {_bytes(text.encode())}"])


def write_aliases(symbols: Mapping[str, str], folder: Path) -> Path:
    """Writes an assembler file with pointers that have names, to symbols of other files."""
    lines = [".data", ".balign 8"]
    for name, target in symbols.items():
        lines += [f'.globl "{name}"', f'"{name}": .quad "{target}"']
    return _written(folder / "aliases.s", lines)


def _written(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""]))
    return path


def _tensor(index: int, tensor: tvm_ffi.Tensor, data: str) -> Iterator[str]:
    """Shape and strides, and the DLPack record of version 1.3, of elements at `data`."""
    element = tensor_element(tensor)
    rank = len(tensor.shape)
    yield ".balign 8"
    yield f"relax_shape{index}: .quad {', '.join(map(str, (*tensor.shape, *tensor.strides, 0)))}"
    yield f"relax_tensor{index}: .long 1, 3"
    yield ".quad 0, 0, 0"
    yield f".quad {data}"
    yield f".long 1, 0, {rank}"
    yield f".byte {element.code}, {element.bits}, 1, 0"
    yield f".quad relax_shape{index}, relax_shape{index} + {8 * rank}, 0"


def _bytes(text: bytes) -> str:
    return ", ".join(map(str, text + b"\0"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_LIBRARIES = "lowering.vm_to_llvm.library"
"""The module with `library_code`, if it is installed."""

LIBRARY_BUILTINS = frozenset(
    f"{BUILTIN_PREFIX}{name}"
    for name in (
        "fail",
        "get_packed_func",
        "new_tensor_of_shape",
        "nonzero",
        "print",
        "shape_from_tensor",
        "shape_to_tensor",
        "unique",
    )
)
"""The builtins that native code calls by name and that a library has in native code, too."""


@dataclass(frozen=True)
class LibraryCode:
    """What a shared library is linked from."""

    objects: Sequence[bytes]
    """Those of the executable, what they need beside other libraries, and what chooses among targets."""
    prefixes: Mapping[str, str]
    """Before the symbols of the code for each target."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """C files by name, which the linker's driver compiles."""


def library_code(executable: ExecutableContents) -> LibraryCode:
    """What a shared library of an executable is linked from.

    `RuntimeError` if the package `lowering` is not installed.
    """
    try:
        provider = import_module(_LIBRARIES)
    except ImportError as error:
        raise RuntimeError(
            "compiled code needs a run-time support to be linked: install the package 'lowering'"
        ) from error
    return provider.library_code(executable)


SYMBOL_PREFIX = "__tvm_ffi_"
"""A library exports a function `f` of the packed calling convention under this prefix and its name."""

REFUSAL = "relax_library_refusal"
"""Name of the symbol of a function that says why the library does not run on this processor, or gives null."""

_RESERVED = frozenset({"_library_ctx", "_library_bin", SET_WEIGHT, WEIGHTS_FROM})
_RESERVED_PREFIXES = ("_metadata_", "_doc_")
"""What tvm-ffi looks for under the same prefix in every library, and takes for data or for functions of its own; and
functions of every library with weights elsewhere."""

LIBRARIES_NOTE = "libraries"
"""Note of the metadata: names of the libraries that the native objects need, separated by spaces, as for `cc -l`."""

_DRIVERS = ("cc", "gcc", "clang")
"""For code of this machine; for another one it is that of the GNU cross compilers."""


Weights: TypeAlias = Literal["inside", "beside", "given"]
"""Where the elements of constants are: in the library; in a file beside it, which is mapped; or given when the library
is loaded, as such a file or as tensors."""

_HOST_FUNCTIONS = (*NUMPY_FUNCTIONS, "relax.strings.", "tvm.contrib.sort.")
"""Packed functions that this package has in Python, or the beginning of their names."""


def export_library(
    executable: ExecutableContents,
    path: str | PathLike[str],
    *,
    weights: Weights = "inside",
    host: Collection[str] = (),
) -> None:
    """Links the native objects into the shared library `path`, of which others see the functions, a text about their
    arguments, and what limits threads, alone.

    With weights `beside`, they are written to `path` with `.weights`. `host` names packed functions that whoever loads
    the library registers, though this package has them in Python.

    The linker is `$CC`, or else the C compiler driver of the system for the architecture of the code, which may be
    another one than that of this machine.

    On a processor without the instructions that the code may use, each call raises `RuntimeError` that names them.

    `ValueError` if the executable is not whole in native code of one architecture, or calls functions that a library
    cannot have; `OSError` if there is no such folder; `RuntimeError` if no linker is found or it fails.
    """
    if weights not in get_args(Weights):
        raise ValueError(f"weights expected inside, beside or given, got {weights}")
    if not (parent := Path(path).absolute().parent).is_dir():  # of which the linker would speak in its own words
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(parent))
    _check_native(executable)
    # `ValueError` that names the functions which only a process with this package has.
    called: Sequence[str] = json.loads(executable.metadata.notes.get(PACKED_NOTE, "[]"))
    python = [name for name in called if name not in host and _is_python(name)]
    if python:
        names = ", ".join(python)
        raise ValueError(
            f"export_library: {names} {'is' if len(python) == 1 else 'are'} written in Python, and a library has no "
            f"Python: {_ADVICE.get(python[0], _USUAL_ADVICE)}, or say that whoever loads the library registers it "
            f"(host=[{python[0]!r}])"
        )
    # The architecture of the machine code; `ValueError` if there are several.
    names = dict.fromkeys(item.target.partition("-")[0] for item in executable.native if "-" in item.target)
    if len(names) > 1:
        raise ValueError(f"export_library: a library is for one architecture, and the code for {' and '.join(names)}")
    command = linker(next(iter(names), platform.machine()))
    code = library_code(executable)
    file = None if weights == "inside" else WeightFile.of(executable.constants)
    with tempfile.TemporaryDirectory() as folder, _replaced(Path(path)) as made:
        inputs = [*_objects(code, Path(folder)), *_data(executable, code, Path(folder), file)]
        libraries = [f"-l{name}" for name in executable.metadata.notes.get(LIBRARIES_NOTE, "").split()]
        exported = Path(folder, "exported")
        # As a pattern, since LLD wants every name to be there, and code for all processors refuses none.
        names = f"{SYMBOL_PREFIX}*; {SIGNATURES}; {REFUSAL}*; *{LIMIT_THREADS}"
        exported.write_text(f"{{ global: {names}; local: *; }};\n")
        options = ["-shared", "-fPIC", "-O1", f"-I{libinfo.find_include_path()}", f"-Wl,--version-script={exported}"]
        _run([*command, *options, "-o", str(made), *inputs, *libraries, "-lm", "-ldl", "-pthread"])
        if file is not None and weights == "beside":
            file.write(executable.constants, f"{os.fspath(path)}{SUFFIX}")


@contextmanager
def _replaced(path: Path) -> Generator[Path]:
    """Another name in the same folder, of which the file takes the one that is there at the end: processes keep what
    they have loaded.
    """
    temporary = path.parent / f".{path.name[:50]}.{secrets.token_hex(8)}"
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _objects(code: LibraryCode, folder: Path) -> Iterator[str]:
    """Object files and C files."""
    for index, data in enumerate(code.objects):
        position = folder / f"{index}.o"
        position.write_bytes(data)
        yield str(position)
    for name, text in code.sources.items():
        position = folder / name
        position.write_text(text, encoding="utf-8")
        yield str(position)


def _data(executable: ExecutableContents, code: LibraryCode, folder: Path, file: WeightFile | None) -> Iterator[str]:
    """Assembler files with constants and texts, and what provides elements that are elsewhere."""
    if constants := write_constants(executable.constants, folder, code.prefixes, file):
        yield str(constants)
    # How functions are called, as JSON: names and types of parameters and results, and the note of the metadata.
    functions = (executable.functions[executable.function_index[name]] for name in executable.entries)
    said = {
        each.name: (each.parameters, each.result_names, each.types.parameters, each.types.result) for each in functions
    }
    yield str(
        write_text(
            SIGNATURES,
            json.dumps({"functions": said, SIGNATURES_NOTE: executable.metadata.notes.get(SIGNATURES_NOTE, "")}),
            folder,
        )
    )
    aliases: dict[str, str] = {}
    if file is not None:
        aliases |= {f"{prefix}relax_library_weights": "relax_weights_ready" for prefix in code.prefixes.values()}
        source = folder / "weights.c"
        source.write_text((files("vm_dialect.executable") / "weights.c").read_text(encoding="utf-8"), encoding="utf-8")
        yield str(source)
    if code.sources:
        aliases |= {f"{prefix}relax_library_functions": "relax_builtins" for prefix in code.prefixes.values()}
    if aliases:
        yield str(write_aliases(aliases, folder))


_USUAL_ADVICE = "keep the operator out of the model, or save() an executable and run it with this package"
_ADVICE = {
    OBSERVE: "it tells Python of each call: build it without instrument=True",
    "vm.builtin.run_deferred": "it compiles operators on tensors of unknown rank or dtype at run time: declare these "
    "(relax.match_cast, --shape)",
}


def _is_python(name: str) -> bool:
    if name.startswith(BUILTIN_PREFIX):
        return name not in LIBRARY_BUILTINS
    return name.startswith(_HOST_FUNCTIONS)


def linker(architecture: str) -> list[str]:
    """The command that links code for an architecture: `$CC`, or the C compiler driver of the system for it.

    `RuntimeError` if there is none, or it says that it is for another architecture.
    """
    is_ours = architecture == platform.machine()
    drivers = _DRIVERS if is_ours else (f"{architecture}-linux-gnu-gcc",)
    advice = (
        f"install {'one of ' if is_ours else ''}{', '.join(drivers)}, or set CC"
        + (
            ""
            if is_ours
            else f", such as CC='python -m ziglang cc -target {architecture}-linux-gnu' (pip install ziglang)"
        )
        + "; save() writes a file that needs none"
    )
    if chosen := os.environ.get("CC"):
        command = shlex.split(chosen)
        made = architecture if is_ours else _machine_of(command)
        if made is not None and made.partition("-")[0] != architecture:
            raise RuntimeError(f"the linker {chosen} makes code for {made}, and this is for {architecture}: {advice}")
        return command
    if (found := next(filter(None, map(shutil.which, drivers)), None)) is None:
        raise RuntimeError(f"export_library needs a linker for {architecture}: {advice}")
    return [found]


def _machine_of(command: Sequence[str]) -> str | None:
    """The triple that a compiler driver says it makes code for; `None` if it says nothing, as for `-target
    aarch64-linux-gnu.2.28` of Zig.
    """
    with suppress(RuntimeError):
        return _run([*command, "-dumpmachine"]).strip() or None
    return None


def _check_native(executable: ExecutableContents) -> None:
    bytecode = [
        name
        for name in executable.entries
        if executable.functions[executable.function_index[name]].kind is FunctionKind.BYTECODE
    ]
    if bytecode:
        raise ValueError(f"export_library: no native code for {', '.join(bytecode)}: build with mode native")
    if not executable.native:
        raise ValueError("export_library: the executable has no native code: build with mode native")
    for name in executable.entries:
        # `ValueError` for the few names that a function may have, but no function of a library.
        if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
            raise ValueError(
                f"export_library: {SYMBOL_PREFIX}{name} is something else there, rename the function {name}"
            )
        if "\0" in name or "@" in name:
            character, meaning = (
                ("a zero byte", "ends a symbol") if "\0" in name else ("@", "begins the version of a symbol")
            )
            raise ValueError(f"export_library: {character} {meaning} of a library, rename the function {name!r}")
    symbols = {symbol for native in executable.native for symbol in native.symbols}
    missing = [name for name in executable.entries if f"{SYMBOL_PREFIX}{name}" not in symbols]
    if missing:
        raise ValueError(f"export_library: the native code has no symbol {SYMBOL_PREFIX}{missing[0]}")


def _run(command: Sequence[str]) -> str:
    """What it writes; `RuntimeError` if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"cannot run the linker {command[0]}: {error}") from error
    if done.returncode != 0:
        raise RuntimeError(f"the linker {command[0]} failed: {done.stderr.strip()}")
    return done.stdout
