"""Reference semantics of the relax dialect on NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from relax_dialect.interpreter.machine import Interpreter, run

__all__ = ["Interpreter", "run"]

_NAMES = LazyNames(
    __name__,
    {
        "Interpreter": "relax_dialect.interpreter.machine:Interpreter",
        "run": "relax_dialect.interpreter.machine:run",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
