"""Elements that are chosen by their positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from relax_dialect.ops.gather import GatherElementsOp, GatherNDOp
from relax_dialect.ops.indexing import DynamicStridedSliceOp, StridedSliceOp, TakeOp, taken_indices
from relax_dialect.shape_values.elements import Elements, evaluates


@evaluates(TakeOp)
def take(op: TakeOp, x: Elements | None, indices: Elements | None) -> Elements | None:
    """The elements at known positions."""
    positions = _numbers(indices)
    if x is None or positions is None:
        return None
    axis = 0 if op.axis is None else op.axis.value.data % x.ndim
    length, mode, flat = x.shape[axis], op.mode.data, positions.reshape(-1)
    if length == 0:
        return None
    shape = (*x.shape[:axis], *positions.shape, *x.shape[axis + 1 :])
    return np.take(x, taken_indices(flat, length, mode), axis).reshape(shape)


@evaluates(GatherElementsOp)
def gather_elements(op: GatherElementsOp, x: Elements | None, indices: Elements | None) -> Elements | None:
    """The elements at known positions."""
    positions = _numbers(indices)
    if x is None or positions is None or x.shape != positions.shape:
        return None
    axis = op.axis.value.data
    return np.take_along_axis(x, positions % max(x.shape[axis], 1), axis)


@evaluates(GatherNDOp)
def gather_nd(op: GatherNDOp, x: Elements | None, indices: Elements | None) -> Elements | None:
    """The elements at known coordinates."""
    positions = _numbers(indices)
    if x is None or positions is None or op.batch_dims.value.data:
        return None
    limits = x.shape[: positions.shape[-1]]
    if not all(-n <= i < n for row in positions.reshape(-1, len(limits)) for i, n in zip(row, limits, strict=True)):
        return None
    return np.asarray(x[tuple(np.moveaxis(positions, -1, 0))], dtype=object)


@evaluates(StridedSliceOp)
def strided_slice(op: StridedSliceOp, x: Elements | None) -> Elements | None:
    """A slice at known positions."""
    axes = op.axes.get_values()
    steps = (1,) * len(axes) if op.strides is None else op.strides.get_values()
    begin, end = ([position.data.constant_value for position in positions] for positions in (op.begin, op.end))
    return _slice(x, axes, begin, end, steps)


@evaluates(DynamicStridedSliceOp)
def dynamic_slice(
    op: DynamicStridedSliceOp,
    x: Elements | None,
    begin: Elements | None,
    end: Elements | None,
    strides: Elements | None,
) -> Elements | None:
    """A slice at positions that are values themselves."""
    first, last, steps = _numbers(begin), _numbers(end), _numbers(strides)
    if x is None or first is None or last is None or steps is None or 0 in steps:
        return None
    return _slice(x, range(x.ndim), first.tolist(), last.tolist(), steps.tolist())


def _slice(
    x: Elements | None,
    axes: Iterable[int],
    begin: Sequence[int | None],
    end: Sequence[int | None],
    steps: Sequence[int],
) -> Elements | None:
    if x is None or None in begin or None in end:
        return None
    positions = [slice(None)] * x.ndim
    for axis, first, last, step in zip(axes, begin, end, steps, strict=True):
        positions[axis] = slice(first, last, step)
    return x[tuple(positions)]


def _numbers(elements: Elements | None) -> np.ndarray[Any, Any] | None:
    """The elements as integers, if all are constants."""
    if elements is None:
        return None
    values = [None if dim is None else dim.constant_value for dim in elements.reshape(-1).tolist()]
    known = [value for value in values if value is not None]
    return np.array(known, np.int64).reshape(elements.shape) if len(known) == len(values) else None
