"""Elements that are joined, cut, or put elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.manipulation import (
    BroadcastToOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
    ReshapeOp,
    SqueezeOp,
)
from relax_dialect.shape_values.elements import Elements, evaluates, static_shape
from relax_dialect.struct_info.types import TensorType


@evaluates(ConcatOp)
def concat(op: ConcatOp, *inputs: Elements | None) -> Elements | None:
    """One after the other."""
    known = [each for each in inputs if each is not None]
    return np.concatenate(known, op.axis.value.data) if len(known) == len(inputs) else None


@evaluates(StackOp)
def stack(op: StackOp, *inputs: Elements | None) -> Elements | None:
    """Side by side."""
    known = [each for each in inputs if each is not None]
    return np.stack(known, op.axis.value.data) if len(known) == len(inputs) else None


@evaluates(SplitOp)
def split(op: SplitOp, x: Elements | None) -> Sequence[Elements] | None:
    """Cut at known positions: the sizes of the parts are in their types."""
    axis = op.axis.value.data
    sizes = [_length(result.type, axis) for result in op.res]
    known = [size for size in sizes if size is not None]
    return None if x is None or len(known) != len(sizes) else np.split(x, np.cumsum(known)[:-1], axis)


def _length(info: object, axis: int) -> int | None:
    dims = info.known_dims if isinstance(info, TensorType) else None
    return None if dims is None else dims[axis].constant_value


@evaluates(ReshapeOp, FlattenOp, ExpandDimsOp, SqueezeOp)
def view(op: ReshapeOp | FlattenOp | ExpandDimsOp | SqueezeOp, x: Elements | None, *_: Elements | None) -> Any:
    """The same elements in the shape of the result."""
    shape = static_shape(op.result.type)
    return None if x is None or shape is None or np.prod(shape, dtype=int) != x.size else x.reshape(shape)


@evaluates(BroadcastToOp)
def broadcast_to(op: BroadcastToOp, x: Elements | None, _: Elements | None) -> Elements | None:
    """Repeated."""
    shape = static_shape(op.result.type)
    return None if x is None or shape is None else np.broadcast_to(x, shape)


@evaluates(PermuteDimsOp)
def permute_dims(op: PermuteDimsOp, x: Elements | None) -> Elements | None:
    """The dimensions in another order."""
    return None if x is None else np.transpose(x, None if op.axes is None else op.axes.get_values())


@evaluates(FlipOp)
def flip(op: FlipOp, x: Elements | None) -> Elements | None:
    """In reverse order."""
    return None if x is None else np.flip(x, op.axis.value.data)


@evaluates(TileOp)
def tile(op: TileOp, x: Elements | None) -> Elements | None:
    """Laid side by side."""
    return None if x is None else np.tile(x, op.repeats.get_values())


@evaluates(RepeatOp)
def repeat(op: RepeatOp, x: Elements | None) -> Elements | None:
    """Each element repeated."""
    return None if x is None else np.repeat(x, op.repeats.value.data, None if op.axis is None else op.axis.value.data)
