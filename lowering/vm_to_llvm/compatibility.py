"""Whether machine code compiled elsewhere runs on this machine."""

from __future__ import annotations

from lowering.llvm.errors import CodegenError
from lowering.llvm.features import code_features
from tir_dialect.target import Target


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
