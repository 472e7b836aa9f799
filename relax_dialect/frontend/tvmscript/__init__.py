"""TVMScript: modules of relax functions and PrimFuncs as Python text, which is read and never executed.

::

    from relax_dialect.frontend.tvmscript import parse

    module = parse(Path("model.py").read_text(), filename="model.py")

Both dialects of the language are read, that of the first design and that of Apache TVM today;
`docs/howto/tvmscript.md` has the list. `ir`, `relax` and `tir` are the names for Python files:
`from relax_dialect.frontend.tvmscript import ir as I, relax as R, tir as T`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.source import TVMScriptError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xdsl.dialects.builtin import ModuleOp

    from tir_dialect.target import Target

__all__ = ["TVMScriptError", "ir_module", "parse"]


def parse(
    source: str | Callable[..., object] | type,
    extra_vars: Mapping[str, object] | None = None,
    *,
    filename: str | None = None,
    target: Target | str | None = None,
) -> ModuleOp:
    """The verified module that a text describes: a class with `@I.ir_module`, or functions alone.

    `source` is text, or a Python function or class, whose source is read. `extra_vars` are names that the text uses
    beside those around a function or class, with their values: numbers, strings, dtypes, NumPy arrays, tuples and
    dictionaries of those, expressions of `I`, `R`, `T`, and functions, whose source is read where `R.emit_te` applies
    them. Nothing is executed. `target`, as `Target.parse` reads it, says what `T.vscale()` is: how often a register has
    128 bits, 1 without a target. Raises `TVMScriptError`, which points at the position, for a text that is no program.
    """
    from relax_dialect.frontend.tvmscript.module import read

    return read(source, filename, extra_vars, target)


def ir_module(cls: type | None = None, **options: object) -> object:
    """`@ir_module`, as old texts import it: `I.ir_module`."""
    from relax_dialect.frontend.tvmscript import ir

    return ir.ir_module(cls, **options)
