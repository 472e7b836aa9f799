"""Builtins whose results have shapes that depend on data."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import tvm_ffi

from vm_dialect.builtins.table import builtin
from vm_dialect.tensors import Array, from_numpy, to_numpy


@builtin("unique", 2, 5)
def unique(
    tensor: tvm_ffi.Tensor, axis: int | None, index: bool = False, inverse: bool = False, counts: bool = False
) -> Any:
    """The sorted distinct elements or slices; with flags, a tuple of what NumPy's `unique` gives for them."""
    found: Any = np.unique(to_numpy(tensor), bool(index), bool(inverse), bool(counts), axis=axis)
    if not isinstance(found, tuple):
        return from_numpy(np.ascontiguousarray(found))
    values, *extra = cast("tuple[Array, ...]", found)
    parts = [values, *(part.astype(np.int64).reshape(-1) for part in extra)]
    return tvm_ffi.convert([from_numpy(np.ascontiguousarray(part)) for part in parts])


@builtin("nonzero", 1)
def nonzero(tensor: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    """The indices of the elements that are not zero: one row for each dimension, one column for each position."""
    array = to_numpy(tensor)
    positions = np.array(np.nonzero(np.atleast_1d(array)), np.int64)
    return from_numpy(np.ascontiguousarray(positions[: array.ndim]))
