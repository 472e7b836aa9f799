"""Constant tensors: conversion to and from NumPy arrays, those whose elements are not part of the text,
`#tir.weight<"conv1.weight">`, and arrays that a thread computes while a program is compiled: constants in another
order, or scaled.

NumPy lets other threads run while it moves elements, and passes need the shapes only. The computations run one after
the other, in the order in which they were asked for, so that each finds what it is made of.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr
from xdsl.dialects.builtin import TensorType as ElementsType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tir_dialect.dtypes import (
    from_numpy,
    integer_limits,
    is_bool,
    is_float,
    is_integer,
    is_small_float,
    is_unsigned,
    numpy_dtype,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


LEAST_BYTES = 1 << 16
"""A smaller array takes as long as it takes to leave it to a thread."""


class LazyArray:
    """An array of a known shape and dtype, which must not be modified."""

    def __init__(
        self, shape: Sequence[int], dtype: np.dtype[Any], make: Callable[[], NDArray[Any]], executor: ThreadPoolExecutor
    ) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self._make, self._process = make, os.getpid()
        self._elements = executor.submit(make)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.size * self.dtype.itemsize

    def get(self) -> NDArray[Any]:
        """The elements, when they are there; the error of the computation, if it raised one."""
        if os.getpid() != self._process:  # a fork has no thread
            elements: Future[NDArray[Any]] = Future()
            elements.set_result(self._make())
            self._process, self._elements = os.getpid(), elements
        return self._elements.result()


Elements: TypeAlias = "NDArray[Any] | LazyArray"


def array_of(elements: Elements) -> NDArray[Any]:
    """The array itself, when it is there."""
    return elements.get() if isinstance(elements, LazyArray) else elements


def computed(
    make: Callable[[NDArray[Any]], NDArray[Any]], source: Elements, shape: Sequence[int], dtype: np.dtype[Any]
) -> Elements:
    """What `make` gives for an array, which has this shape and dtype; at once if it is small, or done already."""
    size = math.prod(shape) * dtype.itemsize
    if size < LEAST_BYTES or (executor := _executor()) is None:
        return make(array_of(source))
    return LazyArray(shape, dtype, lambda: make(array_of(source)), executor)


_executors: dict[int, ThreadPoolExecutor] = {}
"""The thread of this process, by its number: a fork has none."""


def _executor() -> ThreadPoolExecutor | None:
    """What computes; `None` if there is no second processor for it."""
    if (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) < 2:
        return None
    if os.getpid() not in _executors:
        _executors.clear()
        _executors[os.getpid()] = ThreadPoolExecutor(1, thread_name_prefix="relax-arrays")
    return _executors[os.getpid()]


@dataclass(frozen=True, eq=False, repr=False)
class Weight:
    """A tensor by name and, if this process has them, its elements: an array that must not be modified.

    Two weights are equal if they have the same name and the same array; a weight parsed from text has no array.
    """

    name: str
    elements: Elements | None = None
    """The array, or one that is being computed."""

    @property
    def array(self) -> NDArray[Any] | None:
        """The elements, when they are there; `None` if they are not in this process."""
        return None if self.elements is None else array_of(self.elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weight) and self.name == other.name and self.elements is other.elements

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Weight({self.name!r})"

    @classmethod
    def of_content(cls, array: Array) -> Weight:
        """A content-addressed weight: its name is a digest of the elements."""
        import hashlib

        import numpy as np

        data = np.ascontiguousarray(array)
        digest = hashlib.blake2b(data.reshape(-1).view(np.uint8).data, digest_size=8)
        digest.update(f"{array.dtype}{array.shape}".encode())
        return cls(f"const_{digest.hexdigest()}", data)


@irdl_attr_definition
class WeightAttr(Data[Weight]):
    """A constant tensor by name: `#tir.weight<"conv1.weight">`.

    Only the name is printed. In memory the attribute references the elements, so that passes neither copy nor lose
    them, and they are freed with the last op that uses them. For a module parsed from text they are passed to `build`.
    """

    name = "tir.weight"

    def __init__(self, weight: Weight | str, elements: Elements | None = None) -> None:
        super().__init__(Weight(weight, elements) if isinstance(weight, str) else weight)

    @property
    def weight_name(self) -> str:
        """The name under which the tensor is kept."""
        return self.data.name

    @property
    def array(self) -> NDArray[Any] | None:
        """The elements, when they are there; `None` if they are not in this process."""
        return self.data.array

    def kept_array(self) -> NDArray[Any] | None:
        """The same, by a method: to ask what has a property is to ask for the property."""
        return self.data.array

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Weight:
        """Parses `<"name">`."""
        with parser.in_angle_brackets():
            return Weight(parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<"name">`."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.name)


MOST_IN_TEXT = 1024
"""Tensors of more elements are weights: they do not belong into text."""

TensorAttr: TypeAlias = DenseIntOrFPElementsAttr | WeightAttr
"""What a constant tensor is made of."""


def dense_array(elements: DenseIntOrFPElementsAttr) -> NDArray[Any]:
    """The elements of a dense attribute as a new array; splats are expanded."""
    import numpy as np

    kind, data, shape = elements.get_element_type(), elements.data.data, elements.get_shape()
    dtype = numpy_dtype(kind)
    if dtype.isbuiltin == 1 and dtype.kind in "iuf" and len(data) == math.prod(shape) * dtype.itemsize:
        return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    # xDSL decodes the others one by one. Without a dtype NumPy makes floats of integers of which only some are 2**63 or
    # more.
    raw = np.float64 if isinstance(kind, AnyFloat) else np.uint64 if is_unsigned(kind) else np.int64
    values = np.array(elements.get_values(), raw).astype(dtype)
    return np.full(shape, values.reshape(-1)[0]) if values.size == 1 else values.reshape(shape)


def converted(array: NDArray[Any], dtype: Attribute) -> NDArray[Any]:
    """The elements in another dtype, as `relax.astype` converts them: the array itself if it has the dtype.

    A float becomes the nearest integer in the direction of 0, outside of the range the end of the range, and of NaN 0.
    An integer that is too wide loses its upper bits. `i1` says whether a number is not 0.
    """
    import numpy as np

    target = numpy_dtype(dtype)
    if array.dtype == target:
        return array
    if is_small_float(from_numpy(array.dtype)) or (array.dtype.itemsize < 4 and is_float(from_numpy(array.dtype))):
        array = array.astype(np.float32)  # which has all their values
    if is_bool(dtype):
        return array != 0
    if not (is_integer(dtype) and array.dtype.kind == "f"):
        with np.errstate(all="ignore"):
            return array.astype(target)
    low, high = integer_limits(dtype)
    wide = np.uint64 if is_unsigned(dtype) else np.int64
    below, above = array < float(low), array >= float(high + 1)
    inside = np.where(below | above | np.isnan(array), 0, array).astype(wide)
    return np.where(below, wide(low), np.where(above, wide(high), inside)).astype(target)


def elements_of(value: TensorAttr) -> NDArray[Any] | None:
    """The elements of a constant, read-only; `None` for a weight that has only a name."""
    return value.data.array if isinstance(value, WeightAttr) else dense_array(value)


def sources_of(value: TensorAttr) -> Elements | None:
    """As `elements_of`, but does not wait for elements that are being computed."""
    return value.data.elements if isinstance(value, WeightAttr) else dense_array(value)


def tensor_attr(array: Elements, name: str | None = None) -> TensorAttr:
    """A constant tensor with the elements of `array`, which must not be changed any more.

    A tensor with a name, or of more than `MOST_IN_TEXT` elements, becomes a weight; `TypeError` for a dtype that there
    is not.
    """
    kind = from_numpy(array.dtype)
    if name is not None:
        return WeightAttr(name, array)
    array = array_of(array)
    if array.size > MOST_IN_TEXT:
        return WeightAttr(Weight.of_content(array))
    values = array.reshape(-1).tolist()
    if isinstance(kind, AnyFloat):
        return DenseIntOrFPElementsAttr.from_list(ElementsType(kind, array.shape), values)
    return DenseIntOrFPElementsAttr.from_list(ElementsType(kind, array.shape), values)
