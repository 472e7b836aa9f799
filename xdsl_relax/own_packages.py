"""The packages that are installed beside this one, found there and nowhere else.

Their names are plain words: a file `lowering.py` beside a user's script, or in the folder where Python is started,
would be found before the package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

PACKAGES = ("lowering", "relax_dialect", "tir_dialect", "vm_dialect")
"""Those of this distribution beside `xdsl_relax`."""


def _folder(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


FOLDER = _folder(_folder(__file__))
"""Where they are."""


class OwnPackages:
    """A finder of `sys.meta_path` that finds `PACKAGES` in `FOLDER`, whatever `sys.path` says.

    It has no base class: `importlib.abc` takes as long to load as all of this package.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The package, or `None` for any other module."""
        if path is not None or fullname not in PACKAGES:
            return None
        return PathFinder.find_spec(fullname, [FOLDER])


def find_own_packages() -> None:
    """From now on imports find our packages first. `ImportError` if another module of such a name is loaded already."""
    for name in PACKAGES:
        file = getattr(loaded := sys.modules.get(name), "__file__", None)
        if loaded is not None and (file is None or _folder(file) != os.path.join(FOLDER, name)):
            raise ImportError(
                f"xdsl_relax has a package {name}, but a module of this name is loaded from {file or 'elsewhere'}: "
                "rename that one, or import xdsl_relax before it"
            )
    if not any(isinstance(finder, OwnPackages) for finder in sys.meta_path):
        sys.meta_path.insert(0, OwnPackages())
