"""Makes the kernels of a build: here from the start of the list, and, if there are many, in a worker process from its
end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from lowering.compiler.debug import Debug, debug_level
from lowering.compiler.kernels.kernel_lowering import KernelOptions, lower_kernel
from lowering.compiler.kernels.routines import CodeMaker, SharedRoutines, finished
from lowering.llvm.compiler_process import CompilerProcess, NoAnswerError
from lowering.llvm.errors import CodegenError
from tir_dialect.ops.function import PrimFuncOp

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
        from lowering.compiler.kernels.distant_kernels import compile_kernel, sent

        if kernel.options.choice is not None:
            raise NoAnswerError("choices stay here")
        text = sent(kernel.group, kernel.key, self.salt, kernel.symbol, self.maker.target, kernel.options)
        code = process.ask(compile_kernel, text, frozenset(self.routines.objects))
        self.maker.cache.put(kernel.key, code.data)
        self.routines.add({symbol: lambda text=text: text for symbol, text in code.routines.items()})
        return code.data


def load_elsewhere(process: CompilerProcess) -> None:
    """Has the process load what makes kernels, before there is one."""
    from lowering.compiler.kernels.distant_kernels import load

    with suppress(NoAnswerError):
        process.ask(load)


def _nothing() -> None:
    pass
