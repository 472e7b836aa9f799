"""Functions of TVM's run-time library that texts call by name and that are operators here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relax_dialect.builder.operator_functions import function_of, operator_classes


def _copy(value: Any) -> Any:
    """The same value: TVM's function too gives back what it gets."""
    return value


def _operator(name: str) -> Callable[..., Any]:
    return lambda *arguments: function_of(operator_classes()[name])(*arguments)


VM_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "vm.builtin.copy": _copy,
    "vm.builtin.reshape": _operator("relax.reshape"),
    "vm.builtin.shape_of": _operator("relax.shape_of"),
    "vm.builtin.tensor_to_shape": _operator("relax.tensor_to_shape"),
}
"""What `R.call_packed("<name>", ...)` emits in place of the call."""
