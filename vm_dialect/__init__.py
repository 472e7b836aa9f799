"""The vm dialect, its executable format and the virtual machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vm_dialect.dialect import VM
    from vm_dialect.exec_builder import ExecBuilder
    from vm_dialect.executable import Executable
    from vm_dialect.library import load_library
    from vm_dialect.machine import VirtualMachine

__all__ = ["VM", "ExecBuilder", "Executable", "VirtualMachine", "load_library"]

# Loaded on first use: importing the package must stay cheap.
_LAZY = {
    "VM": "vm_dialect.dialect",
    "ExecBuilder": "vm_dialect.exec_builder",
    "Executable": "vm_dialect.executable",
    "VirtualMachine": "vm_dialect.machine",
    "load_library": "vm_dialect.library",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
