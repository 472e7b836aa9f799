"""Loads objects of native code as functions that Python calls, if they can run on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import tvm_ffi

from lowering.llvm.binding import CodegenError
from lowering.llvm.features import code_features
from lowering.runtime.loading import LoadedCode, library_symbol, load_objects
from lowering.vm_to_llvm.symbols import INFO, INIT, entry_symbol
from tir_dialect.target import Target
from vm_dialect import loading
from vm_dialect.arguments import signatures
from vm_dialect.errors import register_error_types
from vm_dialect.executable import Executable, FunctionKind
from vm_dialect.executable.library import constants_for, objects_by_target
from vm_dialect.numpy_library import register_functions_of_tvm
from vm_dialect.process import LIMIT_THREADS, thread_setter


def described(code_target: str) -> Target | None:
    """The target that code is for, from its `Target.code_key()`; `None` for what is none."""
    fields = code_target.split(" ")
    if len(fields) != 4 or not fields[3].isdecimal():
        return None
    triple, cpu, features, vector_bits = fields
    try:
        return Target(triple, cpu, features, int(vector_bits))
    except ValueError:
        return None


def runs_on(code_target: str, machine: Target) -> bool:
    """Whether code for `code_target`, a `Target.code_key()`, runs on `machine`.

    The architecture and system have to be the same, and the machine has to have every feature that the code may use.
    Where LLVM does not know the features of the architecture, the width of the vectors is compared; code for a
    processor that it does not know runs nowhere else.
    """
    if code_target == machine.code_key():
        return True
    target = described(code_target)
    if target is None or _system(target.triple) != _system(machine.triple):
        return False
    try:
        missing = code_features(target, code_features(machine) or ())
    except CodegenError:
        return False
    if missing is None:
        return target.cpu == machine.cpu or target.vector_bits <= machine.vector_bits
    return not missing


def _system(triple: str) -> tuple[str, str]:
    """Architecture and operating system; the vendor does not matter."""
    parts = triple.split("-")
    return parts[0], parts[2] if len(parts) > 2 else ""


def load_executable(executable: Executable, packed: Mapping[str, tvm_ffi.Function] | None = None) -> loading.LoadedCode:
    """The compiled functions of an executable: its native functions, or what stands before its kernels.

    Packed functions are taken from `packed` first, then from the tvm-ffi registry.

    Of several targets, the first is taken whose code this machine runs.

    Raises `RuntimeError` if there is no object for this machine, `CodegenError` if the objects cannot be linked, and
    `ValueError` for a packed function that is nowhere.
    """
    register_functions_of_tvm()
    machine = Target.host()
    targets = objects_by_target(executable)
    chosen = next((target for target in targets if runs_on(target, machine)), None)
    if chosen is None:
        names = ", ".join(sorted(f'"{target}"' for target in targets)) or "none"
        raise RuntimeError(
            f"the executable has no compiled code for this machine ({machine.cpu}), only for: {names}; "
            "build it again with target=host"
        )
    constants = {name: constant.value for name, constant in constants_for(executable.constants, chosen).items()}
    code = load_objects(targets[chosen])
    functions = load_functions(code, constants, packed)
    kernels = {function.name for function in executable.functions if function.kind is FunctionKind.KERNEL}
    table = {function.name: function for function in executable.functions}
    known = signatures(executable.metadata.notes)
    return loading.LoadedCode(
        functions={
            name: loading.NativeFunction.of(function, table[name], known.get(name)) if name in table else function
            for name, function in functions.items()
            if name not in kernels
        },
        kernels={name: function for name, function in functions.items() if name in kernels},
        sites=_info(code).get("sites", ()),
        limit_threads=_limit_threads,
    )


def _limit_threads(number: int) -> int:
    """Limits the threads of loops, which all programs of this process share; it is loaded with the first limit."""
    return _thread_setter()(number)


@cache
def _thread_setter() -> Callable[[int], int]:
    address = library_symbol(LIMIT_THREADS)
    assert address is not None  # it is of our own run time
    return thread_setter(address)


def load_functions(
    code: LoadedCode, constants: Mapping[str, Any], packed: Mapping[str, tvm_ffi.Function] | None = None
) -> dict[str, tvm_ffi.Function]:
    """The public functions of a module that `convert-vm-to-llvm` has made, by name.

    `constants` has the tensors that the module declares, by symbol; packed functions are taken from `packed` first,
    then from the tvm-ffi registry. Each function keeps the code, the constants and the arenas alive, and so does every
    closure that one of them returns.

    Raises `ValueError` for a constant that is missing and for a packed function that is nowhere.
    """
    register_error_types()
    info = _info(code)
    if missing := [name for name in info["constants"] if name not in constants]:
        raise ValueError(f"constants {', '.join(missing)} of the native code are missing")
    given = packed or {}
    arguments = [constants[name] for name in info["constants"]] + [given.get(name) for name in info["packed"]]
    module = _entry(code, INIT, code)(code, *arguments)
    return {name: _entry(code, entry_symbol(name), module) for name in info["functions"]}


def _info(code: LoadedCode) -> dict[str, Any]:
    """What the module says of itself."""
    return json.loads(str(_entry(code, INFO, code)()))


def _entry(code: LoadedCode, symbol: str, keep_alive: object) -> tvm_ffi.Function:
    return tvm_ffi.Function.__from_extern_c__(code.address(symbol), keep_alive_object=keep_alive)
