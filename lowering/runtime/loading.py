"""Loading of machine code: the symbols of ELF objects, in-memory linking, and the resolution of external symbols in the
C library, libm, tvm-ffi and our own runtime.

Objects are loaded by LLVM's ORC linker, which costs about 60 microseconds per object and loads any number at once.

Each name is looked up explicitly in a fixed order of libraries; nothing depends on what else the process has loaded.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

from lowering.llvm.binding import CodegenError, LibraryBuilder, ResourceTracker, caught_messages, llvm
from lowering.llvm.compiler import target_machine
from lowering.runtime.support import SUPPORT, support_object
from tir_dialect.target import Target


@dataclass(frozen=True)
class ObjectSymbols:
    """Names in an object file."""

    defined: tuple[str, ...]
    """Global functions and data that others may use."""

    undefined: tuple[str, ...]
    """What has to be found elsewhere."""


_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_OFFSET = 0x18
"""Where a section header has the offset of the section in the file, and the size after it."""

_SYMTAB = 2
_LOCAL = 0


def object_symbols(data: bytes) -> ObjectSymbols:
    """Reads the symbol table of a 64-bit little-endian ELF object.

    Raises `CodegenError` if the bytes are no such object or are cut off.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise CodegenError("expected a 64-bit little-endian ELF object")
    try:
        symbols = [symbol for table in _symbol_tables(data) for symbol in _global_symbols(data, table)]
        return ObjectSymbols(
            tuple(symbol.name for symbol in symbols if symbol.is_defined),
            tuple(symbol.name for symbol in symbols if not symbol.is_defined),
        )
    except (struct.error, IndexError, ValueError) as error:
        raise CodegenError(f"damaged ELF object: {error}") from error


def renamed(data: bytes, names: Mapping[str, str]) -> bytes:
    """The object with other names for some of its global symbols.

    The new names follow the old ones in a copy of the string table at the end of the file: others may share the bytes
    of an old one. Raises `CodegenError` as `object_symbols` does.
    """
    if names.keys().isdisjoint((table := object_symbols(data)).defined + table.undefined):
        return data
    result = bytearray(data)
    for section in _symbol_tables(data):
        header = _section_offset(data, section.link)
        start, size = struct.unpack_from("<QQ", data, header + _OFFSET)
        strings = bytearray(data[start : start + size])
        for symbol in _global_symbols(data, section):
            if (name := names.get(symbol.name)) is not None:
                struct.pack_into("<I", result, symbol.position, len(strings))
                strings += name.encode() + b"\0"
        struct.pack_into("<QQ", result, header + _OFFSET, len(result), len(strings))
        result += strings
    return bytes(result)


class _SymbolTable(NamedTuple):
    offset: int
    size: int
    link: int
    """The index of the section with the names."""


class _Symbol(NamedTuple):
    position: int
    """Where it stands in the file."""
    name: str
    is_defined: bool


def _section_offset(data: bytes, index: int) -> int:
    (table_offset,) = struct.unpack_from("<Q", data, 0x28)
    (entry_size,) = struct.unpack_from("<H", data, 0x3A)
    return table_offset + index * entry_size


def _symbol_tables(data: bytes) -> Iterator[_SymbolTable]:
    (count,) = struct.unpack_from("<H", data, 0x3C)
    for index in range(count):
        _, kind, _, _, offset, size, link, _, _, _ = _SECTION.unpack_from(data, _section_offset(data, index))
        if kind == _SYMTAB:
            yield _SymbolTable(offset, size, link)


def _global_symbols(data: bytes, table: _SymbolTable) -> Iterator[_Symbol]:
    (strings,) = struct.unpack_from("<Q", data, _section_offset(data, table.link) + _OFFSET)
    for position in range(table.offset, table.offset + table.size, _SYMBOL.size):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(data, position)
        if name and info >> 4 != _LOCAL:
            end = data.index(b"\0", strings + name)
            yield _Symbol(position, data[strings + name : end].decode(), section != 0)


_library_numbers = itertools.count()
_SESSION = "JIT session error: "
"""Before what LLVM's linker says about its work."""

LIBRARIES_PER_LINKER = 32
"""LLVM's linker keeps some kilobytes of each library after its code is released. It goes itself when all of them are
released and another linker has replaced it, which takes as long to make as three libraries."""


@dataclass(frozen=True)
class LoadedCode:
    """Machine code in memory; it is released when the last reference to this object goes."""

    symbols: Mapping[str, int]
    """Address of every function and datum that the objects define."""

    _tracker: ResourceTracker | None = field(repr=False)
    _linker: object = field(repr=False)
    _keep_alive: object = field(repr=False)

    def address(self, name: str) -> int:
        """The address of a function; raises `KeyError` with the names there are."""
        try:
            return self.symbols[name]
        except KeyError:
            known = ", ".join(sorted(self.symbols)) or "none"
            raise KeyError(f'no function "{name}" in the loaded code, there are {known}') from None


def link(
    objects: Sequence[bytes], addresses: Callable[[Sequence[str]], Mapping[str, int]], keep_alive: object = None
) -> LoadedCode:
    """Link objects with each other and with what `addresses` finds for the names that none of them defines.

    `keep_alive` is held as long as the code: whatever owns the memory after the addresses.

    Raises `CodegenError` for damaged objects and for a name that two objects define, and what `addresses` raises.
    """
    tables = [object_symbols(data) for data in objects]
    defined = [name for table in tables for name in table.defined]
    if len(set(defined)) != len(defined):
        twice = sorted({name for name in defined if defined.count(name) > 1})
        raise CodegenError(f"symbols {', '.join(twice)} are defined by more than one object")
    needed = {name for table in tables for name in table.undefined} - set(defined)
    if not objects:
        return LoadedCode({}, None, None, keep_alive)
    builder = llvm().JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    for name, address in addresses(sorted(needed)).items():
        builder.import_symbol(name, address)
    for name in defined:
        builder.export_symbol(name)
    tracker, linker = _linked(builder)
    return LoadedCode({name: tracker[name] for name in defined}, tracker, linker, keep_alive)


def _linked(builder: LibraryBuilder) -> tuple[ResourceTracker, object]:
    """The code in memory, and its linker.

    LLVM's error has the names of what could not be made; the reason goes to stderr. So what failed is done again, to
    read there why, and succeeds where the reason has gone.
    """

    def attempt() -> tuple[ResourceTracker, object]:
        number = next(_library_numbers)
        linker = _linker(number // LIBRARIES_PER_LINKER)
        return builder.link(linker, f"relax.{number}"), linker

    try:
        return attempt()
    except RuntimeError:
        reasons: list[str] = []
        try:
            with caught_messages() as reasons:
                return attempt()
        except RuntimeError as error:
            raise CodegenError(f"cannot link: {_reason(reasons) or str(error).strip()}") from error


def _reason(lines: Sequence[str]) -> str:
    """The first error among LLVM's messages: others follow from it."""
    return next((line.partition(_SESSION)[2].strip() for line in lines if _SESSION in line), "")


@lru_cache(maxsize=1)
def _linker(turn: int) -> object:
    """The linker of so many libraries, one after the other."""
    return llvm().create_lljit_compiler(target_machine(Target.host()), use_jit_link=True)


def resolve_symbols(names: Iterable[str], extra: Mapping[str, int] | None = None) -> dict[str, int]:
    """Addresses of `names`: from `extra` first, then from the run-time libraries.

    Raises `CodegenError` that lists every name that is nowhere.
    """
    known = extra or {}
    found: dict[str, int] = {}
    missing: list[str] = []
    for name in names:
        address = known[name] if name in known else library_symbol(name)
        if address is None:
            missing.append(name)
        else:
            found[name] = address
    if missing:
        where = "not in libc, libm, tvm-ffi or OpenMP, pass their addresses"
        raise CodegenError(f"undefined symbols {', '.join(sorted(missing))}: {where}")
    return found


@cache
def library_symbol(name: str) -> int | None:
    """The address of a function of the run-time libraries, or None."""
    for support in SUPPORT:
        if name in support.symbols:
            return _loaded(support.text()).symbols[name]
    if name in _OPENMP_STAND_INS:
        library = openmp_library()
        if library is not None:
            return _lookup(library, name)
        return ctypes.cast(_OPENMP_STAND_INS[name], ctypes.c_void_p).value
    if name.startswith("TVMFFI"):
        return _lookup(_tvm_ffi(), name)
    addresses = (_lookup(library, name) for library in _system_libraries())
    return next((address for address in addresses if address is not None), None)


@cache
def _loaded(text: str) -> LoadedCode:
    """The functions of a text of the support, in this process; what they call themselves is of the C library."""
    return link([support_object(text)], resolve_symbols)


def _lookup(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


@cache
def _tvm_ffi() -> ctypes.CDLL:
    from tvm_ffi import libinfo

    return ctypes.CDLL(libinfo.find_libtvm_ffi())


# libgcc converts half floats on processors that cannot.
_SYSTEM_LIBRARIES = ("libm.so.6", "libc.so.6", "libgcc_s.so.1", "libSystem.dylib")
_OPENMP_LIBRARIES = ("libgomp.so.1", "libgomp.so", "libgomp.dylib", "libomp.so.5", "libomp.so", "libomp.dylib")


def _open(names: Iterable[str]) -> Iterable[ctypes.CDLL]:
    for name in names:
        try:
            yield ctypes.CDLL(name)
        except OSError:
            continue


@cache
def _system_libraries() -> tuple[ctypes.CDLL, ...]:
    return tuple(_open(_SYSTEM_LIBRARIES))


@cache
def openmp_library() -> ctypes.CDLL | None:
    """An OpenMP run time with GNU's entry points, or None after one line on stderr that says so."""
    for library in _open(_OPENMP_LIBRARIES):
        if hasattr(library, "GOMP_parallel"):
            return library
    print("xdsl-relax: no OpenMP run time (libgomp) found, parallel loops run on one thread", file=sys.stderr)
    return None


_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _run_serially(body: int, data: int, threads: int, flags: int) -> None:
    _BODY(body)(data)


def _ignore(threads: int) -> None:
    """The number of threads stays 1."""


# For a machine without OpenMP: a parallel region is one call of its body, by thread 0 of 1.
_OPENMP_STAND_INS: dict[str, Any] = {
    "GOMP_parallel": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(
        _run_serially
    ),
    "omp_get_thread_num": ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0),
    "omp_get_num_threads": ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1),
    "omp_get_max_threads": ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1),
    "omp_set_num_threads": ctypes.CFUNCTYPE(None, ctypes.c_int)(_ignore),
}


def load_objects(
    objects: Sequence[bytes], symbols: Mapping[str, int] | None = None, keep_alive: object = None
) -> LoadedCode:
    """Link objects with each other, with `symbols` (name to address) and with the run-time libraries.

    `keep_alive` is held as long as the code: whatever owns the memory after `symbols`.

    Raises `CodegenError` for damaged objects, for a name that two objects define and for undefined symbols.
    """
    return link(objects, lambda names: resolve_symbols(names, symbols), keep_alive)
