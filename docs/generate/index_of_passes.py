"""The index of passes, `lowering/index.py`: collected from the classes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass
from pkgutil import walk_packages

from xdsl.passes import ModulePass

import lowering
from lowering.registry import Pass

HEAD = '''"""The passes: where each lives, and what the compiler knows of it before it is loaded.

Generated from the classes of passes by `make docs`; see `lowering.registry.Pass`.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """What the class of a pass says of itself."""

    where: str
    """`module:Class`."""
    requires: tuple[str, ...] = ()
    folds: bool = False
    removes: tuple[str, ...] = ()


'''


def pass_classes() -> Iterator[type[ModulePass]]:
    """All passes that modules of `lowering` define, by module."""
    for module in walk_packages(lowering.__path__, "lowering."):
        for member in list(vars(import_module(module.name)).values()):
            is_here = isclass(member) and member.__module__ == module.name
            if is_here and issubclass(member, ModulePass) and isinstance(member.__dict__.get("name"), str):
                yield member


def pass_index() -> str:
    """The text of `lowering/index.py`."""
    rows: list[str] = []
    for cls in sorted(pass_classes(), key=lambda cls: cls.name):
        facts = [repr(f"{cls.__module__}:{cls.__name__}")]
        if issubclass(cls, Pass):
            facts += [f"{name}={value!r}" for name in ("requires", "folds", "removes") if (value := getattr(cls, name))]
        rows.append(f"    {cls.name!r}: Entry({', '.join(facts)}),\n")
    text = f"{HEAD}INDEX: dict[str, Entry] = {{\n{''.join(rows)}}}\n"
    command = [sys.executable, "-m", "ruff", "format", "--line-length", "120", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
