"""The builtin that compiles when it is called: ops on values of which nothing was known before."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vm_dialect.builtins.table import builtin

_COMPILER = "lowering.relax.deferred.runtime"
"""The module whose function `run_deferred` compiles, if it is installed; it is imported by the first call."""


@builtin("run_deferred", 1, None)
def run_deferred(text: str, *arguments: Any) -> Any:
    """Calls the function that `text` is with the arguments, compiled for their ranks and dtypes.

    `RuntimeError` if the compiler is not installed; `TypeError` or `ValueError` if an op cannot take the arguments.
    """
    try:
        compiler = import_module(_COMPILER)
    except ImportError as error:
        raise RuntimeError(
            "ops on tensors of unknown rank or dtype are compiled at run time: install the package 'lowering'"
        ) from error
    return compiler.run_deferred(text, *arguments)
