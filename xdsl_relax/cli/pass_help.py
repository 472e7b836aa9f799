"""Help on passes, from their docstrings, and on dialects."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from xdsl.passes import ModulePass, get_pass_option_infos

from lowering.registry import dialect_factories, pass_factories
from tir_dialect.extensions import load_extensions
from xdsl_relax.cli.parser import Listing
from xdsl_relax.errors import unknown_pass

# `get_pass_option_infos` gives postponed annotations as the repr of their text.
QUOTE = "'"


def our_passes() -> Listing:
    """Our passes and those of extensions, with the first line of their docstrings."""
    load_extensions()
    rows = [(name, _summary(make())) for name, make in sorted(pass_factories(former=False).items())]
    return "passes", rows


def other_passes(available: Iterable[str]) -> Listing:
    """The passes of xDSL and other packages, which are not loaded for their names."""
    ours = pass_factories()
    return "passes of xDSL", [(name, "") for name in sorted(available) if name not in ours]


def dialects(available: Iterable[str]) -> tuple[Listing, Listing]:
    """Our dialects and those of extensions with their ops, then those of xDSL."""
    load_extensions()
    ours = dialect_factories()
    rows = [(name, f"{len(list(make().operations))} ops") for name, make in ours.items()]
    return ("dialects", rows), ("dialects of xDSL", [(name, "") for name in sorted(available) if name not in ours])


def describe_pass(name: str) -> str:
    """The docstring and the options of a pass; `PassError` if there is none of this name."""
    load_extensions()
    passes = pass_factories()
    if name not in passes:
        raise unknown_pass(name, list(passes))
    cls = passes[name]()
    options = [
        f"  {option.name.replace('_', '-')}: {option.expected_type.strip(QUOTE)}"
        f"{'' if option.default_value is None else f', {option.default_value} by default'}"
        for option in get_pass_option_infos(cls)
    ]
    return "\n".join((f"{name}\n", _documentation(cls), *(("\nOptions:", *options) if options else ())))


def _summary(cls: type[ModulePass]) -> str:
    return (_documentation(cls).splitlines() or [""])[0]


def _documentation(cls: type[ModulePass]) -> str:
    return inspect.getdoc(cls) or ""
