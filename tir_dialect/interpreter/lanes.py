"""What generated code calls for vectors: loads, stores, and ops on all lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tir_dialect.interpreter.errors import fail_access
from tir_dialect.interpreter.numerics import fused_multiply_add
from tir_dialect.interpreter.widths import holds_integers


def load_vector(array: np.ndarray, name: str, indices: Sequence[Any], count: int, contiguous: bool, mask: Any) -> Any:
    """The value of a vector `tir.load`."""
    if mask is None:
        return array[_elements("tir.load", array, name, indices, count, contiguous, None)].copy()
    lanes = np.flatnonzero(mask)
    result = np.zeros(count, array.dtype)
    result[lanes] = array[_elements("tir.load", array, name, indices, count, contiguous, lanes)]
    return result


def store_vector(value: Any, array: np.ndarray, name: str, indices: Sequence[Any], contiguous: bool, mask: Any) -> None:
    """The effect of a vector `tir.store`; of lanes with one element, the last one stays."""
    if mask is None:
        array[_elements("tir.store", array, name, indices, len(value), contiguous, None)] = value
        return
    lanes = np.flatnonzero(mask)
    array[_elements("tir.store", array, name, indices, len(value), contiguous, lanes)] = value[lanes]


def _elements(
    op: str,
    array: np.ndarray,
    name: str,
    indices: Sequence[Any],
    count: int,
    contiguous: bool,
    lanes: npt.NDArray[np.intp] | None,
) -> Any:
    """What NumPy calls the elements of the active lanes, all of them for None; each is inside."""
    *outer, last = indices
    if contiguous and lanes is None and _are_inside(indices, array.shape) and last + count <= array.shape[-1]:
        return (*outer, slice(last, last + count))
    active = np.arange(count) if lanes is None else lanes
    columns = [_column(index, active) for index in indices]
    if contiguous:
        columns[-1] = columns[-1] + active
    outside = np.zeros(len(active), bool)
    for column, extent in zip(columns, array.shape, strict=True):
        outside |= (column < 0) | (column >= extent)
    if outside.any():
        first = int(outside.argmax())
        fail_access(op, name, [int(column[first]) for column in columns], array.shape)
    return tuple(columns)


def _column(index: int | npt.NDArray[np.integer[Any]], lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.integer[Any]]:
    return index[lanes] if isinstance(index, np.ndarray) else np.full(len(lanes), index, np.int64)


def _are_inside(indices: Sequence[int], shape: Sequence[int]) -> bool:
    return all(0 <= index < extent for index, extent in zip(indices, shape, strict=True))


def map_lanes(function: Callable[..., Any], dtype: np.dtype[Any], operands: Sequence[Any]) -> np.ndarray:
    """An op on vectors, lane by lane; scalars count for all lanes."""
    count = max(np.size(operand) for operand in operands)
    columns = [_lane_values(operand, count) for operand in operands]
    return np.array([function(*lane) for lane in zip(*columns, strict=True)], dtype)


def _lane_values(operand: Any, count: int) -> Sequence[Any]:
    if np.ndim(operand) == 0:
        return [operand] * count
    return operand.tolist() if holds_integers(operand.dtype) else list(operand)


def multiply_add_lanes(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """`a * b + c` on all lanes, rounded once: `numerics.fused_multiply_add` on each."""
    if a.dtype == np.float64:
        return map_lanes(fused_multiply_add, a.dtype, (a, b, c))
    x, y, z = (operand.astype(np.float64) for operand in (a, b, c))
    product = x * y  # exact, as 53 bits hold it
    total = product + z
    part = total - product
    rest = (product - (total - part)) + (z - part)
    is_tied_to_even = np.isfinite(total) & (rest != 0) & (total.view(np.int64) & 1 == 0)
    return np.where(is_tied_to_even, np.nextafter(total, np.copysign(np.inf, rest)), total).astype(a.dtype)
