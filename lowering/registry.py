"""The dialects and passes by name, of ours and of extensions, imported when they are needed.

A pass says of itself which ops it is about, which it removes, and whether it depends on the target; `docs/generate`
collects these facts in `lowering/index.py`, so that a pipeline knows them before it loads a pass.
"""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from lowering.index import INDEX
from tir_dialect.extensions import load_extensions, note_extension
from tir_dialect.target import Target

if TYPE_CHECKING:
    from xdsl.universe import Universe

DIALECTS: dict[str, str] = {
    "relax": "relax_dialect.dialect:Relax",
    "tir": "tir_dialect.dialect:TIR",
    "vm": "vm_dialect.dialect:VM",
    "llvm_ext": "lowering.llvm.llvm_ext:LLVM_EXT",
}
"""From the name of a dialect to `module:Dialect`."""

ALIASES: dict[str, str] = {
    "lines-as-pictures": "convert-conv1d-to-conv2d",
    "convert-conv3d-layout": "convert-layout",
    "volumes-in-blocks": "convert-layout",
}
"""From the former name of a pass to its name. Former names still work, with a `DeprecationWarning`."""

PASSES: dict[str, str] = {name: entry.where for name, entry in INDEX.items()}
"""From the name of a pass to `module:Class`. `canonicalize` and `dce` are xDSL's own, and ask our ops for patterns and
effects.
"""


def load_dialect(name: str) -> Dialect:
    """The dialect `name`; `KeyError` if it is not one of ours."""
    return cast("Dialect", _load(DIALECTS[name]))


def load_pass(name: str) -> type[ModulePass]:
    """The class of the pass `name`; `KeyError` if there is none. A former name warns."""
    new = ALIASES.get(name)
    found = cast("type[ModulePass]", _load(PASSES[new or name]))
    if new is None:
        return found
    warnings.warn(f"the pass '{name}' is called '{new}' now", DeprecationWarning, stacklevel=2)
    return type(found.__name__, (found,), {"name": name})  # xDSL compares the name in a pipeline with that of the class


_MORE_DIALECTS: dict[str, Callable[[], Dialect]] = {}
_MORE_PASSES: dict[str, Callable[[], type[ModulePass]]] = {}
"""Those of extensions."""

_STEPS_BEFORE: dict[str, list[str]] = {}
"""Passes of extensions by the step of a pipeline that they run before."""

PassT = TypeVar("PassT", bound=type[ModulePass])


def register_dialect(dialect: Dialect) -> Dialect:
    """Makes a dialect of an extension known to all tools and to `build`; `ValueError` if the name is taken."""
    if dialect.name in DIALECTS:
        raise ValueError(f"there is a dialect {dialect.name} already")
    for defined in (*dialect.operations, *dialect.attributes):
        note_extension(defined.__module__)
    _MORE_DIALECTS[dialect.name] = lambda: dialect
    return dialect


def register_pass(pass_class: PassT, *, before: str | None = None) -> PassT:
    """Makes a pass of an extension known to all tools; a decorator of its class. `ValueError` if the name is taken.

    `before` is a step of the pipelines in `lowering.pipelines`: builds run the pass just before it.
    """
    if pass_class.name in PASSES or pass_class.name in ALIASES:
        raise ValueError(f"there is a pass {pass_class.name} already")
    if before is not None and before not in PASSES:
        raise ValueError(f"there is no step {before} of a pipeline that {pass_class.name} can run before")
    note_extension(pass_class.__module__)
    _MORE_PASSES[pass_class.name] = lambda: pass_class
    if before is not None and pass_class.name not in _STEPS_BEFORE.setdefault(before, []):
        _STEPS_BEFORE[before].append(pass_class.name)
    return pass_class


def steps_before(step: str) -> Sequence[str]:
    """The passes of extensions that run just before a step of a pipeline."""
    return _STEPS_BEFORE.get(step, ())


def dialect_factories() -> dict[str, Callable[[], Dialect]]:
    """One factory per dialect, as xDSL's `Universe` and `Context` want them, with those of loaded extensions."""
    return {name: partial(load_dialect, name) for name in DIALECTS} | _MORE_DIALECTS


def pass_factories(*, former: bool = True) -> dict[str, Callable[[], type[ModulePass]]]:
    """One factory per name of a pass, as xDSL's `Universe` wants them, with those of loaded extensions; `former` names,
    too.
    """
    return {name: make for name, make in _our_passes().items() if former or name in PASSES} | _MORE_PASSES


@cache
def _our_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    return {name: partial(load_pass, name) for name in (*PASSES, *ALIASES)}


@cache
def _all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Those of xDSL and ours."""
    from xdsl.transforms import get_all_passes

    return get_all_passes() | _our_passes()


def find_pass_factory(name: str) -> Callable[[], type[ModulePass]] | None:
    """What gives a pass of ours, of xDSL, or of an extension, which is loaded if no other has it."""
    return available_passes().get(name) or available_passes(installed=True).get(name)


def available_passes(*, installed: bool = False) -> dict[str, Callable[[], type[ModulePass]]]:
    """The passes of ours, of xDSL and of loaded extensions; if wanted, of all that are installed."""
    if not installed:
        return _all_passes() | _MORE_PASSES
    load_extensions()
    return installed_universe().all_passes | _all_passes() | _MORE_PASSES


def installed_dialects() -> dict[str, Callable[[], Dialect]]:
    """The dialects of everything that is installed."""
    load_extensions()
    return installed_universe().all_dialects | dialect_factories()


@cache
def installed_universe() -> Universe:
    """What packages, xDSL's and ours among them, have as entry points of xDSL."""
    from xdsl.universe import Universe

    return Universe.get_multiverse()


def _load(where: str) -> object:
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


class Pass(ModulePass, ABC):
    """A pass that says more of itself than its name. Other passes are always run, and are the same for all machines."""

    requires: ClassVar[tuple[str, ...]] = ()
    """Names of ops. The pass changes nothing in a module that has none of them; without names it is always run."""

    folds: ClassVar[bool] = False
    """Whether the pass is also about any other operator, if all of its operands are known."""

    removes: ClassVar[tuple[str, ...]] = ()
    """Names of ops that are gone after the pass: `verify-stage` names the pass where one is left."""

    def for_target(self, target: Target) -> ModulePass:
        """The same pass for a machine."""
        return self


def pass_target(description: str) -> Target:
    """The target in the syntax of `Target.parse`, this machine if it is empty; PassFailedException for another."""
    try:
        return Target.parse(description) if description else Target.host()
    except ValueError as error:
        raise PassFailedException(str(error)) from error
