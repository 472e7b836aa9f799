"""The interpreter: runs relax functions op by op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from relax_dialect.interpreter.functions import Function, function_named
from relax_dialect.interpreter.program import Program
from relax_dialect.interpreter.runtime_values import Value


class Interpreter(Program):
    """Runs the functions of a module."""

    def function(self, name: str) -> Function:
        """A function of the module; `KeyError` if there is none."""
        return function_named(self, name)

    def run(self, entry: str, arguments: Sequence[Any] | Mapping[str, Any]) -> Value:
        """Calls the function `entry` with values from outside, in order or by name."""
        function = self.function(entry)
        given = function.in_order(arguments) if isinstance(arguments, Mapping) else arguments
        return function(*function.taken(given))


def run(
    module: ModuleOp,
    entry: str,
    arguments: Sequence[Any] | Mapping[str, Any],
    packed_functions: Mapping[str, Callable[..., Any]] | None = None,
    weights: Mapping[str, Any] | None = None,
    max_steps: int | None = None,
) -> Value:
    """Calls the relax function `entry` of a module with NumPy semantics.

    Arguments, in order or by the names of the parameters, are arrays of any DLPack library, numbers, strings, sequences
    for tuples, `tvm_ffi` values. Results are NumPy arrays, tuples, `Shape`s and Python scalars. A check that fails
    raises `TypeError` or `ValueError`, an exception of a packed function passes through. `max_steps` limits calls and
    iterations of loops: `StepLimitError` after the last one.
    """
    return Interpreter(module, packed_functions, weights, max_steps=max_steps).run(entry, arguments)
