"""The executable: what the compiler makes and the virtual machine runs."""

from __future__ import annotations

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
