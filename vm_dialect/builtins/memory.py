"""Builtins on memory: a storage is a tensor of `uint8`, which a tensor inside keeps alive; the shape heap is a tensor
of `int64`; and the builtins for programs of files for which nobody vouches, which reach nothing outside and see no old
memory.

Our compiler keeps sizes in registers; the heap serves hand-written bytecode in the manner of TVM. The codes are those
of TVM (`include/tvm/runtime/vm/builtin.h`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from math import prod
from typing import Any, cast

import tvm_ffi

from vm_dialect import messages
from vm_dialect.builtins.table import Builtin, builtin
from vm_dialect.builtins.values import check_contiguous
from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.errors import UntrustedError
from vm_dialect.host_memory import aligned_bytes, aligned_zeros
from vm_dialect.messages import render
from vm_dialect.tensors import Array, kind_of, new_tensor, tensor_at, tensor_element, to_numpy, view

_BYTE = element_type("ui8")


def _checked_size(dims: Sequence[int], element: ElementType) -> int:
    """Bytes of a tensor; `ValueError` if a dimension is negative, `MemoryError` if others are too large."""
    for axis, dim in enumerate(dims):
        if dim < 0:
            raise ValueError(render(messages.negative_dimension(), axis, dim))
    if prod(max(dim, 1) for dim in dims) * element.itemsize > messages.MOST_BYTES:
        raise MemoryError(messages.too_large())
    return prod(dims) * element.itemsize


@builtin("alloc_storage", 1)
def alloc_storage(size: int, memory: Callable[[int], Array] = aligned_bytes) -> tvm_ffi.Tensor:
    """New memory of `size` bytes; `ValueError` if it is negative."""
    if size < 0:
        raise ValueError(render(messages.negative_size(), size))
    if size > messages.MOST_BYTES:
        raise MemoryError(render(messages.negative_size(), size))
    return new_tensor((size,), _BYTE, memory)


@builtin("alloc_tensor", 3, None)
def alloc_tensor(storage: tvm_ffi.Tensor, offset: int, dtype: str, *dims: int) -> tvm_ffi.Tensor:
    """The tensor `offset` bytes into a storage; `ValueError` if it does not fit or is not aligned."""
    element = element_type(dtype)
    size, capacity = _checked_size(dims, element), storage.numel()
    if offset < 0 or offset + size > capacity:
        raise ValueError(render(messages.out_of_storage(), size, offset, capacity))
    if offset % element.itemsize:
        raise ValueError(render(messages.not_aligned("alloc_tensor", element.itemsize), offset % element.itemsize))
    return tensor_at(storage, offset, dims, element)


@builtin("new_tensor", 1, None)
def new_tensor_(dtype: str, *dims: int, memory: Callable[[int], Array] = aligned_bytes) -> tvm_ffi.Tensor:
    """A tensor with memory of its own; `ValueError` if a dimension is negative."""
    element = element_type(dtype)
    _checked_size(dims, element)
    return new_tensor(dims, element, memory)


@builtin("new_tensor_of_shape", 2)
def new_tensor_of_shape(dtype: str, shape: Sequence[int]) -> tvm_ffi.Tensor:
    """`new_tensor` with the dimensions of a shape whose rank the program does not know."""
    return new_tensor_(dtype, *shape)


@builtin("view", 1, None)
def view_(tensor: tvm_ffi.Tensor, *dims: int) -> tvm_ffi.Tensor:
    """The same memory with another shape; `ValueError` if it is not contiguous or the number of elements differs."""
    check_contiguous(tensor, "view")
    elements = _checked_size(dims, _BYTE)
    if elements != tensor.numel():
        raise ValueError(render(messages.wrong_element_count(), tensor.numel(), elements))
    return view(tensor, dims)


@builtin("reshape", 2)
def reshape(tensor: tvm_ffi.Tensor, shape: Sequence[int]) -> tvm_ffi.Tensor:
    """`view` with the dimensions of a shape."""
    return view_(tensor, *shape)


@builtin("read_cond", 1)
def read_cond(tensor: tvm_ffi.Tensor) -> bool:
    """The boolean held by a tensor of rank 0."""
    array = to_numpy(tensor)
    if array.ndim != 0 or tensor_element(tensor).name != "i1":
        raise TypeError(f"read_cond: expected a bool tensor of rank 0, got {tensor.dtype}{list(tensor.shape)}")
    return bool(array)


@builtin("copy", 1)
def copy(value: Any) -> Any:
    """The value itself: moves it from register to register."""
    return value


@builtin("kill", 0)
def kill() -> None:
    """Null, for the register of a value that is not used any more."""


@builtin("null_value", 0)
def null_value() -> None:
    """Null."""


class MatchCode(IntEnum):
    """What `match_shape` does with a dimension and the number given with the code."""

    ASSERT_EQUAL_TO_IMMEDIATE = 0
    STORE_TO_HEAP = 1
    NO_OP = 2
    ASSERT_EQUAL_TO_LOAD = 3


class MakeShapeCode(IntEnum):
    """Where `make_shape_from_heap` takes a dimension from."""

    USE_IMMEDIATE = 0
    LOAD = 1


MOST_SLOTS = 1 << 20
"""Of a heap: more than the symbols and sizes of any program."""


@builtin("alloc_shape_heap", 1)
def alloc_shape_heap(size: int) -> tvm_ffi.Tensor:
    """A heap of `size` integers, all 0."""
    if size < 0:
        raise ValueError(render(messages.negative_size(), size * 8))
    if size > MOST_SLOTS:
        raise MemoryError(f"a shape heap expected at most {MOST_SLOTS} slots, got {size}")
    heap = new_tensor((size,), element_type("i64"))
    to_numpy(heap)[...] = 0
    return heap


@builtin("store_shape", 2, None)
def store_shape(shape: Sequence[int], heap: tvm_ffi.Tensor, *slots: int) -> None:
    """Writes the dimensions of a shape into slots of the heap, in order."""
    if len(slots) != len(shape):
        raise ValueError(f"store_shape: expected {len(shape)} slots, got {len(slots)}")
    for slot, dim in zip(slots, shape, strict=True):
        _store(heap, slot, dim)


@builtin("load_shape", 1, None)
def load_shape(heap: tvm_ffi.Tensor, *slots: int) -> tvm_ffi.Shape:
    """The shape whose dimensions are in slots of the heap."""
    return tvm_ffi.Shape(tuple(_load(heap, slot) for slot in slots))


@builtin("match_shape", 4, None)
def match_shape(value: object, heap: tvm_ffi.Tensor, rank: int, *codes_and_subject: int | str) -> None:
    """Matches the dimensions of a tensor or shape.

    After the rank come as many pairs of `MatchCode` and number, then what errors name.
    """
    *codes, subject = codes_and_subject
    pairs = _pairs([int(code) for code in codes], rank, "match_shape")
    shape = _dimensions(value, str(subject))
    if len(shape) != rank:
        raise TypeError(render(messages.wrong_rank(str(subject), rank), len(shape)))
    for axis, (dim, (code, number)) in enumerate(zip(shape, pairs, strict=True)):
        _match(dim, heap, code, number, messages.describe_dimension(str(subject), axis))


@builtin("match_prim_value", 5)
def match_prim_value(value: object, heap: tvm_ffi.Tensor, code: int, number: int, subject: str) -> None:
    """Matches an integer by one `MatchCode`."""
    if not isinstance(value, int) or kind_of(value) != "int":
        raise TypeError(render(messages.wrong_kind(subject, "int"), name=kind_of(value)))
    _match(value, heap, code, number, subject)


@builtin("make_shape_from_heap", 2, None)
def make_shape_from_heap(heap: tvm_ffi.Tensor, rank: int, *codes: int) -> tvm_ffi.Shape:
    """The shape of `rank` dimensions, each by a `MakeShapeCode` and a number."""
    pairs = _pairs(codes, rank, "make_shape_from_heap")
    return tvm_ffi.Shape(tuple(make_prim_value(heap, code, number) for code, number in pairs))


@builtin("make_prim_value", 3)
def make_prim_value(heap: tvm_ffi.Tensor, code: int, number: int) -> int:
    """An integer by one `MakeShapeCode`."""
    return _load(heap, number) if MakeShapeCode(code) is MakeShapeCode.LOAD else number


def _pairs(codes: Sequence[int], rank: int, name: str) -> list[tuple[int, int]]:
    if len(codes) != 2 * rank:
        raise ValueError(f"{name}: expected {2 * rank} codes and numbers, got {len(codes)}")
    return list(zip(codes[::2], codes[1::2], strict=True))


def _dimensions(value: object, subject: str) -> tuple[int, ...]:
    if isinstance(value, tvm_ffi.Tensor):
        return value.shape
    if isinstance(value, tvm_ffi.Shape):
        return tuple(cast("Sequence[int]", value))
    raise TypeError(render(messages.wrong_kind(subject, "shape"), name=kind_of(value)))


def _match(dim: int, heap: tvm_ffi.Tensor, code: int, number: int, subject: str) -> None:
    match MatchCode(code):
        case MatchCode.STORE_TO_HEAP:
            _store(heap, number, dim)
        case MatchCode.ASSERT_EQUAL_TO_IMMEDIATE:
            _expect_equal(dim, number, subject)
        case MatchCode.ASSERT_EQUAL_TO_LOAD:
            _expect_equal(dim, _load(heap, number), subject)
        case MatchCode.NO_OP:
            pass


def _expect_equal(dim: int, expected: int, subject: str) -> None:
    if dim != expected:
        raise ValueError(render(messages.wrong_constant(subject, expected), dim))


def _slot(heap: tvm_ffi.Tensor, slot: int) -> None:
    if heap.dtype != "int64" or heap.ndim != 1:
        raise TypeError(f"a shape heap expected a vector of int64, got {heap.dtype}{list(heap.shape)}")
    if not 0 <= slot < heap.numel():
        raise ValueError(f"slot {slot} is outside a shape heap of {heap.numel()}")


def _store(heap: tvm_ffi.Tensor, slot: int, dim: int) -> None:
    _slot(heap, slot)
    to_numpy(heap)[slot] = dim


def _load(heap: tvm_ffi.Tensor, slot: int) -> int:
    _slot(heap, slot)
    return int(to_numpy(heap)[slot])


def foreign_builtin(
    builtin: Builtin, packed_function: Callable[[str], Callable[..., Any] | None], is_allowed: bool
) -> Callable[..., Any]:
    """What stands for a builtin; `packed_function` finds what the program may call, and `is_allowed` says whether the
    host has named the builtin. `UntrustedError` for one that the program may not call.
    """
    if builtin.name == "run_deferred" and not is_allowed:  # the text that it compiles may say anything
        raise UntrustedError(messages.not_allowed("vm.builtin.run_deferred"))
    if builtin.name == "get_packed_func":
        return partial(_packed, packed_function)
    return _ZEROED.get(builtin.name, builtin.function)


def _packed(packed_function: Callable[[str], Callable[..., Any] | None], name: str) -> tvm_ffi.Function:
    function = packed_function(name)
    if function is None:
        raise ValueError(messages.unknown_packed(name))
    return tvm_ffi.convert(function)


def _zeroed_storage(size: int) -> tvm_ffi.Tensor:
    return alloc_storage(size, aligned_zeros)


def _zeroed_tensor(dtype: str, *dims: int) -> tvm_ffi.Tensor:
    return new_tensor_(dtype, *dims, memory=aligned_zeros)


def _zeroed_tensor_of_shape(dtype: str, shape: Sequence[int]) -> tvm_ffi.Tensor:
    return new_tensor_(dtype, *shape, memory=aligned_zeros)


_ZEROED: dict[str, Callable[..., Any]] = {
    "alloc_storage": _zeroed_storage,
    "new_tensor": _zeroed_tensor,
    "new_tensor_of_shape": _zeroed_tensor_of_shape,
}
