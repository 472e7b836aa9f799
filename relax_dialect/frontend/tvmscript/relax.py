"""`R` of TVMScript in Python files: `@R.function` reads the function below it and gives a module of it alone.

In the body of a class with `@I.ir_module` it leaves the function to that decorator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relax_dialect.frontend.tvmscript.module import read
from relax_dialect.frontend.tvmscript.scopes import Placeholder, is_in_class, macro_decorator, names_at_caller


def function(f: Callable[..., object] | None = None, **options: bool) -> Any:
    """The module of one relax function, by its source; `TVMScriptError` if it is none.

    Options, which are read from the source: `pure`, `private`, `check_well_formed`.
    """
    if f is None:
        return function
    return f if is_in_class(f) else read(f, frame=names_at_caller(f))


func = function
"""The first name of `function`."""

macro = macro_decorator(of_relax=True)
"""Above a function whose body is read instead of a call."""


def __getattr__(name: str) -> Any:
    """Any other name, as text of a program; the module's own names are those above."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(f"R.{name}")
