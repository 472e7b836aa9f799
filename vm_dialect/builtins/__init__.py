"""The run-time library of the virtual machine, for bytecode: one function for each typed op, and helpers.

Native code has its own versions of the typed ops; both raise the errors of `vm_dialect.messages`.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi

from vm_dialect.builtins import calls, collective, memory, values
from vm_dialect.builtins.table import BUILTINS, Builtin
from vm_dialect.executable.model import BUILTIN_PREFIX
from vm_dialect.shared_memory import NATIVE, SharedMemory, native_entries

__all__ = ["BUILTINS", "GLOBALS", "Builtin", "register_globals"]

# Called by name from native code, which has its own versions of all others. TVM registers no functions of these names,
# so both can live in one process.
GLOBALS = (
    "ccl_all_to_all",
    "ccl_allgather",
    "ccl_allreduce",
    "ccl_broadcast_from_worker0",
    "ccl_finish_allgather",
    "ccl_finish_allreduce",
    "ccl_finish_reduce_scatter",
    "ccl_receive",
    "ccl_redistribute_replica_to_shard",
    "ccl_reduce_scatter",
    "ccl_scatter_from_worker0",
    "ccl_send",
    "ccl_start_allgather",
    "ccl_start_allreduce",
    "ccl_start_reduce_scatter",
    "fail",
    "get_packed_func",
    "new_tensor_of_shape",
    "nonzero",
    "print",
    "run_deferred",
    "shape_from_tensor",
    "shape_to_tensor",
    "unique",
)

# Importing the families has filled the table.
del calls, collective, memory, values


def register_globals() -> None:
    """Enters the builtins that native code looks up by name into the tvm-ffi registry; again does no harm."""
    for name in GLOBALS:
        function = _native.get(name, BUILTINS[name].function)
        tvm_ffi.register_global_func(f"{BUILTIN_PREFIX}{name}", function, override=True)


_native: dict[str, tvm_ffi.Function] = {}
"""Functions that stand for builtins in native code."""


def use_native_collectives(groups: Mapping[str, SharedMemory]) -> None:
    """From now on native programs that are loaded call collectives of these groups without Python."""
    entries = native_entries(groups, {name: tvm_ffi.convert(BUILTINS[f"ccl_{name}"].function) for name in NATIVE})
    _native.update((f"ccl_{name}", function) for name, function in entries.items())
