"""Routines shared by kernels: each is one object, compiled once per build and cached separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from lowering.cache.code_cache import CodeCache, cache_key
from lowering.compiler.debug import Debug, debug_level
from lowering.llvm.background import Background, Compile
from lowering.llvm.compiler import CompileOptions
from lowering.llvm.loading.elf import object_symbols
from tir_dialect.ops.calls import ROUTINE
from tir_dialect.target import Target


@dataclass(frozen=True)
class CodeMaker:
    """Has objects compiled in the background, and stores them."""

    background: Background
    cache: CodeCache
    target: Target
    options: CompileOptions

    def start(self, text: str, key: str) -> Future[bytes]:
        """The object of LLVM text, which is stored under a key."""

        def work(compile: Compile) -> bytes:
            data = compile(text, self.target, self.options)
            self.cache.put(key, data)
            return data

        return self.background.submit_code(work, len(text))


def finished(data: bytes) -> Future[bytes]:
    """An object that is there."""
    found: Future[bytes] = Future()
    found.set_result(data)
    return found


@dataclass(frozen=True)
class SharedRoutines:
    """The routines of the kernels of a build."""

    maker: CodeMaker
    salt: str
    """What all code depends on; a routine has no other facts than its name."""
    objects: dict[str, Future[bytes]] = field(default_factory=dict[str, "Future[bytes]"])
    """Object file by the symbol that it defines."""

    def are_there_for(self, kernel: bytes) -> bool:
        """Whether all routines that a kernel's object calls are stored or being made."""
        return all(self._is_there(name) for name in object_symbols(kernel).undefined if name.startswith(ROUTINE))

    def add(self, routines: Mapping[str, Callable[[], str]]) -> None:
        """Sees to it that there are these, of which it has the symbols and what gives LLVM text."""
        for symbol, text in routines.items():
            if not self._is_there(symbol):
                self.objects[symbol] = self.maker.start(text(), self._key(symbol))

    def _is_there(self, symbol: str) -> bool:
        if debug_level() < Debug.SCHEDULES and symbol not in self.objects:
            data = self.maker.cache.get(self._key(symbol))
            if data is not None:
                self.objects[symbol] = finished(data)
        return symbol in self.objects

    def _key(self, symbol: str) -> str:
        return cache_key([self.salt, "routine", symbol])
