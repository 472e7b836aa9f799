"""Shared libraries of `Executable.export_library`, called from Python as the virtual machine calls native functions."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from os import PathLike, fspath
from os.path import abspath, exists
from typing import Any, cast

import tvm_ffi

from vm_dialect.arguments import read_signatures, register_tensor_class
from vm_dialect.executable.library import SET_WEIGHT, SIGNATURES, WEIGHTS_FROM, library_name
from vm_dialect.executable.model import SIGNATURES_NOTE, FunctionInfo, FunctionKind, SignatureTypes
from vm_dialect.executable.weight_file import SUFFIX
from vm_dialect.host_memory import ALIGNMENT, aligned_copy
from vm_dialect.loading import LimitedFunction, NativeFunction
from vm_dialect.process import LIMIT_THREADS, ThreadLimit, checked_threads, thread_setter
from vm_dialect.tensors import from_numpy, to_numpy, to_value

MOST_VARIANTS = 16
"""The machines whose code of a library is looked at."""


class Library:
    """The functions of a library by name: `library["main"](x)`."""

    def __init__(self, module: tvm_ffi.Module, text: str, limit: ThreadLimit | None = None):
        """`text` says how the functions are called; `ValueError` if it does not."""
        self._limit = limit
        self.module = module
        """As `tvm_ffi.load_module` gives it; results of functions must not outlive it."""
        try:
            facts: Mapping[str, object] = json.loads(text)
            said = cast("Mapping[str, list[Any]]", facts["functions"])
            self._infos = {name: _info(name, *each) for name, each in said.items()}
            self._signatures = read_signatures(str(facts[SIGNATURES_NOTE]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"the library does not say how its functions are called: {error}") from None
        self._functions: dict[str, NativeFunction] = {}

    def __getitem__(self, name: str) -> NativeFunction:
        """The function of this name; `KeyError` lists those there are."""
        if name not in self._infos:
            raise KeyError(f"no function {name}, the library has: {', '.join(self._infos) or 'none'}")
        if name not in self._functions:
            found = self.module.get_function(name)
            facts = found, self._infos[name], self._signatures.get(name)
            self._functions[name] = (
                NativeFunction.of(*facts) if self._limit is None else LimitedFunction.under(self._limit, *facts)
            )
        return self._functions[name]

    def __contains__(self, name: str) -> bool:
        """Whether there is a function of this name."""
        return name in self._infos

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the functions."""
        return tuple(self._infos)

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}{info.signature}" for name, info in self._infos.items())
        return f"<Library {listed or 'without functions'}>"


def _info(
    name: str, parameters: Sequence[str], results: Sequence[str], types: Sequence[str], result: str
) -> FunctionInfo:
    if len(types) not in (0, len(parameters)):
        raise ValueError(f"function {name}: {len(types)} types for {len(parameters)} parameters")
    said = SignatureTypes(tuple(types), result)
    return FunctionInfo(FunctionKind.NATIVE, name, tuple(parameters), result_names=tuple(results), types=said)


def load_library(
    path: str | PathLike[str],
    *,
    weights: str | PathLike[str] | Mapping[str, Any] | None = None,
    num_threads: int | None = None,
) -> Library:
    """The library in a file, whose machine code is run: its author has to be trusted.

    `tvm_ffi.load_module` opens it, too, and then functions take what tvm-ffi exchanges and is contiguous only. Here
    arguments may be given by name, and are converted as those of native functions of a `VirtualMachine` are.

    `weights`, of a library that does not hold them, are the path of a file of `Executable.save_weights`, which is
    mapped into memory, or tensors by name, whose memory is used; without them the file beside the library is mapped.

    Parallel loops of a call have `num_threads` threads at most, as those of a `VirtualMachine`.

    `RuntimeError` if the code is for another architecture, or the processor lacks what it needs; `OSError` if the file
    cannot be loaded, `ValueError` if it is no library of `export_library`.
    """
    register_tensor_class()
    given = abspath(path) if exists(path) else fspath(path)  # a bare name is looked for where the system's are
    where = _as_it_is_now(given)
    if (architecture := _architecture(where)) not in (None, platform.machine()):  # the system would say less
        raise RuntimeError(
            f"{fspath(path)}: the library is for {architecture}, and this machine is {platform.machine()}"
        )
    library = ctypes.CDLL(where)
    try:
        text = ctypes.c_char.in_dll(library, SIGNATURES)
    except ValueError:
        raise ValueError(f"{fspath(path)}: no library of export_library: it has no symbol {SIGNATURES}") from None
    if (reason := _refusal(library)) is not None:
        raise RuntimeError(f"{fspath(path)}: {reason}")
    threads = checked_threads(num_threads)
    limit = None if threads is None else ThreadLimit(threads, _thread_setters(library, path))
    load: Callable[[str], tvm_ffi.Module] = cast("Any", tvm_ffi).load_module
    module = load(where)
    if weights is None and where != given and exists(beside := f"{given}{SUFFIX}"):
        weights = beside
    if weights is not None:
        try:
            take_file, take_one = (module.get_function(name) for name in (WEIGHTS_FROM, SET_WEIGHT))
        except AttributeError:
            raise ValueError("the library holds its weights: export it with weights='given' or 'beside'") from None
        if not isinstance(weights, Mapping):
            take_file(fspath(weights))
        else:
            for name, array in weights.items():
                tensor = array if isinstance(array, tvm_ffi.Tensor) else to_value(array)
                if isinstance(tensor, tvm_ffi.Tensor) and tensor.data_ptr() % ALIGNMENT:
                    tensor = from_numpy(aligned_copy(to_numpy(tensor)))
                take_one(library_name(name), tensor)
    return Library(module, ctypes.string_at(ctypes.addressof(text)).decode(), limit)


_opened: dict[str, tuple[int, int, int]] = {}
"""The libraries that this process has opened, and which file each was then."""


def _as_it_is_now(path: str) -> str:
    """The library under a name by which the system opens what the file holds now: a second time, it would take the one
    that it has opened by the same name, though another one has been written since.
    """
    with suppress(OSError):
        status = os.stat(path)
        now = (status.st_dev, status.st_ino, status.st_mtime_ns)
        if _opened.setdefault(path, now) != now:
            import shutil  # not at the top: a library is opened twice seldom
            import tempfile

            folder = tempfile.mkdtemp(prefix="relax-library-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            return shutil.copy(path, folder)
    return path


_ARCHITECTURES = {62: "x86_64", 183: "aarch64"}
"""By the numbers that ELF has for them."""


def _architecture(path: str) -> str | None:
    """The architecture of the code in a file of ELF, if it is one of these."""
    try:
        with open(path, "rb") as file:
            header = file.read(20)
    except OSError:
        return None
    return _ARCHITECTURES.get(int.from_bytes(header[18:20], "little")) if header[:4] == b"\x7fELF" else None


def _refusal(library: ctypes.CDLL) -> str | None:
    """Why the code does not run on this processor."""
    try:
        ask = library.relax_library_refusal
    except AttributeError:  # code for every processor
        return None
    ask.restype = ctypes.c_char_p
    reason: bytes | None = ask()
    return None if reason is None else reason.decode()


def _thread_setters(library: ctypes.CDLL, path: str | PathLike[str]) -> list[Callable[[int], int]]:
    """What limits threads in a library: one function, or one for each of the machines it has code for."""
    prefixes = ("", *(f"variant{number}." for number in range(MOST_VARIANTS)))
    addresses = [_address(library, f"{prefix}{LIMIT_THREADS}") for prefix in prefixes]
    found = [thread_setter(address) for address in addresses if address is not None]
    if not found:
        raise ValueError(f"{fspath(path)}: num_threads is for libraries of a later version: export it again")
    return found


def _address(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None
