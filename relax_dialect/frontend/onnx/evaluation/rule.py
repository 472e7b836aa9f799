"""What rules of evaluation share: their type, and operands that have to be numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from relax_dialect.frontend.onnx.values import Array

Attributes: TypeAlias = Mapping[str, Any]
Operands: TypeAlias = Sequence[Array]
Rule: TypeAlias = Callable[[Attributes, Operands], "Array | Sequence[Array]"]


class Open(Exception):
    """The result depends on the value of a symbol."""


def numbers(operand: Array) -> list[int]:
    """The elements as plain numbers; `Open` if some are dimensions."""
    if operand.dtype == object:
        raise Open
    return [int(each) for each in operand.reshape(-1).tolist()]


def axes_of(attributes: Attributes, operands: Sequence[Array | None]) -> list[int] | None:
    """Axes, which newer versions have as second operand."""
    if len(operands) > 1:
        return None if operands[1] is None else numbers(operands[1])
    found = attributes.get("axes")
    return None if found is None else [int(axis) for axis in found]
