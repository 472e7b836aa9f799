"""Attributes of computations, which become annotations of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.ir import Attribute

from tir_dialect.ops.annotations import Note, note_attr
from tir_dialect.te.tensor import Tensor

Attr: TypeAlias = "Note | Tensor | Sequence[Tensor]"
"""What an attribute of a computation says; a tensor goes by its name."""


def annotations_of(name: str, attrs: Mapping[str, Attr] | None) -> dict[str, Attribute]:
    """The annotations that attributes of the computation `name` become; TypeError for what is none."""
    if attrs is not None and not isinstance(cast("object", attrs), Mapping):
        raise TypeError(f'te: attributes of "{name}": expected values by name, got {attrs!r}')
    try:
        return {key: note_attr(_named(value)) for key, value in (attrs or {}).items()}
    except TypeError as error:
        raise TypeError(f'te: attribute of "{name}": {error}') from None


def _named(value: object) -> object:
    """An attribute with the names of tensors in their place."""
    if isinstance(value, list | tuple):
        return [_named(each) for each in cast("Sequence[object]", value)]
    return value.name if isinstance(value, Tensor) else value
