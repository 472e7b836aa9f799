"""Which function imports which operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relax_dialect.frontend.index import TORCH
from relax_dialect.loading import LazyTable, names_in

if TYPE_CHECKING:
    from relax_dialect.builder.expr import Expr
    from relax_dialect.frontend.torch.node import Node

Result: TypeAlias = "Expr | Sequence[Expr | None] | None"
"""What a node computes: a tensor, several in order, or nothing."""

Converter: TypeAlias = "Callable[[Node], Result]"

CONVERTERS = LazyTable[Converter]("relax_dialect.frontend.torch", names_in(TORCH, ""))
"""By the name of the operator with its overload: `aten.add.Tensor`."""


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators, which are named with their overloads: `aten.add.Tensor`.

    What is registered is not decomposed. A later converter replaces an earlier one.
    """

    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS.enter(name, converter.__module__, lambda _: converter)
        return converter

    return register


def find(name: str) -> Converter | None:
    """The converter of an operator, or `None`."""
    return CONVERTERS.get(name)
