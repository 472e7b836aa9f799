"""Symbols that are a stride or the offset of a parameter, and in no shape: what a tensor says besides its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from tir_dialect.types import BufferType


@dataclass(frozen=True)
class LayoutSymbol:
    """A symbol, and the first parameter whose stride along an axis it is, or whose offset (`axis` is `None`)."""

    name: str
    param: int
    axis: int | None


def layout_symbols(params: Sequence[Attribute]) -> list[LayoutSymbol]:
    """The symbols of layouts alone among the types of parameters, each once."""
    buffers = [(number, type_) for number, type_ in enumerate(params) if isinstance(type_, BufferType)]
    taken = {name for _, buffer in buffers for dim in buffer.shape for name in dim.symbols}
    found: list[LayoutSymbol] = []
    for number, buffer in buffers:
        for axis, dim in [*enumerate(buffer.strides), (None, buffer.offset)]:
            if (name := dim.as_symbol) is not None and name not in taken:
                found.append(LayoutSymbol(name, number, axis))
                taken.add(name)
    return found
