"""Differences of index expressions, where they are constant."""

from __future__ import annotations

from tir_dialect.dims import Dim, symbol
from tir_dialect.te import nodes
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.signs import dim_of
from tir_dialect.te.tree import post_order


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
    known = None
    if isinstance(scalar, nodes.Apply):
        known = dim_of(scalar.function, [found[operand] for operand in scalar.operands])
    return symbol(f"value_{len(found)}_") if known is None else known
