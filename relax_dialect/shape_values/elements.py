"""Elements of shapes and of small integer tensors as dimensions, and the table of what ops do to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim

Elements: TypeAlias = NDArray[Any]
"""An array of `Dim | None`, `None` where a value is not known; truth values are 0 and 1."""

MOST_ELEMENTS = 64
"""Larger tensors are data, not shapes."""

OpT = TypeVar("OpT", bound=Operation)
Evaluation: TypeAlias = Callable[..., Elements | Sequence[Elements] | None]

RULES: dict[type[Operation], Evaluation] = {}
"""What ops do to values: called with the op and the elements of its operands, `None` for those that are no shapes."""


def evaluates(*op_types: type[OpT]) -> Callable[[Evaluation], Evaluation]:
    """Registers `rule(op, *operands)`, the elements of the only result, or those of each result."""

    def register(rule: Evaluation) -> Evaluation:
        RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return register


def array_of(values: Sequence[Dim | None]) -> Elements:
    """The values as an array of rank 1."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def static_shape(info: TensorType) -> list[int] | None:
    """The dimensions of a type, if all are constants."""
    sizes = [dim.constant_value for dim in info.known_dims or ()]
    known = [size for size in sizes if size is not None]
    return known if info.known_dims is not None and len(known) == len(sizes) else None
