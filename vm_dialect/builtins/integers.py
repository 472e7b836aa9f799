"""Builtins of `vm.int`: `int_add`, `int_eq`, ..."""

from __future__ import annotations

from vm_dialect.builtins.table import builtin
from vm_dialect.integers import INT_FUNCTIONS

for _kind, _function in INT_FUNCTIONS.items():
    builtin(f"int_{_kind}", 2)(_function)
