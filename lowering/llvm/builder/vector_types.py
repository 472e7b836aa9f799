"""Scalar and vector types of llvm: elements, lanes, and the suffixes of overloaded intrinsics."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute

from tir_dialect.ops.memory import vector_of


def element_type(type_: Attribute) -> Attribute:
    """The type itself, or a vector's element type."""
    return cast("VectorType[Attribute]", type_).element_type if is_vector(type_) else type_


def lane_count(type_: Attribute) -> int | None:
    """The number of elements of a vector type; None for other types."""
    return cast("VectorType[Attribute]", type_).shape.data[0].data if is_vector(type_) else None


def lanes_of(type_: Attribute) -> int:
    """The number of elements of a vector type; `TypeError` for other types."""
    lanes = lane_count(type_)
    if lanes is None:
        raise TypeError(f"expected a vector type, got {type_}")
    return lanes


def is_vector(type_: Attribute) -> bool:
    """Whether it is a vector type."""
    # The class itself, which has no subclasses: `isinstance` goes through the abstract base and is asked for every op.
    return type(type_) is VectorType


def integer_type(type_: Attribute) -> IntegerType:
    """The type itself; `TypeError` if it is no integer type."""
    if not isinstance(type_, IntegerType):
        raise TypeError(f"expected an integer type, got {type_}")
    return cast("IntegerType", type_)


@lru_cache(maxsize=256)
def type_suffix(type_: Attribute) -> str:
    """How the names of overloaded intrinsics spell a type."""
    lanes = lane_count(type_)
    return f"{'' if lanes is None else f'v{lanes}'}{element_type(type_)}"


def like(shape: Attribute, element: Attribute) -> Attribute:
    """`element`, or a vector of it with as many elements as `shape` has."""
    lanes = lane_count(shape)
    return element if lanes is None else vector_of(element, lanes)
