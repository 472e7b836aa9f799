"""The virtual machine: runs an executable."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from time import perf_counter_ns
from typing import Any, cast

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins import BUILTINS, register_globals
from vm_dialect.closures import ClosureTable
from vm_dialect.errors import register_error_types
from vm_dialect.executable import Executable, FunctionInfo, FunctionKind
from vm_dialect.executable.model import BUILTIN_PREFIX
from vm_dialect.loading import LoadedCode, Loader, default_loader, in_order
from vm_dialect.observers import Instrument
from vm_dialect.profiler import Profile, Profiler
from vm_dialect.program import Code, Resolver, prepare
from vm_dialect.thread import Thread
from vm_dialect.values import to_value

register_error_types()

MAX_DEPTH = 1_000_000
"""Calls of bytecode inside each other before a `RecursionError`."""


class BytecodeFunction:
    """A function of the executable, to be called from Python; arguments may be given by name."""

    def __init__(self, machine: VirtualMachine, code: Code):
        self._machine = machine
        self._code = code
        self.__name__ = code.info.name
        self.parameters = code.info.parameters

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Calls the function with values, tensors of any DLPack library, or sequences of them.

        The result is a `tvm_ffi.Tensor`, `Shape`, `Array` for a tuple, `Function`, a number, a string or `None`.
        """
        if named:
            arguments = tuple(in_order(self.__name__, self.parameters, arguments, named))
        return self._machine.run_code(self._code, [to_value(argument) for argument in arguments])


class VirtualMachine:
    """Runs an executable.

    `vm["main"]` is a callable: a `tvm_ffi.Function` if the function is native, else a `BytecodeFunction`. Several
    threads may call at once.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        kernels: Mapping[str, Callable[..., Any]] | None = None,
        packed: Mapping[str, Callable[..., Any]] | None = None,
        loader: Loader | None = None,
        max_depth: int = MAX_DEPTH,
    ):
        """Makes an executable ready to run.

        `kernels` and `packed` come before what the loader and the tvm-ffi registry have. `ValueError` names every
        function that is found nowhere; `TypeError` for what is no executable.
        """
        if not isinstance(cast("object", executable), Executable):
            hint = "Executable.load(path)" if isinstance(executable, str | PathLike) else "build(module)"
            raise TypeError(f"expected an executable, as {hint} gives, got {type(executable).__name__}")
        self.executable = executable
        self.max_depth = max_depth
        self._instrument: Instrument | None = None
        self._closures = ClosureTable(self.run_code)
        self._loaded = _load(executable, kernels or {}, packed or {}, loader)
        callables = _resolve(executable, self._loaded, kernels or {}, packed or {})
        self._codes = prepare(executable, Resolver(self, callables, self._closures.make, self._closures.make_closure))
        self._entries: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function of this name; `KeyError` lists those there are."""
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = self._entry(name)
        return entry

    def __contains__(self, name: str) -> bool:
        """Whether there is a function of this name."""
        return self.executable.has_function(name)

    def _entry(self, name: str) -> Callable[..., Any]:
        if not self.executable.has_function(name):
            known = ", ".join(self.executable.entries) or "none"
            raise KeyError(f"no function {name}, the executable has: {known}")
        index = self.executable.function_index[name]
        if index in self._codes:
            return BytecodeFunction(self, self._codes[index])
        return self._loaded.functions[name]

    def run_code(self, code: Code, arguments: Sequence[Any]) -> Any:
        """Runs a bytecode function on values."""
        thread = Thread(code, arguments, self._closures, self.max_depth, self._instrument)
        thread.run()
        return thread.result

    def start(self, name: str, *arguments: Any) -> Thread:
        """A run of a bytecode function that has not begun, for stepping: `thread.run(1)` executes one instruction."""
        index = self.executable.function_index.get(name)
        if index not in self._codes:
            raise KeyError(f"no bytecode function {name}")
        values = [to_value(argument) for argument in arguments]
        return Thread(self._codes[index], values, self._closures, self.max_depth, self._instrument)

    def set_instrument(self, instrument: Instrument | None) -> None:
        """Every later run tells `instrument` about its calls; `None` ends that."""
        self._instrument = instrument

    @contextmanager
    def instrumented(self, instrument: Instrument) -> Generator[None]:
        """`set_instrument` for the time of a `with` block."""
        before, self._instrument = self._instrument, instrument
        try:
            yield
        finally:
            self._instrument = before

    def profile(self, name: str, *arguments: Any) -> Profile:
        """Runs a bytecode function once and tells where the time went."""
        profiler = Profiler()
        with self.instrumented(profiler):
            thread = self.start(name, *arguments)
        begin = perf_counter_ns()
        thread.run()
        return profiler.profile(thread.result, perf_counter_ns() - begin)


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


def _resolve(
    executable: Executable,
    loaded: LoadedCode,
    kernels: Mapping[str, Callable[..., Any]],
    packed: Mapping[str, Callable[..., Any]],
) -> dict[int, Callable[..., Any]]:
    """Every function that is not bytecode; `ValueError` lists all that are found nowhere."""
    callables: dict[int, Callable[..., Any]] = {}
    missing: list[str] = []
    for index, function in enumerate(executable.functions):
        if function.kind is FunctionKind.BYTECODE:
            continue
        found = _find(function, loaded, kernels, packed)
        if found is None:
            missing.append(_missing(function))
        else:
            callables[index] = found
    if missing:
        raise ValueError("; ".join(missing))
    return callables


def _find(
    function: FunctionInfo,
    loaded: LoadedCode,
    kernels: Mapping[str, Callable[..., Any]],
    packed: Mapping[str, Callable[..., Any]],
) -> Callable[..., Any] | None:
    name = function.name
    if function.is_builtin:
        return BUILTINS[name.removeprefix(BUILTIN_PREFIX)].function
    if function.kind is FunctionKind.KERNEL:
        return kernels.get(name) or loaded.kernels.get(name)
    if function.kind is FunctionKind.NATIVE:
        return loaded.functions.get(name)
    return packed.get(name) or tvm_ffi.get_global_func(name, allow_missing=True)


def _missing(function: FunctionInfo) -> str:
    if function.kind is FunctionKind.PACKED:
        return messages.unknown_packed(function.name)
    return f"no compiled code for {function.kind.name.lower()} function {function.name}"
