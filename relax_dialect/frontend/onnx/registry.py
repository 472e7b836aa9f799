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
    "set",
    "signal",
    "sorting",
    "unary",
    "vision",
)
"""Modules of converters, by operator family."""

_CONVERTERS: dict[str, dict[int, Converter]] = {}


def converts(*names: str, since: int = 1) -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators, from a version of the operator set on."""

    def register(converter: Converter) -> Converter:
        for name in names:
            _CONVERTERS.setdefault(name, {})[since] = converter
        return converter

    return register


@cache
def _load() -> None:
    for family in FAMILIES:
        import_module(f"relax_dialect.frontend.onnx.{family}")


def find(name: str, version: int) -> Converter | None:
    """The converter of an operator of the default domain in a version, or `None`."""
    _load()
    known = _CONVERTERS.get(name, {})
    since = max((each for each in known if each <= version), default=None)
    return None if since is None else known[since]


def supported() -> tuple[str, ...]:
    """The operators that have a converter."""
    _load()
    return tuple(sorted(_CONVERTERS))
