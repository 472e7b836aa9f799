"""The run-time library of the virtual machine, for bytecode: one function for each typed op, and helpers.

Native code has its own versions of the typed ops; both raise the errors of `vm_dialect.messages`.
"""

from __future__ import annotations

import tvm_ffi

from vm_dialect.builtins import calls, checks, collective, memory, shapes, values
from vm_dialect.builtins.table import BUILTINS, Builtin
from vm_dialect.executable.model import BUILTIN_PREFIX

__all__ = ["BUILTINS", "GLOBALS", "Builtin", "register_globals"]

# Called by name from native code, which has its own versions of all others. TVM registers no functions of these names,
# so both can live in one process.
GLOBALS = (
    "ccl_all_to_all",
    "ccl_allgather",
    "ccl_allreduce",
    "ccl_broadcast_from_worker0",
    "ccl_receive",
    "ccl_redistribute_replica_to_shard",
    "ccl_reduce_scatter",
    "ccl_scatter_from_worker0",
    "ccl_send",
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
del calls, checks, collective, memory, shapes, values


def register_globals() -> None:
    """Enters the builtins that native code looks up by name into the tvm-ffi registry; again does no harm."""
    for name in GLOBALS:
        tvm_ffi.register_global_func(f"{BUILTIN_PREFIX}{name}", BUILTINS[name].function, override=True)
