"""What a shared library is linked from, which the package `lowering` makes of an executable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.model import BUILTIN_PREFIX

_LIBRARIES = "lowering.vm_to_llvm.library"
"""The module with `library_code`, if it is installed."""

LIBRARY_BUILTINS = frozenset(
    f"{BUILTIN_PREFIX}{name}"
    for name in (
        "fail",
        "get_packed_func",
        "new_tensor_of_shape",
        "nonzero",
        "print",
        "shape_from_tensor",
        "shape_to_tensor",
        "unique",
    )
)
"""The builtins that native code calls by name and that a library has in native code, too."""


@dataclass(frozen=True)
class LibraryCode:
    """What a shared library is linked from."""

    objects: Sequence[bytes]
    """Those of the executable, what they need beside other libraries, and what chooses among targets."""
    prefixes: Mapping[str, str]
    """Before the symbols of the code for each target."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """C files by name, which the linker's driver compiles."""


def library_code(executable: ExecutableContents) -> LibraryCode:
    """What a shared library of an executable is linked from.

    `ValueError` for code of another architecture; `RuntimeError` if the package `lowering` is not installed.
    """
    try:
        provider = import_module(_LIBRARIES)
    except ImportError as error:
        raise RuntimeError(
            "compiled code needs a run-time support to be linked: install the package 'lowering'"
        ) from error
    return provider.library_code(executable)
