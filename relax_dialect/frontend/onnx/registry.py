"""Which function imports which operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from relax_dialect.builder.expr import Expr
    from relax_dialect.frontend.onnx.node import Node
    from relax_dialect.frontend.onnx.values import Value

Result: TypeAlias = "Expr | Value | Sequence[Expr | Value | None]"
"""What a node computes: its output, or its outputs in order."""

Converter: TypeAlias = "Callable[[Node], Result]"

FAMILIES = (
    "activation",
    "advanced_indexing",
    "attention",
    "binary",
    "control_flow",
    "contrib.activation",
    "contrib.attention",
    "contrib.cached_attention",
    "contrib.convolution",
    "contrib.embedding",
    "contrib.integer",
    "contrib.normalization",
    "contrib.products",
    "contrib.quantized",
    "contrib.recurrent",
    "contrib.rotary",
    "contrib.standard",
    "contrib.weights",
    "convolution",
    "creation",
    "datatype",
    "gather",
    "image",
    "indexing",
    "joining",
    "layers",
    "linear_algebra",
    "manipulation",
    "normalization",
    "padding",
    "pooling",
    "quantization",
    "recurrent",
    "reduction",
    "search",
    "sequence",
    "set",
    "signal",
    "sorting",
    "unary",
    "vision",
)
"""Modules of converters, by operator family."""

_CONVERTERS: dict[tuple[str, str], dict[int, Converter]] = {}
"""By domain and operator, then by version."""


def converts(*names: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators of a domain, from a version of its operator set on."""

    def register(converter: Converter) -> Converter:
        for name in names:
            _CONVERTERS.setdefault((domain, name), {})[since] = converter
        return converter

    return register


@cache
def _load() -> None:
    for family in FAMILIES:
        import_module(f"relax_dialect.frontend.onnx.{family}")


def find(name: str, version: int, domain: str = "") -> Converter | None:
    """The converter of an operator in a version, or `None`."""
    _load()
    known = _CONVERTERS.get((domain, name), {})
    since = max((each for each in known if each <= version), default=None)
    return None if since is None else known[since]


def supported(domain: str = "") -> tuple[str, ...]:
    """The operators of a domain that have a converter."""
    _load()
    return tuple(sorted(name for of, name in _CONVERTERS if of == domain))
