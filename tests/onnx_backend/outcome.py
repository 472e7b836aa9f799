"""What becomes of one backend test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from relax_dialect.scope import find_function
from tests.onnx_backend.cases import Case, Ragged, differs
from tests.support.programs import as_arguments
from vm_dialect import VirtualMachine
from vm_dialect.strings import StringArray
from vm_dialect.tensors import to_numpy
from xdsl_relax.model import encoded, lists_of

ROUNDING = frozenset({"test_dft_inverse", "test_dft_inverse_opset19"})
"""Tests that expect the rounding errors of another algorithm: 2e-7 where the exact value, and ours, is 0."""

RANDOM = ("test_bernoulli", "test_training_dropout")
"""Tests that expect what another generator draws, also for a seed: types and shapes are compared, values are not."""


@dataclass(frozen=True)
class Outcome:
    """`pass`, `imported`, `unsupported` (an error while importing), `rounding`, `random`, or `wrong`."""

    status: str
    reason: str = ""


def outcome(case: Case, *, dynamic: bool = False, import_only: bool = False) -> Outcome:
    """Imports, compiles and runs a test, or only imports it."""
    try:
        module = import_model(case.model, dynamic=dynamic)
    except OnnxImportError as error:
        return Outcome("unsupported", _reason(error))
    if import_only:
        return Outcome("imported")
    try:
        func = find_function(module, "main")
        assert func is not None
        lists, names = lists_of(func), func.param_names
        function = VirtualMachine(build(module))["main"]
        wrong = _run(lambda inputs: function(*as_arguments(encoded(inputs, names, lists))), case)
    except Ragged as error:
        return Outcome("unsupported", str(error))
    except Exception as error:
        return Outcome("wrong", f"{type(error).__name__}: {error}")
    if wrong is None:
        return Outcome("pass")
    if case.name.startswith(RANDOM) and wrong.endswith("values differ"):
        return Outcome("random", wrong)
    return Outcome("rounding" if case.name in ROUNDING else "wrong", wrong)


def _run(function: Callable[..., Any], case: Case) -> str | None:
    for inputs, expected in case.data:
        found = function(inputs)
        outputs = [found] if len(expected) == 1 else found
        wrong = differs([_array(each) for each in outputs], expected, case.tolerance)
        if wrong is not None:
            return wrong
    return None


def _array(output: Any) -> Any:
    """An output as an array; the items of a sequence are its first axis, as they are in what is expected."""
    if isinstance(output, StringArray):
        return output.array
    return to_numpy(output) if hasattr(output, "__dlpack__") else np.array([to_numpy(item) for item in output])


def _reason(error: OnnxImportError) -> str:
    if not error.nodes:
        return str(error).removeprefix("the model cannot be imported: ")
    reasons = dict.fromkeys(f"{node.op_type}: {node.reason}" for node in error.nodes)
    return "; ".join(list(reasons)[:2])
