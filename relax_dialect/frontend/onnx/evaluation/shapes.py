"""Rules that move elements, or make them from a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relax_dialect.frontend.onnx.evaluation.rule import Attributes, Open, Operands, Rule, axes_of, numbers
from relax_dialect.frontend.onnx.values import MAX_EVALUATED, Array


def _list(operand: Array) -> list[int]:
    """The numbers of a tensor of rank 1; others are left to the converter, which refuses them."""
    if operand.ndim != 1:
        raise Open
    return numbers(operand)


def _squeeze(attributes: Attributes, operands: Operands) -> Array:
    axes = axes_of(attributes, operands)
    return np.squeeze(operands[0], None if axes is None else tuple(axes))


def _unsqueeze(attributes: Attributes, operands: Operands) -> Array:
    return np.expand_dims(operands[0], tuple(axes_of(attributes, operands) or ()))


def _reshape(attributes: Attributes, operands: Operands) -> Array:
    x, target = operands[0], _list(operands[1])
    if not attributes.get("allowzero"):
        target = [x.shape[at] if dim == 0 else dim for at, dim in enumerate(target)]
    return x.reshape(target)


def _expand(attributes: Attributes, operands: Operands) -> Array:
    shape = _list(operands[1])
    _require_few(shape)
    return operands[0] * np.ones(shape, operands[0].dtype)


def _concat(attributes: Attributes, operands: Operands) -> Array:
    if any(each.dtype == object for each in operands):
        operands = [each.astype(object) for each in operands]
    return np.concatenate(operands, int(attributes["axis"]))


def _gather(attributes: Attributes, operands: Operands) -> Array:
    if operands[1].dtype == object:
        raise Open
    return np.take(operands[0], operands[1].astype(np.int64), int(attributes.get("axis", 0)))


def _slice(attributes: Attributes, operands: Sequence[Array | None]) -> Array:
    x = operands[0]
    if x is None:
        raise Open
    if len(operands) > 1:
        starts, ends = (numbers(each) for each in operands[1:3] if each is not None)
    else:
        starts, ends = list(attributes["starts"]), list(attributes["ends"])
    given = operands[3] if len(operands) > 3 else None
    axes = list(attributes.get("axes") or range(len(starts))) if given is None else numbers(given)
    steps_given = operands[4] if len(operands) > 4 else None
    steps = [1] * len(starts) if steps_given is None else numbers(steps_given)
    index: list[slice] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        stop = None if step < 0 and end < -x.shape[axis] else end
        index[axis] = slice(start, stop, step)
    return x[tuple(index)]


def _require_few(shape: Sequence[int]) -> None:
    """Leaves a large result to run time."""
    if math.prod(shape) > MAX_EVALUATED:
        raise Open


def _range(attributes: Attributes, operands: Operands) -> Array:
    start, stop, step = (each.reshape(()) for each in operands)
    if object in (start.dtype, stop.dtype, step.dtype):
        raise Open
    # Floats in f64: a rounded difference may end in front of one more. Integers of Python do not overflow.
    first, last, by = (each.item() for each in (start, stop, step))
    count = len(range(first, last, by)) if isinstance(first, int) else max(math.ceil((last - first) / by), 0)
    if count > MAX_EVALUATED:
        raise Open
    return (start + np.arange(count).astype(start.dtype) * step).astype(start.dtype)


def _constant_of_shape(attributes: Attributes, operands: Operands) -> Array:
    shape, value = _list(operands[0]), attributes.get("value")
    _require_few(shape)
    return np.zeros(shape, np.float32) if value is None else np.full(shape, value.reshape(()), value.dtype)


def _split(attributes: Attributes, operands: Operands) -> Sequence[Array]:
    x, axis = operands[0], int(attributes.get("axis", 0))
    sizes = numbers(operands[1]) if len(operands) > 1 else attributes.get("split")
    if sizes is None:
        raise Open
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _transpose(attributes: Attributes, operands: Operands) -> Array:
    return np.transpose(operands[0], attributes.get("perm"))


SHAPE_RULES: dict[str, Rule] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Gather": _gather,
    "Range": _range,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
