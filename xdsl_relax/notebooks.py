"""Notebooks: modules, executables and profiles that end a cell are shown in colours."""

from __future__ import annotations

import sys
from typing import Any

_CLASSES = (
    ("xdsl.ir.core", "Operation"),
    ("vm_dialect.executable.executable", "Executable"),
    ("vm_dialect.profiler", "Profile"),
    ("xdsl_relax.model", "Model"),
)


def register(shell: Any = None) -> None:
    """Makes a shell of IPython, that of this process unless another is given, show our values as HTML."""
    library: Any = sys.modules.get("IPython")
    if shell is None and library is not None:
        shell = library.get_ipython()
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    for module, name in _CLASSES:
        formatter.for_type_by_name(module, name, _html)


def _html(value: object) -> str:
    from xdsl_relax.display import shown

    return shown(value).html
