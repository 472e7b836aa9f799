"""Builtins of `vm.int`: `int_add`, `int_eq`, ..."""

from __future__ import annotations

from vm_dialect.builtins.table import builtin
from vm_dialect.integers import COMPARISONS, INT_FUNCTIONS, LOGICAL

for _kind, _function in INT_FUNCTIONS.items():
    _result = "bool" if _kind in LOGICAL | COMPARISONS else "int"
    builtin(f"int_{_kind}", 2, kinds=f"int int -> {_result}")(_function)
