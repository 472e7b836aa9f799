"""`I` of TVMScript in Python files: `@I.ir_module` reads the class below it and gives the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from xdsl.dialects.builtin import ModuleOp

from relax_dialect.frontend.tvmscript.module import read
from relax_dialect.frontend.tvmscript.scopes import Placeholder, names_at_caller


@overload
def ir_module(cls: type, **options: object) -> ModuleOp: ...


@overload
def ir_module(cls: None = None, **options: object) -> Callable[[type], ModuleOp]: ...


def ir_module(cls: type | None = None, **options: object) -> ModuleOp | Callable[[type], ModuleOp]:
    """The verified module that a class describes, by its source; `TVMScriptError` if it is none."""
    if cls is not None:
        return read(cls, frame=names_at_caller(cls))
    return lambda cls: read(cls, frame=names_at_caller(cls))


def __getattr__(name: str) -> Any:
    """Any other name, as text of a program; the module's own names are those above."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(f"I.{name}")
