"""The packed functions that TVM's run time has beside its operators, under its names: `tvm.contrib.sort.*`,
`relax.run.*`, `vm.builtin.*`.

PrimFuncs that TVM lowers sorting to, and texts after its passes, call them. They are written with NumPy; what somebody
else has registered under a name stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import tvm_ffi
from numpy.typing import NDArray

from vm_dialect.numpy_library import LIBRARY

Array = NDArray[Any]


@cache
def register_packed_functions() -> None:
    """Enters the functions, and those of `vm_dialect.numpy_library`, into the registry of tvm-ffi, where there is none
    of their names.
    """
    for name, function in {**_FUNCTIONS, **LIBRARY}.items():
        if tvm_ffi.get_global_func(name, allow_missing=True) is None:
            tvm_ffi.register_global_func(name, function)


def _view(tensor: Any) -> Array:
    return np.from_dlpack(tensor)


def _order(x: Array, axis: int, is_ascending: bool) -> Array:
    """The positions of the elements in order; equal ones stay in theirs."""
    if is_ascending:
        return np.argsort(x, axis, kind="stable")
    last = x.shape[axis] - 1
    return np.flip(last - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def argsort(x: Any, out: Any, axis: int, is_ascend: bool) -> None:
    """`out` gets the positions of the elements of `x` in order along an axis."""
    _view(out)[...] = _order(_view(x), axis, is_ascend)


def sort(x: Any, out: Any, axis: int, is_ascend: bool) -> None:
    """`out` gets the elements of `x` in order along an axis."""
    data = _view(x)
    _view(out)[...] = np.take_along_axis(data, _order(data, axis, is_ascend), axis)


def argsort_nms(x: Any, sort_num: Any, out: Any, axis: int, is_ascend: bool) -> None:
    """`argsort` of the first elements along an axis, of which `sort_num` says how many; the others stay in order."""
    data, counts = np.moveaxis(_view(x), axis, -1), _view(sort_num)
    made = np.moveaxis(_view(out), axis, -1)
    counts = counts.reshape(data.shape[:-1])
    for row in np.ndindex(data.shape[:-1]):
        count = min(max(int(counts[row]), 0), data.shape[-1])
        made[row] = np.arange(data.shape[-1])
        made[row][:count] = _order(data[row][:count], 0, is_ascend)


def topk(x: Any, *arguments: Any) -> None:
    """`topk(x, values, indices, k, axis, ret_type, is_ascend)`: the first `k` in order along an axis, all if `k` is
    less than 1; `ret_type` says whether values, indices, or `both` are among the arguments.
    """
    *outs, k, axis, kind, is_ascend = arguments
    wanted = ("values", "indices") if str(kind) == "both" else (str(kind),)
    if len(outs) != len(wanted) or not set(wanted) <= {"values", "indices"}:
        raise ValueError(f"tvm.contrib.sort.topk expected ret_type both, values or indices, got {kind}")
    data = _view(x)
    positions = _order(data, axis, is_ascend)
    positions = np.take(positions, range(k if k >= 1 else data.shape[axis]), axis)
    for out, name in zip(outs, wanted, strict=True):
        _view(out)[...] = positions if name == "indices" else np.take_along_axis(data, positions, axis)


def unique(
    x: Any, is_sorted: int, return_index: int, return_inverse: int, return_counts: int, axis: int | None = None
) -> object:
    """The elements, or slices along an axis, each once, and what else is wanted of `numpy.unique`: in order, or in that
    of their first occurrence.
    """
    data = _view(x)
    values, first, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        values = np.take(values, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], ranks[inverse]
    wanted = [(values, True), (first, return_index), (inverse.reshape(-1), return_inverse), (counts, return_counts)]
    made = [_tensor(each) for each, is_wanted in wanted if is_wanted]
    return made[0] if len(made) == 1 else tuple(made)


def nonzero(x: Any) -> tvm_ffi.Tensor:
    """The positions of elements that are not 0: a row of indices for each dimension."""
    return _tensor(np.stack(np.atleast_1d(_view(x)).nonzero()))


def shape_to_tensor(shape: tvm_ffi.Shape) -> tvm_ffi.Tensor:
    """The sizes, `int64`."""
    return _tensor(np.array(list(shape), np.int64))


def copy(x: Any) -> tvm_ffi.Tensor:
    """A tensor of its own with the same elements."""
    return _tensor(_view(x).copy())


def reshape(x: Any, shape: tvm_ffi.Shape) -> tvm_ffi.Tensor:
    """The same memory in another shape."""
    return tvm_ffi.from_dlpack(_view(x).reshape([int(each) for each in cast("Sequence[int]", shape)]))


def shape_of(x: Any) -> tvm_ffi.Shape:
    """The sizes of a tensor."""
    return tvm_ffi.Shape(tuple(_view(x).shape))


def tensor_to_shape(x: Any) -> tvm_ffi.Shape:
    """The elements of a vector as sizes."""
    return tvm_ffi.Shape(tuple(int(each) for each in _view(x)))


def make_tuple(*fields: object) -> tuple[object, ...]:
    """A tuple."""
    return fields


def tuple_getitem(fields: Sequence[object], index: int) -> object:
    """A field of a tuple."""
    return fields[index]


def null_value() -> None:
    """Nothing."""


def same(x: object, *rest: object) -> object:
    """What is given: memory begins where it is, and there is one device."""
    return x


def _tensor(array: Array) -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(np.ascontiguousarray(array))


_FUNCTIONS = cast(
    "dict[str, Callable[..., Any]]",
    {f"tvm.contrib.sort.{each.__name__}": each for each in (argsort, sort, argsort_nms, topk)}
    | {f"relax.run.{each.__name__}": each for each in (unique, nonzero, shape_to_tensor)}
    | {
        f"vm.builtin.{each.__name__}": each
        for each in (copy, reshape, shape_of, tensor_to_shape, make_tuple, tuple_getitem, null_value)
    }
    | dict.fromkeys(("vm.builtin.ensure_zero_offset", "vm.builtin.to_device"), same),
)
