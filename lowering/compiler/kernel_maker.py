"""Makes the kernels of a build: lowers a prim_func with its callees to LLVM IR, from the start of the list here, and,
if there are many, as text in a worker process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from lowering.context import make_context
from lowering.debug import Debug, debug_level, show
from lowering.llvm.background import Background, Compile, CompilerProcess, NoAnswerError
from lowering.llvm.binding import CodegenError
from lowering.llvm.code_cache import CodeCache, cache_key
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.llvm_text import llvm_text, spent_text
from lowering.parsing import parse_module
from lowering.runtime.loading import object_symbols
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.garbage import release
from tir_dialect.ops.calls import ROUTINE
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

if TYPE_CHECKING:
    from lowering.compiler.tuning_database import Choice, Record
    from lowering.tir_to_llvm.emitter import LoweringOptions


@dataclass(frozen=True)
class KernelOptions:
    """Options of the compilation of prim_funcs."""

    opt_level: int = 3
    """0 to 3, as in `-O3`."""

    contract: bool = True
    """Whether products are added to sums of products without being rounded, where the processor can."""

    schedule: bool = True
    """Whether functions are scheduled by `schedule-cpu`, which may reassociate sums, or keep their loops."""

    choice: Choice | None = None
    """How functions are scheduled instead; without it, tuning may have found something for each, or else by default."""

    record: Record | None = None
    """Where the choice is one that tuning found, what it measured: later versions of the rules may make other code."""

    def key(self) -> str:
        """What generated code depends on, for cache keys."""
        return f"O{self.opt_level} contract={self.contract} schedule={self.schedule}"

    def choice_key(self) -> str | None:
        """What the schedule depends on, for cache keys: where tuning has measured other code, it is the default one."""
        if self.choice is None:
            return None
        return self.choice.text() if self.record is None else f"{self.choice.text()} {self.record.code}"


DEFAULT_OPTIONS = KernelOptions()


def code_key(group: Sequence[PrimFuncOp], salt: str, choice: str | None, fingerprint: Fingerprint) -> str:
    """What the code of a function, with those that it calls, depends on; `salt` is what all code does."""
    parts = [salt, *(fingerprint(op, ("sym_name",) if op is group[0] else ()) for op in group)]
    return cache_key(parts if choice is None else [*parts, choice])


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel as loops and as llvm."""

    loops: ModuleOp
    code: ModuleOp

    routines: Mapping[str, Callable[[], str]]
    """The routines that it calls, by symbol: what gives the LLVM text of each."""

    @property
    def text(self) -> str:
        """LLVM text of the kernel."""
        return llvm_text(self.code)

    def release(self) -> None:
        """Frees what has become text."""
        release(self.loops)
        release(self.code)


def lower_kernel(group: Sequence[PrimFuncOp], symbol: str, target: Target, options: KernelOptions) -> LoweredKernel:
    """A function under another name, with those that it calls, all of which are left as they are.

    Raises `PassFailedException` at an op that has no lowering.
    """
    from lowering.kernels.emit.kernel import outside_modules
    from lowering.tir_to_llvm.calls import inner_name
    from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
    from lowering.tir_to_llvm.emitter import LoweringOptions

    copies = [function.clone() for function in group]
    copies[0].sym_name = StringAttr(symbol)
    for copy in copies[1:]:
        copy.sym_visibility = StringAttr("private")
    loops = ModuleOp(copies)
    with outside_modules() as found:
        if options.schedule:
            reasons = _schedule(copies, target, options)
            if debug_level() >= Debug.SCHEDULES:
                show(Debug.SCHEDULES, f"schedule of @{group[0].sym_name.data}{reasons}", str(loops))
    run_tir_passes(loops)
    lowering = LoweringOptions.of(target, options.contract)
    routines = {inner_name(name): partial(_routine_text, found, name, lowering) for name in found}
    return LoweredKernel(loops, lower_prim_funcs(copies, lowering, found), routines)


def _routine_text(found: Mapping[str, PrimFuncOp], name: str, lowering: LoweringOptions) -> str:
    from lowering.tir_to_llvm.convert_tir_to_llvm import lower_routine

    return spent_text(lower_routine(found[name], lowering))


def _schedule(group: Sequence[PrimFuncOp], target: Target, options: KernelOptions) -> str:
    """A choice is for the first function; those that it calls are scheduled as always. Says why, if there is more to
    say than the loops do.
    """
    from lowering.kernels.schedule_cpu import schedule

    reasons: list[str] = []

    for function in group:
        choice = options.choice if function is group[0] else None
        if choice is None:
            reasons.append(schedule(function, target) or "")
        elif options.record is not None:
            choice.schedule_as_measured(function, target, options.record.code, options.record.kernel)
            reasons.append(f"as measured by tuning, {choice.text()}")
        else:
            choice.schedule(function, target)
            reasons.append(choice.text())
    return "".join(f": {reason}" for reason in reasons if reason)


def tir_passes() -> tuple[ModulePass, ...]:
    """The passes that prim_funcs go through before they become llvm, in order."""
    from lowering.pipelines import TIRToFlatPass

    return TIRToFlatPass.passes()


def run_tir_passes(module: ModuleOp) -> None:
    """Runs `tir_passes` on a module in place."""
    for step in tir_passes():
        step.apply(Context(), module)


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
    *("lowering.kernels.compute_bound", "lowering.kernels.memory_bound"),
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
