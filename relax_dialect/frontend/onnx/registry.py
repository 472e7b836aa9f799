"""Which function imports which operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_dialect.frontend.index import ONNX
from relax_dialect.loading import LazyTable, names_in

if TYPE_CHECKING:
    from relax_dialect.builder.expr import Expr
    from relax_dialect.frontend.onnx.node import Node
    from relax_dialect.frontend.onnx.values import Value

Result: TypeAlias = "Expr | Value | Sequence[Expr | Value | None]"
"""What a node computes: its output, or its outputs in order."""

Converter: TypeAlias = "Callable[[Node], Result]"

CONVERTERS = LazyTable[dict[int, Converter]]("relax_dialect.frontend.onnx", names_in(ONNX, ""))
"""By operator, `Relu` or `com.microsoft.Gelu`, then by version."""


def converts(*names: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators of a domain, from a version of its operator set on."""

    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS.enter(
                _key(domain, name), converter.__module__, lambda known: {**(known or {}), since: converter}
            )
        return converter

    return register


def find(name: str, version: int, domain: str = "") -> Converter | None:
    """The converter of an operator in a version, or `None`."""
    known = CONVERTERS.get(_key(domain, name), {})
    since = max((each for each in known if each <= version), default=None)
    return None if since is None else known[since]


def _key(domain: str, name: str) -> str:
    return f"{domain}.{name}" if domain else name
