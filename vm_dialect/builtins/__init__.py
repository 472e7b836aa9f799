"""The run-time library of the virtual machine, for bytecode: one function for each typed op, and helpers.

Native code has its own versions of the typed ops; both raise the errors of `vm_dialect.messages`.
"""

from __future__ import annotations

from vm_dialect.builtins import calls, checks, heap, integers, memory, shapes, tuples
from vm_dialect.builtins.table import BUILTINS, Builtin

__all__ = ["BUILTINS", "Builtin"]

# Importing the families has filled the table.
del calls, checks, heap, integers, memory, shapes, tuples
