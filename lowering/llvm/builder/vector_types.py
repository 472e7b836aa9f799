"""Scalar and vector types of llvm, and vector constants as attributes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IntegerType, VectorType
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


def dense_integers(values: Sequence[int], element: IntegerType) -> DenseIntOrFPElementsAttr:
    """A vector of integers, which fit the type."""
    return _integers(tuple(map(int, values)), element)


def dense_floats(values: Sequence[float], element: AnyFloat) -> DenseIntOrFPElementsAttr:
    """A vector of floats, rounded to the type."""
    # By their bits: zeros of both signs are equal.
    return _floats(struct.pack(f"{len(values)}d", *values), element)


@lru_cache(maxsize=1024)
def _integers(values: tuple[int, ...], element: IntegerType) -> DenseIntOrFPElementsAttr:
    return DenseIntOrFPElementsAttr.from_list(VectorType(element, [len(values)]), values)


@lru_cache(maxsize=1024)
def _floats(values: bytes, element: AnyFloat) -> DenseIntOrFPElementsAttr:
    numbers = struct.unpack(f"{len(values) // 8}d", values)
    return DenseIntOrFPElementsAttr.from_list(VectorType(element, [len(numbers)]), numbers)
