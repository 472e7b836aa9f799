"""Differences of index expressions, where they are constant."""

from __future__ import annotations

from collections.abc import Callable

from tir_dialect import dims
from tir_dialect.dims import Dim, symbol
from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.tree import post_order

_FUNCTIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": Dim.__add__,
    "subtract": Dim.__sub__,
    "multiply": Dim.__mul__,
    "floordiv": dims.floordiv,
    "floormod": dims.mod,
    "minimum": dims.minimum,
    "maximum": dims.maximum,
}


def known_difference(one: Scalar, other: Scalar) -> int | None:
    """`one - other`, if it is the same for all values of the variables."""
    found: dict[Scalar, Dim] = {}
    for scalar in post_order((one, other)):
        found[scalar] = _dim(scalar, found)
    return (found[one] - found[other]).constant_value


def _dim(scalar: Scalar, found: dict[Scalar, Dim]) -> Dim:
    """A scalar as a dimension; what is none stands for itself."""
    if isinstance(scalar, nodes.Size):
        return scalar.dim
    compute = _FUNCTIONS.get(scalar.function) if isinstance(scalar, nodes.Apply) else None
    if compute is not None:
        operands = [found[operand] for operand in scalar.operands]
        if len(operands) == 2 and operands[1].constant_value != 0:
            return compute(operands[0], operands[1])
    return symbol(f"value_{len(found)}_")
