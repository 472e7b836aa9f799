"""Names of a module that are loaded when they are used first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module


class LazyNames:
    """Names of a module and where they come from: `package.module`, or `package.module:Name`.

    ::

        _NAMES = LazyNames(__name__, {"Executable": "vm_dialect.executable:Executable"})
        __getattr__, __dir__ = _NAMES.get, _NAMES.listed
    """

    def __init__(self, module: str, names: Mapping[str, str]):
        self._module = module
        self._names = names

    def get(self, name: str) -> object:
        """The value of a name, which the module has from then on; `AttributeError` says which names are close."""
        source = self._names.get(name)
        if source is None:
            raise AttributeError(f"module '{self._module}' has no attribute '{name}'{self._advice(name)}")
        module, _, attribute = source.partition(":")
        value: object = import_module(module)
        if attribute:
            value = getattr(value, attribute)
        setattr(sys.modules[self._module], name, value)
        return value

    def listed(self) -> list[str]:
        """What `dir` and completion show."""
        return sorted({*self._names, *(name for name in vars(sys.modules[self._module]) if name.startswith("__"))})

    def _advice(self, name: str) -> str:
        if name.startswith("_"):  # what Python and notebooks look for
            return ""
        from difflib import get_close_matches

        close = get_close_matches(name, self._names, n=1)
        return f"; did you mean '{close[0]}'?" if close else ""
