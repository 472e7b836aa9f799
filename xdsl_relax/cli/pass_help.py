"""Help on passes, from their docstrings."""

from __future__ import annotations

import inspect

from xdsl.passes import ModulePass, get_pass_option_infos

from lowering.registry import PASSES, load_pass
from xdsl_relax.cli.failures import unknown_pass

# `get_pass_option_infos` gives postponed annotations as the repr of their text.
QUOTE = "'"


def list_passes() -> str:
    """One line per pass: its name and the first line of its docstring."""
    width = max(map(len, PASSES))
    return "\n".join(f"{name:{width}}  {_documentation(load_pass(name)).splitlines()[0]}" for name in PASSES)


def describe_pass(name: str) -> str:
    """The docstring and the options of a pass; `ToolError` if there is none of this name."""
    if name not in PASSES:
        raise unknown_pass(name, list(PASSES))
    cls = load_pass(name)
    options = [
        f"  {option.name.replace('_', '-')}: {option.expected_type.strip(QUOTE)}"
        f"{'' if option.default_value is None else f', {option.default_value} by default'}"
        for option in get_pass_option_infos(cls)
    ]
    return "\n".join((f"{name}\n", _documentation(cls), *(("\nOptions:", *options) if options else ())))


def _documentation(cls: type[ModulePass]) -> str:
    return inspect.getdoc(cls) or ""
