"""The dialects and passes by name; nothing is imported until one is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import cast

from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from lowering.index import INDEX

DIALECTS: dict[str, str] = {
    "relax": "relax_dialect.dialect:Relax",
    "tir": "tir_dialect.dialect:TIR",
    "vm": "vm_dialect.dialect:VM",
    "llvm_ext": "lowering.tir_to_llvm.llvm_ext:LLVM_EXT",
}
"""From the name of a dialect to `module:Dialect`."""

ALIASES: dict[str, str] = {
    "lines-as-pictures": "convert-conv1d-to-conv2d",
    "volumes-in-blocks": "convert-conv3d-layout",
}
"""From the former name of a pass to its name. Former names still work, with a `DeprecationWarning`."""

PASSES: dict[str, str] = {name: entry.where for name, entry in INDEX.items()}
"""From the name of a pass to `module:Class`. `canonicalize` and `dce` are xDSL's own, and ask our ops for patterns and
effects.
"""


def load_dialect(name: str) -> Dialect:
    """The dialect `name`; `KeyError` if it is not one of ours."""
    return cast(Dialect, _load(DIALECTS[name]))


def load_pass(name: str) -> type[ModulePass]:
    """The class of the pass `name`; `KeyError` if there is none. A former name warns."""
    new = ALIASES.get(name)
    found = cast(type[ModulePass], _load(PASSES[new or name]))
    if new is None:
        return found
    warnings.warn(f"the pass '{name}' is called '{new}' now", DeprecationWarning, stacklevel=2)
    return type(found.__name__, (found,), {"name": name})  # xDSL compares the name in a pipeline with that of the class


def dialect_factories() -> dict[str, Callable[[], Dialect]]:
    """One factory per dialect, as xDSL's `Universe` and `Context` want them."""
    return {name: partial(load_dialect, name) for name in DIALECTS}


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """One factory per name of a pass, former names included, as xDSL's `Universe` wants them."""
    return {name: partial(load_pass, name) for name in (*PASSES, *ALIASES)}


def _load(where: str) -> object:
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)
