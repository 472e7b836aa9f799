"""Which function imports which operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from relax_dialect.frontend.onnx.families import FAMILIES

if TYPE_CHECKING:
    from relax_dialect.builder.expr import Expr
    from relax_dialect.frontend.onnx.node import Node
    from relax_dialect.frontend.onnx.values import Value

Result: TypeAlias = "Expr | Value | Sequence[Expr | Value | None]"
"""What a node computes: its output, or its outputs in order."""

Converter: TypeAlias = "Callable[[Node], Result]"

_FAMILY_OF: Mapping[tuple[str, str], str] = {
    (domain, name): family
    for domain, families in FAMILIES.items()
    for family, names in families.items()
    for name in names.split()
}
"""The module of an operator's converters, by domain and operator."""

CONVERTERS: dict[tuple[str, str], dict[int, Converter]] = {}
"""By domain and operator, then by version; of the modules that are loaded."""


def converts(*names: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators of a domain, from a version of its operator set on."""

    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS.setdefault((domain, name), {})[since] = converter
        return converter

    return register


def find(name: str, version: int, domain: str = "") -> Converter | None:
    """The converter of an operator in a version, or `None`."""
    family = _FAMILY_OF.get((domain, name))
    if family is None:
        return None
    import_module(f"relax_dialect.frontend.onnx.{family}")
    known = CONVERTERS[domain, name]
    since = max((each for each in known if each <= version), default=None)
    return None if since is None else known[since]
