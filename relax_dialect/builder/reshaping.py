"""Shapes with a length that follows from the others, as `reshape` of NumPy has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from relax_dialect.builder.errors import BuilderError
from relax_dialect.builder.expr import Expr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import product, to_dim


def filled_in(tensor: object, shape: object) -> object:
    """The new shape of a tensor, in which a -1 is what the other lengths leave; any other shape as it is.

    `BuilderError` for a second -1, or for a tensor with a dimension of which nothing is known.
    """
    if not isinstance(shape, list | tuple):
        return shape
    lengths = list(cast("Sequence[Any]", shape))
    places = [place for place, length in enumerate(lengths) if isinstance(length, int) and length == -1]
    if not places:
        return lengths
    if len(places) > 1:
        raise BuilderError(f"reshape: expected at most one -1, got {len(places)}")
    info = tensor.type if isinstance(tensor, Expr) else None
    known = info.known_dims if isinstance(info, TensorType) else None
    if known is None:
        raise BuilderError(f"reshape: -1 needs a tensor of known dimensions, got {info}: use match_cast first")
    rest = product(to_dim(length) for place, length in enumerate(lengths) if place != places[0])
    if rest.constant_value == 0:
        raise BuilderError("reshape: -1 beside a length of 0 may be anything")
    lengths[places[0]] = product(known) // rest
    return lengths
