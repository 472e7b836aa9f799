"""Makes the kernels of a build: from the start of the list here, and, if there are many, as text in a worker
process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

from xdsl.context import Context

from lowering.compiler.debug import Debug, debug_level
from lowering.compiler.kernels.kernel_lowering import (
    CodeMaker,
    KernelOptions,
    SharedRoutines,
    code_key,
    finished,
    lower_kernel,
    tir_passes,
)
from lowering.context import make_context
from lowering.llvm.background import CompilerProcess, NoAnswerError
from lowering.llvm.binding import CodegenError
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.parsing import parse_module
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.garbage import release
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

MANY_KERNELS = 8
"""So many take as long as another process until it has loaded what makes them."""


@dataclass(frozen=True)
class Kernel:
    """A function that is to be compiled, with those that it calls."""

    key: str
    """What its code depends on."""
    group: Sequence[PrimFuncOp]
    symbol: str
    options: KernelOptions


@dataclass
class KernelMaker:
    """Distributes kernels between this process and a worker: half of the work is in Python, which runs one thread at a
    time.
    """

    maker: CodeMaker
    routines: SharedRoutines
    salt: str
    _waiting: deque[Kernel] = field(default_factory=deque[Kernel], init=False)

    def make(
        self, kernels: Collection[Kernel], begin: Callable[[int, Kernel], None], after_first: Callable[[], object]
    ) -> dict[str, Future[bytes]]:
        """Object files by symbol, from the cache or perhaps still being made; all kernels are lowered afterwards.

        `begin` is told how many are done or being made, and which is next here; `after_first` is done once LLVM has
        one to work on. Raises `PassFailedException` at an op that has no lowering, of the first kernel with such an op.
        """
        made = {kernel.symbol: finished(data) for kernel in kernels if (data := self._stored(kernel)) is not None}
        self._waiting.extend(kernel for kernel in kernels if kernel.symbol not in made)
        elsewhere = self.maker.background.beside(self._elsewhere) if len(self._waiting) > MANY_KERNELS else None
        try:
            while (kernel := self._next(self._waiting.popleft)) is not None:
                begin(len(kernels) - len(self._waiting) - 1, kernel)
                made[kernel.symbol] = self._start(kernel)
                after_first()
                after_first = _nothing
        finally:
            self._waiting.clear()
        if elsewhere is not None:
            others, left = elsewhere.result()
            made |= others | {kernel.symbol: self._start(kernel) for kernel in reversed(left)}
        return {kernel.symbol: made[kernel.symbol] for kernel in kernels}

    def _stored(self, kernel: Kernel) -> bytes | None:
        if debug_level() >= Debug.SCHEDULES:  # to be shown, a kernel has to be made
            return None
        data = self.maker.cache.get(kernel.key)
        return data if data is not None and self.routines.are_there_for(data) else None

    def _start(self, kernel: Kernel) -> Future[bytes]:
        """LLVM makes it while its routines are written, and other kernels prepared."""
        lowered = lower_kernel(kernel.group, kernel.symbol, self.maker.target, kernel.options)
        data = self.maker.start(lowered.text, kernel.key)
        self.routines.add(lowered.routines)
        lowered.release()
        return data

    def _elsewhere(self, process: CompilerProcess) -> tuple[dict[str, Future[bytes]], list[Kernel]]:
        """What another process has made, and what it could not make, the last first."""
        made: dict[str, Future[bytes]] = {}
        left: list[Kernel] = []
        while (kernel := self._next(self._waiting.pop)) is not None:
            try:
                made[kernel.symbol] = finished(self._ask(process, kernel))
            except (NoAnswerError, CodegenError):
                left.append(kernel)
        return made, left

    @staticmethod
    def _next(take: Callable[[], Kernel]) -> Kernel | None:
        try:
            return take()
        except IndexError:
            return None

    def _ask(self, process: CompilerProcess, kernel: Kernel) -> bytes:
        # Not at the top: it is for many kernels only.

        if kernel.options.choice is not None:
            raise NoAnswerError("choices stay here")
        text = sent(kernel.group, kernel.key, self.salt, kernel.symbol, self.maker.target, kernel.options)
        code = process.ask(compile_kernel, text, frozenset(self.routines.objects))
        self.maker.cache.put(kernel.key, code.data)
        self.routines.add({symbol: lambda text=text: text for symbol, text in code.routines.items()})
        return code.data


def load_elsewhere(process: CompilerProcess, target: Target) -> None:
    """Has the process load what makes kernels, before there is one."""
    with suppress(NoAnswerError, CodegenError):
        process.ask(load, target)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class KernelText:
    """A request: a kernel, to be scheduled by the default rules."""

    text: str
    key: str
    salt: str
    symbol: str
    target: Target
    options: KernelOptions


@dataclass(frozen=True)
class KernelCode:
    """The reply."""

    data: bytes
    """The object file."""

    routines: Mapping[str, str]
    """LLVM text of routines that it calls, by symbol."""


def sent(
    group: Sequence[PrimFuncOp], key: str, salt: str, symbol: str, target: Target, options: KernelOptions
) -> KernelText:
    """A function, with those that it calls, in words."""
    return KernelText("\n".join(map(str, group)), key, salt, symbol, target, options)


def compile_kernel(kernel: KernelText, known: frozenset[str]) -> KernelCode:
    """Schedules, lowers and compiles; routines that are known are left out.

    Raises `ValueError` if the text has lost something that the code depends on.
    """
    module = parse_module(kernel.text, ctx=_context())
    group = [op for op in module.ops if isinstance(op, PrimFuncOp)]
    if code_key(group, kernel.salt, None, Fingerprint()) != kernel.key:
        raise ValueError("the text of a kernel is read as another one")
    lowered = lower_kernel(group, kernel.symbol, kernel.target, kernel.options)
    text = lowered.text
    routines = {symbol: give() for symbol, give in lowered.routines.items() if symbol not in known}
    lowered.release()
    release(module)
    return KernelCode(compile_object(text, kernel.target, CompileOptions(kernel.options.opt_level)), routines)


_SMALLEST = "define void @nothing() {\n  ret void\n}\n"
_LOADED = (
    *("lowering.kernels.schedule_cpu", "lowering.tir_to_llvm.convert_tir_to_llvm"),
    *("lowering.kernels.cpu.compute_bound", "lowering.kernels.cpu.memory_bound"),
)


def load(target: Target) -> None:
    """Loads what makes kernels, and the parts of LLVM that any code needs."""
    for name in _LOADED:
        import_module(name)
    tir_passes()
    _context()
    compile_object(_SMALLEST, target, CompileOptions())


@cache
def _context() -> Context:
    return make_context()
