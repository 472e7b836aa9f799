"""What dotted names stand for: the namespaces of TVMScript under any alias, and near misses for unknown names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType

DEFAULT_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "I": "ir",
        "R": "relax",
        "T": "tir",
        "relax": "relax",
        "rx": "relax",
        "tir": "tir",
        "tirx": "tir",
        "ty": "tir",
        "te": "te",
        "topi": "topi",
    }
)
"""The names that texts use without importing them; imports add to these."""

_MODULES = MappingProxyType({"ir": "ir", "relax": "relax", "tir": "tir", "tirx": "tir", "te": "te", "topi": "topi"})
_PYTHON_MODULES = frozenset({"math", "numpy"})
"""Modules of which constants and functions on plain data are known."""
_PACKAGES = frozenset({"tvm", "tvm.script", "tvm.script.parser", "relax_dialect.frontend.tvmscript"})
_TOP_LEVEL = MappingProxyType({"ir_module": "ir", "prim_func": "tir"})
"""Decorators that `tvm.script` itself has."""


def dotted(node: ast.AST) -> tuple[str, ...] | None:
    """`a.b.c` as its parts; `None` for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))


def spelled(node: ast.AST) -> str:
    """A dotted name as the text has it, for messages."""
    parts = dotted(node)
    return "an expression" if parts is None else ".".join(parts)


class Aliases:
    """Which names stand for a namespace."""

    def __init__(self) -> None:
        self._names: dict[str, str] = dict(DEFAULT_ALIASES)
        self._members: dict[str, tuple[str, str]] = {}

    def read(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Learns from an import; nothing is imported."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname is not None or alias.name in _PYTHON_MODULES:
                    self.learn(alias.asname or alias.name, alias.name)
            return
        package = statement.module or ""
        for alias in statement.names:
            name = alias.asname or alias.name
            outer, _, last = package.rpartition(".")
            if alias.name == "op" and last == "relax" and outer in _PACKAGES:
                self._names[name] = "relax"  # from tvm.relax import op
            elif package in _PACKAGES and alias.name in _MODULES:
                self._names[name] = _MODULES[alias.name]
            elif package in _PACKAGES and alias.name in _TOP_LEVEL:
                self._members[name] = (_TOP_LEVEL[alias.name], alias.name)
            elif outer in _PACKAGES and last in _MODULES:
                self._members[name] = (_MODULES[last], alias.name)

    def learn(self, name: str, module: str) -> bool:
        """Makes a name stand for a module, if texts can use that; whether they can."""
        package, _, last = module.rpartition(".")
        if module in _PYTHON_MODULES:
            self._names[name] = module
        elif package in _PACKAGES and last in _MODULES:
            self._names[name] = _MODULES[last]
        else:
            return False
        return True

    def resolve(self, node: ast.AST) -> tuple[str, str] | None:
        """The namespace and the name in it, as `("relax", "nn.relu")`; `None` for other expressions."""
        parts = dotted(node)
        if parts is None:
            return None
        if len(parts) == 1:
            return self._members.get(parts[0])
        if parts[0] == "tvm":
            return _after_tvm(parts)
        namespace = self._names.get(parts[0])
        return None if namespace is None else (namespace, _in_namespace(namespace, parts[1:]))

    def name_in(self, namespace: str, node: ast.AST) -> str | None:
        """The name of an intrinsic of `namespace`; `None` if the node is none."""
        found = self.resolve(node)
        return found[1] if found is not None and found[0] == namespace else None


def _after_tvm(parts: tuple[str, ...]) -> tuple[str, str] | None:
    rest = [part for part in parts[1:] if part not in ("script", "parser")]
    if len(rest) == 1 and rest[0] in _TOP_LEVEL:
        return _TOP_LEVEL[rest[0]], rest[0]
    if len(rest) > 1 and rest[0] in _MODULES:
        return _MODULES[rest[0]], _in_namespace(_MODULES[rest[0]], rest[1:])
    return None


def _in_namespace(namespace: str, parts: Sequence[str]) -> str:
    """A name as texts write it; `relax.op.add` is `R.add`."""
    inner = parts[1:] if namespace == "relax" and len(parts) > 1 and parts[0] == "op" else parts
    return ".".join(inner)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean x`, or nothing."""
    close = get_close_matches(name, known, n=2)
    return f"; did you mean {' or '.join(close)}" if close else ""
