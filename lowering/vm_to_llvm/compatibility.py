"""Whether machine code compiled elsewhere runs on this machine."""

from __future__ import annotations

from tir_dialect.target import Target


def runs_on(code_target: str, machine: Target) -> bool:
    """Whether code for `code_target`, a `Target.code_key()`, runs on `machine`.

    The architecture and system have to be the same, and the machine has to have every feature that the code may use.
    Code for a processor that is only named is compared by the width of its vectors.
    """
    if code_target == machine.code_key():
        return True
    fields = code_target.split(" ")
    if len(fields) != 4 or not fields[3].isdecimal():
        return False
    triple, cpu, features, vector_bits = fields
    if _system(triple) != _system(machine.triple):
        return False
    if not features:
        return cpu == machine.cpu or int(vector_bits) <= machine.vector_bits
    return _enabled(features) <= _enabled(machine.features)


def _system(triple: str) -> tuple[str, str]:
    """Architecture and operating system; the vendor does not matter."""
    parts = triple.split("-")
    return parts[0], parts[2] if len(parts) > 2 else ""


def _enabled(features: str) -> set[str]:
    return {name for name in features.split(",") if name.startswith("+")}
