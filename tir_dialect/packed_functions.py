"""The packed functions that TVM's run time has beside its operators, under its names: `tvm.contrib.sort.*`.

PrimFuncs that TVM lowers sorting to call them. They are written with NumPy; what somebody else has registered under a
name stays.
"""

from __future__ import annotations

from collections.abc import Callable
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


_FUNCTIONS = cast(
    "dict[str, Callable[..., Any]]",
    {f"tvm.contrib.sort.{each.__name__}": each for each in (argsort, sort, argsort_nms, topk)},
)
