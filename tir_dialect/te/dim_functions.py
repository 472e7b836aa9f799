"""Index arithmetic on dimensions: folds functions of scalars to a dimension where dimensions have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tir_dialect import dims
from tir_dialect.dims import Dim

_FUNCTIONS: Mapping[str, Callable[[Dim, Dim], Dim]] = MappingProxyType(
    {
        "add": Dim.__add__,
        "subtract": Dim.__sub__,
        "multiply": Dim.__mul__,
        "floordiv": dims.floordiv,
        "floormod": dims.mod,
        "minimum": dims.minimum,
        "maximum": dims.maximum,
    }
)
_DIVISIONS = ("floordiv", "floormod")


def dim_of(function: str, operands: Sequence[Dim]) -> Dim | None:
    """`function(*operands)`, named as in `nodes.Apply`; `None` if dimensions lack it, or for a division by 0."""
    compute = _FUNCTIONS.get(function)
    if compute is None or len(operands) != 2:
        return None
    if function in _DIVISIONS and operands[1].constant_value == 0:
        return None
    return compute(*operands)
