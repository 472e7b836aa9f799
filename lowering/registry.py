"""Names of the passes and where their classes live; nothing is imported until a pass is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from xdsl.passes import ModulePass

# name -> "module:Class". `canonicalize`, `cse` and `dce` are xDSL's own and follow the effects and patterns on our ops.
PASSES: dict[str, str] = {
}


def load_pass(name: str) -> type[ModulePass]:
    """The class of the pass `name`; `KeyError` if there is none."""
    module, _, attribute = PASSES[name].partition(":")
    return cast(type[ModulePass], getattr(import_module(module), attribute))


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """One factory per registered pass, as xDSL's `Universe` wants them."""

    def factory(name: str) -> Callable[[], type[ModulePass]]:
        return lambda: load_pass(name)

    return {name: factory(name) for name in PASSES}
