"""Packages of other people that add to this compiler, and external models, as in MLIR: implementations of what an op
declares that stand apart from the op.

Such a package names a module in its `pyproject.toml`, which registers what it has when it is imported::

    [project.entry-points."xdsl_relax.extensions"]
    my_package = "my_package.relax"

It is imported when a name is not known otherwise, so that a program without need of it does not wait for it.

An analysis imports the ops that it looks into. An op whose verifier, effects or patterns need the analysis names the
module in an index; the module attaches the implementation when it is loaded, which is when it is needed first.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Generic, TypeVar

GROUP = "xdsl_relax.extensions"
"""Of the entry points."""

_OURS = frozenset({"lowering", "relax_dialect", "tir_dialect", "vm_dialect", "xdsl", "xdsl_relax"})

_NOTED: dict[str, None] = {}
"""The modules, and the paths of files, that have registered something, in order."""
_SEARCHED: list[str] = []
"""`GROUP`, once the entry points have been looked for."""


class ExtensionError(ImportError):
    """An extension that cannot be imported."""


def is_foreign(module: str) -> bool:
    """Whether a module is of another package than ours and xDSL."""
    return module.partition(".")[0] not in _OURS


def load_extensions() -> bool:
    """Imports the extensions that are installed, once; whether there are any. `ExtensionError` names one that fails."""
    if _SEARCHED:
        return False
    _SEARCHED.append(GROUP)
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP)
    for entry in found:
        load_extension(entry.module)
    return len(found) > 0


def load_extension(name: str) -> None:
    """Imports a module, or runs a file that ends in `.py`, as an extension, installed or not.

    `ExtensionError` says what it raises.
    """
    try:
        if name.endswith(".py"):
            runpy.run_path(name)
        else:
            import_module(name)
    except Exception as error:
        if isinstance(error, FileNotFoundError) and error.filename == os.path.abspath(name):
            raise ExtensionError(f"{name}: no such file") from error
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == name]
        where = f"{name}:{lines[-1]}" if lines else name
        raise ExtensionError(f"{where}: {type(error).__name__}: {error}") from error
    note_extension(name)


def note_extension(module: str) -> None:
    """Notes a module that has registered something: code that is kept on disk is that of its sources, too."""
    if is_foreign(module):
        _NOTED[module] = None


def is_extension(module: str) -> bool:
    """Whether a module is of a package that has registered something."""
    package = module.partition(".")[0]
    return any(name.partition(".")[0] == package for name in _NOTED)


def extension_sources() -> Iterator[Path]:
    """The source files of the packages that have registered something."""
    seen = set[str]()
    for name in _NOTED:
        package = name.partition(".")[0]
        if name.endswith(".py"):
            yield Path(name).absolute()
        elif package not in seen and (module := sys.modules.get(package)) is not None:
            seen.add(package)
            folders = list(getattr(module, "__path__", ()))
            for folder in folders:
                yield from sorted(Path(folder).rglob("*.py"))
            if not folders and (file := getattr(module, "__file__", None)) is not None:
                yield Path(file).absolute()


ModelT = TypeVar("ModelT")


class ExternalModels(Generic[ModelT]):
    """The implementations of one interface, by the names of ops or traits."""

    def __init__(self, index: Mapping[str, str]):
        """`index` has the module of each implementation."""
        self._index = index
        self._models: dict[str, ModelT] = {}

    def attach(self, *names: str) -> Callable[[ModelT], ModelT]:
        """Registers an implementation for ops or traits of these names, which are in the index."""

        def register(model: ModelT) -> ModelT:
            self._models.update(dict.fromkeys(names, model))
            return model

        return register

    def of(self, name: str) -> ModelT:
        """The implementation for an op or trait."""
        found = self._models.get(name)
        if found is None:
            import_module(self._index[name])
            found = self._models[name]
        return found

    def names(self) -> tuple[str, ...]:
        """The names of the index."""
        return tuple(self._index)
