"""The virtual machine: runs an executable, and says how long calls take."""

from __future__ import annotations

import json
import statistics
import weakref
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from threading import local
from time import perf_counter_ns
from typing import Any, cast

import tvm_ffi

from vm_dialect import messages
from vm_dialect.arguments import Arguments, Signature, register_tensor_class, signatures, with_names
from vm_dialect.builtins import BUILTINS, register_globals
from vm_dialect.builtins.memory import foreign_builtin
from vm_dialect.callee import Callee, ClosureTable, have_names, suggest_conversion
from vm_dialect.errors import StepLimitError, UntrustedError, register_error_types
from vm_dialect.executable import Executable, FunctionInfo, FunctionKind
from vm_dialect.executable.model import BUILTIN_PREFIX, OBSERVE, OBSERVED_NOTE
from vm_dialect.loading import LimitedFunction, LoadedCode, Loader, default_loader
from vm_dialect.numpy_library import LIBRARY
from vm_dialect.process import ThreadLimit, checked_threads
from vm_dialect.profiler import Peaks, Profile, Profiler
from vm_dialect.program import Code, Resolver, Site, prepare
from vm_dialect.thread import Decision, Instrument, Thread


@dataclass(frozen=True)
class Timings:
    """The times of a function, in seconds for a call."""

    results: tuple[float, ...]
    """The mean of each repetition."""

    @property
    def mean(self) -> float:
        """The mean of all repetitions."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """The shortest."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The longest."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of the repetitions."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        named = ("min", self.min), ("median", self.median), ("mean", self.mean), ("max", self.max)
        return ", ".join(f"{name} {1e6 * seconds:.1f} us" for name, seconds in named)


def evaluator(
    function: Callable[..., Any], number: int, repeat: int, min_repeat_ms: float = 0.0
) -> Callable[..., Timings]:
    """A function that takes the arguments of `function`, and calls it `repeat` times `number` times.

    One call before is not counted. `number` grows until a repetition takes `min_repeat_ms` milliseconds. `ValueError`
    for numbers below 1.
    """
    if number < 1 or repeat < 1:
        raise ValueError(f"expected number and repeat of at least 1, got {number} and {repeat}")

    def elapsed(count: int, arguments: tuple[Any, ...]) -> int:
        begin = perf_counter_ns()
        for _ in range(count):
            function(*arguments)
        return perf_counter_ns() - begin

    def evaluate(*arguments: Any) -> Timings:
        function(*arguments)
        count = number
        while min_repeat_ms > 0 and elapsed(count, arguments) < 1e6 * min_repeat_ms:
            count *= 2
        return Timings(tuple(1e-9 * elapsed(count, arguments) / count for _ in range(repeat)))

    return evaluate


register_error_types()
register_tensor_class()

MAX_DEPTH = 1_000_000
"""Calls of bytecode inside each other before a `RecursionError`."""

_STEPS_AT_A_TIME = 256


class BytecodeFunction(Callee):
    """A function of the executable, to be called from Python; arguments may be given by name."""

    def __init__(self, machine: VirtualMachine, code: Code, signature: Signature | None):
        self._machine = machine
        self._code = code
        self.describe(code.info, signature)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Calls the function with values, tensors of any DLPack library, or sequences of them.

        Arguments by name are keywords, or one dictionary. The result is a `Tensor`, `tvm_ffi.Shape`, `Array` for a
        tuple, `Results` if the model names its fields, `Function`, a number, a string or `None`.
        """
        if named or have_names(arguments):
            arguments = self.in_order(arguments, named)
        try:
            result = self._machine.run_code(self._code, self.arguments.converted(arguments))
        except TypeError as error:
            suggest_conversion(error)
            raise
        return with_names(result, self.result_names)


def _require_cpu(device: object) -> None:
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise ValueError(f"programs run on the CPU, got the device {device}")


class VirtualMachine:
    """Runs an executable.

    `vm["main"]` is a callable: a `tvm_ffi.Function` if the function is native, else a `BytecodeFunction`. Several
    threads may call at once.
    """

    def __init__(
        self,
        executable: Executable,
        device: object = None,
        *,
        kernels: Mapping[str, Callable[..., Any]] | None = None,
        packed: Mapping[str, Callable[..., Any]] | None = None,
        loader: Loader | None = None,
        max_depth: int = MAX_DEPTH,
        max_steps: int | None = None,
        num_threads: int | None = None,
        allow: Collection[str] = (),
    ):
        """Makes an executable ready to run.

        `kernels` and `packed` come before what the loader and the tvm-ffi registry have. `ValueError` names every
        function that is found nowhere; `TypeError` for what is no executable.

        A program from a file for which nobody vouches may call, beside its own functions and the builtins, those of
        `kernels` and `packed`, and those of the registry whose names are in `allow`, only; the builtin
        `vm.builtin.run_deferred`, which compiles text, has to be allowed, too. `UntrustedError` names the others.

        With `max_steps`, a call from outside executes at most as many instructions of bytecode, and then raises
        `StepLimitError`; at most `max_depth` calls are inside each other, or `RecursionError` is raised.

        Parallel loops of a call have `num_threads` threads at most, from 1 to 256, whatever `RELAX_NUM_THREADS` says;
        other machines, also in other threads, keep theirs. `ValueError` for another number.

        `device` is there for programs that were written for TVM: the CPU, or nothing. `ValueError` for another one.
        """
        _require_cpu(device)
        if not isinstance(cast("object", executable), Executable):
            hint = "Executable.load(path)" if isinstance(executable, str | PathLike) else "build(module)"
            raise TypeError(f"expected an executable, as {hint} gives, got {type(executable).__name__}")
        self.executable = executable
        if isinstance(cast("object", allow), str):
            raise TypeError(f"allow expected a collection of names, got the text {allow!r}")
        self.max_depth = max_depth
        self.max_steps = max_steps
        self._steps = local()
        self._instrument: Instrument | None = None
        self._closures = ClosureTable(self.run_code)
        watched = {OBSERVE: _observer(weakref.ref(self))} if OBSERVED_NOTE in executable.metadata.notes else {}
        self._signatures = signatures(executable.metadata.notes)
        self._loaded = _load(executable, kernels or {}, {**watched, **(packed or {})}, loader)
        self._limit = _limit(self._loaded, num_threads)
        if self._limit is not None:
            # Native functions under a limit; kernels are called by bytecode, which is.
            table = {function.name: function for function in executable.functions}
            functions = {
                name: LimitedFunction.under(self._limit, function, table[name], self._signatures.get(name))
                if name in table
                else function
                for name, function in self._loaded.functions.items()
            }
            self._loaded = replace(self._loaded, functions=functions)
        self._sites = [
            Site(caller, index, callee, where) for index, (caller, callee, where) in enumerate(self._loaded.sites)
        ]
        callables = _Functions(executable, self._loaded, kernels or {}, packed or {}, allow).all()
        closures = self._closures
        resolver = Resolver(self, callables, _checked(executable, callables), closures.make, closures.make_closure)
        self._codes = prepare(executable, resolver)
        self._entries: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function of this name; `KeyError` lists those there are."""
        entry = self._entries.get(name)
        if entry is None:
            if not self.executable.has_function(name):
                known = ", ".join(self.executable.entries) or "none"
                raise KeyError(f"no function {name}, the executable has: {known}")
            index = self.executable.function_index[name]
            if index in self._codes:
                entry = self._entries[name] = BytecodeFunction(self, self._codes[index], self._signatures.get(name))
            else:
                entry = self._entries[name] = self._loaded.functions[name]
        return entry

    def __contains__(self, name: str) -> bool:
        """Whether there is a function of this name."""
        return self.executable.has_function(name)

    def __repr__(self) -> str:
        """The functions with their signatures."""
        return repr(self.executable).replace("<Executable", "<VirtualMachine", 1)

    def _ipython_key_completions_(self) -> list[str]:
        """The functions, for completion after `vm[`."""
        return list(self.executable.entries)

    def run_code(self, code: Code, arguments: Sequence[Any]) -> Any:
        """Runs a bytecode function on values."""
        thread = Thread(code, arguments, self._closures, self.max_depth, self._instrument)
        if self._limit is None:
            self._run_to_end(thread, code)
        else:
            self._limit.call(self._run_to_end, thread, code)
        return thread.result

    def _run_to_end(self, thread: Thread, code: Code) -> None:
        if self.max_steps is None:
            thread.run()
        else:
            self._run_within_limit(thread, code.info.name, self.max_steps)

    def _run_within_limit(self, thread: Thread, name: str, limit: int) -> None:
        """Runs a thread to its end. A run that another one has started, through a function value, shares its limit, of
        which each takes a few steps at a time.
        """
        outermost = getattr(self._steps, "left", None) is None
        if outermost:
            self._steps.left = limit
        try:
            while not thread.done:
                taken = min(self._steps.left, _STEPS_AT_A_TIME)
                if not taken:
                    raise StepLimitError(messages.too_many_steps(name, limit))
                self._steps.left -= taken
                thread.run(taken)
                self._steps.left += thread.unused
        finally:
            if outermost:
                self._steps.left = None

    def start(self, name: str, *arguments: Any) -> Thread:
        """A run of a bytecode function that has not begun, for stepping: `thread.run(1)` executes one instruction."""
        index = self.executable.function_index.get(name)
        if index not in self._codes:
            kind = "" if index is None else f": it is {self.executable.functions[index].kind.name.lower()}"
            hint = "" if index is None else "; mode='bytecode' builds one that can be stepped"
            raise KeyError(f"no bytecode function {name}{kind}{hint}")
        code = self._codes[index]
        values = Arguments(name, code.info.parameters, self._signatures.get(name)).converted(arguments)
        return Thread(code, values, self._closures, self.max_depth, self._instrument)

    def set_instrument(self, instrument: Instrument | None) -> None:
        """Every later run tells `instrument` about its calls; `None` ends that.

        Native functions tell it of kernels, packed functions and function values, if they are built for it
        (`build(module, instrument=True)`): `ValueError` if they are not.
        """
        self._require_observed(instrument)
        self._instrument = instrument

    @contextmanager
    def instrumented(self, instrument: Instrument) -> Generator[None]:
        """`set_instrument` for the time of a `with` block."""
        self._require_observed(instrument)
        before, self._instrument = self._instrument, instrument
        try:
            yield
        finally:
            self._instrument = before

    def _require_observed(self, instrument: Instrument | None) -> None:
        if instrument is not None and self.executable.metadata.mode == "native" and not self._is_observed:
            raise ValueError(
                "the native code tells nobody of its calls: build it with instrument=True, or with mode='bytecode'"
            )

    @property
    def _is_observed(self) -> bool:
        """Whether the program is built to be watched."""
        return OBSERVED_NOTE in self.executable.metadata.notes

    def observe(self, phase: int, site: int, start: int, elapsed: int, arguments: Sequence[Any]) -> bool:
        """What native code says before (0) and after (1) a call, then with its time, in nanoseconds, and its result as
        the last of the arguments where it has one. Whether the call is to be left out.
        """
        instrument = self._instrument
        if instrument is None:
            return False
        if isinstance(instrument, Profiler):
            instrument.hear(phase, self._sites[site], arguments, start, elapsed)
        elif phase == 0:
            return instrument.before(self._sites[site], arguments) is Decision.SKIP
        else:
            is_kernel = not _has_result(self.executable, self._sites[site].callee)
            given, result = (arguments, None) if is_kernel else (arguments[:-1], arguments[-1])
            instrument.after(self._sites[site], given, result)
        return False

    def time_evaluator(
        self, name: str, device: object = None, *, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0.0
    ) -> Callable[..., Timings]:
        """A function that takes the arguments of a function, and tells how long its calls take, as TVM's does.

        It calls it once, and then `repeat` times `number` times, or more often until that takes `min_repeat_ms`.
        """
        _require_cpu(device)
        return evaluator(self[name], number, repeat, min_repeat_ms)

    def profile(self, name: str, *arguments: Any, peaks: Peaks | None = None) -> Profile:
        """Runs a function once and tells where the time went; native code has to be built for it, as for instruments.

        `peaks` are what the machine can do, for the share that kernels have of it (`lowering.compiler.peaks`).
        """
        work: dict[str, tuple[list[str], str]] = json.loads(self.executable.metadata.notes.get(OBSERVED_NOTE, "{}"))
        profiler = Profiler(work)
        with self.instrumented(profiler):
            function = self[name]
            begin = perf_counter_ns()
            result = function(*arguments)
            return profiler.profile(result, perf_counter_ns() - begin, peaks)


def _observer(machine: weakref.ref[VirtualMachine]) -> Callable[..., bool]:
    """The function that native code calls; it does not keep the machine alive, which keeps the code alive."""

    def observe(phase: int, site: int, start: int, elapsed: int, *arguments: Any) -> bool:
        found = machine()
        return found is not None and found.observe(phase, site, start, elapsed, arguments)

    return observe


def _has_result(executable: Executable, callee: str) -> bool:
    """Whether what native code calls is no kernel."""
    return all(kernel.name != callee for kernel in executable.metadata.kernels)


def _load(
    executable: Executable,
    kernels: Mapping[str, Callable[..., Any]],
    packed: Mapping[str, Callable[..., Any]],
    loader: Loader | None,
) -> LoadedCode:
    """The compiled code of an executable; the loader is asked only if something is missing without it."""
    compiled = [f for f in executable.functions if f.kind in (FunctionKind.KERNEL, FunctionKind.NATIVE)]
    if all(function.kind is FunctionKind.KERNEL and function.name in kernels for function in compiled):
        return LoadedCode()
    register_globals()
    functions = {name: tvm_ffi.convert(function) for name, function in packed.items()}
    return (loader or default_loader())(executable, functions)


def _limit(loaded: LoadedCode, number: int | None) -> ThreadLimit | None:
    """The limit of a machine; `None` if there is none, or no compiled code."""
    threads = checked_threads(number)
    if threads is None or not (loaded.functions or loaded.kernels):
        return None
    if loaded.limit_threads is None:
        raise ValueError("num_threads: the loader of the compiled code cannot limit its threads")
    return ThreadLimit(threads, (loaded.limit_threads,))


def _checked(executable: Executable, callables: Mapping[int, Callable[..., Any]]) -> dict[int, Callable[..., Any]]:
    """The builtins among the functions, for arguments that may be of a wrong kind."""
    return {
        index: BUILTINS[function.name.removeprefix(BUILTIN_PREFIX)].checked(callables[index])
        for index, function in enumerate(executable.functions)
        if function.is_builtin
    }


class _Functions:
    """Finds the functions of an executable that are not bytecode."""

    def __init__(
        self,
        executable: Executable,
        loaded: LoadedCode,
        kernels: Mapping[str, Callable[..., Any]],
        packed: Mapping[str, Callable[..., Any]],
        allow: Collection[str],
    ):
        self._executable = executable
        self._loaded = loaded
        self._kernels = kernels
        self._packed = packed
        self._allow = allow

    def all(self) -> dict[int, Callable[..., Any]]:
        """Every function, by its position in the function table.

        `ValueError` lists all that are found nowhere, `UntrustedError` those that the program may not call.
        """
        callables: dict[int, Callable[..., Any]] = {}
        missing: list[str] = []
        refused: list[str] = []
        for index, function in enumerate(self._executable.functions):
            if function.kind is FunctionKind.BYTECODE:
                continue
            try:
                found = self._find(function)
            except UntrustedError as error:
                refused.append(str(error))
                continue
            if found is None:
                missing.append(_missing(function))
            else:
                callables[index] = found
        if refused:
            raise UntrustedError("; ".join(refused))
        if missing:
            raise ValueError("; ".join(missing))
        return callables

    def _find(self, function: FunctionInfo) -> Callable[..., Any] | None:
        name = function.name
        if function.is_builtin:
            builtin = BUILTINS[name.removeprefix(BUILTIN_PREFIX)]
            if self._executable.is_foreign:
                return foreign_builtin(builtin, self._packed_function, name in self._allow)
            return builtin.function
        if function.kind is FunctionKind.KERNEL:
            return self._kernels.get(name) or self._loaded.kernels.get(name)
        if function.kind is FunctionKind.NATIVE:
            return self._loaded.functions.get(name)
        return self._packed_function(name)

    def _packed_function(self, name: str) -> Callable[..., Any] | None:
        """A function that the host has given, or one of the registry; `UntrustedError` if it may not be called."""
        if (given := self._packed.get(name)) is not None:
            return given
        if self._executable.is_foreign and name not in self._allow and name not in LIBRARY:
            raise UntrustedError(messages.not_allowed(name))
        return tvm_ffi.get_global_func(name, allow_missing=True)


def _missing(function: FunctionInfo) -> str:
    if function.kind is FunctionKind.PACKED:
        return messages.unknown_packed(function.name)
    return f"no compiled code for {function.kind.name.lower()} function {function.name}"
