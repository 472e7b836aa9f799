"""The executable: what the compiler makes and the virtual machine runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from vm_dialect.executable.executable import Executable
    from vm_dialect.executable.model import (
        FunctionInfo,
        FunctionKind,
        KernelParameter,
        KernelSignature,
        Metadata,
        NativeObject,
        SignatureTypes,
    )

__all__ = [
    "Executable",
    "FunctionInfo",
    "FunctionKind",
    "KernelParameter",
    "KernelSignature",
    "Metadata",
    "NativeObject",
    "SignatureTypes",
]

# Loaded on first use: seals of files are wanted by those that have no executable.
_NAMES = LazyNames(
    __name__,
    {
        "Executable": "vm_dialect.executable.executable:Executable",
        "FunctionInfo": "vm_dialect.executable.model:FunctionInfo",
        "FunctionKind": "vm_dialect.executable.model:FunctionKind",
        "KernelParameter": "vm_dialect.executable.model:KernelParameter",
        "KernelSignature": "vm_dialect.executable.model:KernelSignature",
        "Metadata": "vm_dialect.executable.model:Metadata",
        "NativeObject": "vm_dialect.executable.model:NativeObject",
        "SignatureTypes": "vm_dialect.executable.model:SignatureTypes",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
