"""The vm dialect, its executable format and the virtual machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from vm_dialect.dialect import VM
    from vm_dialect.exec_builder import ExecBuilder
    from vm_dialect.executable import Executable
    from vm_dialect.library import load_library
    from vm_dialect.machine import VirtualMachine

__all__ = ["VM", "ExecBuilder", "Executable", "VirtualMachine", "load_library"]

# Loaded on first use: importing the package must stay cheap.
_NAMES = LazyNames(
    __name__,
    {
        "ExecBuilder": "vm_dialect.exec_builder:ExecBuilder",
        "Executable": "vm_dialect.executable:Executable",
        "VM": "vm_dialect.dialect:VM",
        "VirtualMachine": "vm_dialect.machine:VirtualMachine",
        "load_library": "vm_dialect.library:load_library",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
