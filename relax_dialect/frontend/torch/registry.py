"""Which function imports which operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from relax_dialect.builder.expr import Expr
    from relax_dialect.frontend.torch.node import Node

Result: TypeAlias = "Expr | Sequence[Expr | None] | None"
"""What a node computes: a tensor, several in order, or nothing."""

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
    "recurrent",
    "reduction",
    "scalars",
    "search",
    "set",
    "signal",
    "sorting",
    "ternary",
    "unary",
)
"""Modules of converters, by operator family."""

GETITEM = "_operator.getitem"
"""What takes one of several results."""

_CONVERTERS: dict[str, Converter] = {}
"""By the name of the operator with its overload: `aten.add.Tensor`."""


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators, which are named with their overloads: `aten.add.Tensor`.

    What is registered is not decomposed. A later converter takes the place of an earlier one.
    """

    def register(converter: Converter) -> Converter:
        for name in names:
            _CONVERTERS[name] = converter
        return converter

    return register


@cache
def _load() -> None:
    for family in FAMILIES:
        import_module(f"relax_dialect.frontend.torch.{family}")


def find(name: str) -> Converter | None:
    """The converter of an operator, or `None`."""
    _load()
    return _CONVERTERS.get(name)


def supported() -> tuple[str, ...]:
    """The operators that have a converter."""
    _load()
    return tuple(sorted(_CONVERTERS))


def by_family() -> dict[str, tuple[str, ...]]:
    """The operators that have a converter, by the family that it is in."""
    _load()
    found: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name in supported():
        found.setdefault(_CONVERTERS[name].__module__.rpartition(".")[2], []).append(name)
    return {family: tuple(names) for family, names in found.items()}


def name_of(target: Any) -> str:
    """How an operator is called: `aten.add.Tensor`, or a function by its module, such as `_operator.mul`."""
    if hasattr(target, "overloads") or hasattr(target, "_schema"):
        return str(target)
    module = getattr(target, "__module__", None)
    return f"{module}.{target.__name__}" if module is not None and hasattr(target, "__name__") else str(target)
