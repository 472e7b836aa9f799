"""In-memory linking: object files are linked, relocated and ready to be called.

Objects are loaded by LLVM's ORC linker, which costs about 60 microseconds per object and loads any number at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lowering.llvm.binding import LibraryBuilder, ResourceTracker, llvm
from lowering.llvm.compiler import target_machine
from lowering.llvm.errors import CodegenError, caught_messages
from lowering.llvm.loading.elf import object_symbols
from tir_dialect.target import Target

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
