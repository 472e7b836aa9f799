"""Notebooks: modules, executables and profiles that end a cell are shown in colours."""

from __future__ import annotations

import sys
from typing import Any

_PROGRAM = ("xdsl.ir.core", "Operation")
_CLASSES = (
    _PROGRAM,
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
    html, plain = (shell.display_formatter.formatters[kind] for kind in ("text/html", "text/plain"))
    for module, name in _CLASSES:
        html.for_type_by_name(module, name, _html)
    plain.for_type_by_name(*_PROGRAM, _plain)


def _html(value: object) -> str:
    from xdsl_relax.display import shown

    return shown(value).html


def _plain(value: object, printer: Any, cycle: bool) -> None:
    """Where there is no HTML, an op is its text: xDSL shows addresses of its parts."""
    printer.text(str(value))
