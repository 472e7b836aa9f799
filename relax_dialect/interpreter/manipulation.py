"""Operators that move elements: other shapes, another order, padding; joined, cut and repeated tensors; take, slices,
gather and scatter.

A negative index counts from the back. Where an index of gather or scatter is out of range, the nearest element is read,
and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operators import (
    DimValues,
    computes,
    computes_all,
    computes_in,
    element,
    integer,
    integers,
    make_checks,
    result_dtype,
    wide,
)
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.gather import (
    GatherElementsOp,
    GatherNDOp,
    IndexPutOp,
    IndexTensorOp,
    OneHotOp,
    ScatterElementsOp,
    ScatterNDOp,
    SliceScatterOp,
)
from relax_dialect.ops.indexing import (
    DynamicStridedSliceOp,
    StridedSliceOp,
    TakeOp,
    slice_index,
    slice_length,
    taken_indices,
)
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.layouts import BlockedLayout, parse_layout
from relax_dialect.ops.manipulation import (
    BatchFlattenOp,
    BroadcastToOp,
    DropoutOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
    PixelShuffleOp,
    ReshapeOp,
    SqueezeOp,
)
from relax_dialect.ops.rearranging import (
    LayoutTransformOp,
    MapIndicesOp,
    MeshgridOp,
    MultinomialFromUniformOp,
    PadOp,
    ReverseSequenceOp,
    mapped,
    mapped_shape,
)
from tir_dialect.dims import constant
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.types import DimAttr


@computes(ReshapeOp)
def reshape(op: ReshapeOp, x: Array, shape: Shape) -> Array:
    """The same elements under another shape."""
    return x.reshape(shape)


@computes(FlattenOp)
def flatten(op: FlattenOp, x: Array) -> Array:
    """The same elements in one dimension."""
    return x.reshape(-1)


@computes(PermuteDimsOp)
def permute_dims(op: PermuteDimsOp, x: Array) -> Array:
    """The dimensions in another order."""
    return np.transpose(x, integers(op.axes))


@computes(ExpandDimsOp)
def expand_dims(op: ExpandDimsOp, x: Array) -> Array:
    """More dimensions of 1."""
    return np.expand_dims(x, integers(op.axes) or ())


@computes(SqueezeOp)
def squeeze(op: SqueezeOp, x: Array) -> Array:
    """Fewer dimensions of 1."""
    return np.squeeze(x, integers(op.axes))


@computes(BroadcastToOp)
def broadcast_to(op: BroadcastToOp, x: Array, shape: Shape) -> Array:
    """Repeated along dimensions of 1."""
    return np.broadcast_to(x, shape)


@computes(FlipOp)
def flip(op: FlipOp, x: Array) -> Array:
    """In reverse order."""
    return np.flip(x, op.axis.value.data)


@runs(DropoutOp)
def dropout(frame: Frame, op: DropoutOp) -> None:
    """The tensor itself."""
    frame.set_checked(op.result, frame.get(op.x), "result of 'relax.nn.dropout'")


@runs(BatchFlattenOp)
def batch_flatten(frame: Frame, op: BatchFlattenOp) -> None:
    """The same elements in two dimensions."""
    make_checks(frame, op)
    x: Array = frame.get(op.x)
    frame.set_checked(op.result, x.reshape(x.shape[0], prod(x.shape[1:])), "result of 'relax.nn.batch_flatten'")


@computes(PixelShuffleOp)
def pixel_shuffle(op: PixelShuffleOp, x: Array) -> Array:
    """Channels taken apart into channels, rows and columns, which are interleaved with those of the image."""
    *outer, channels, height, width = x.shape
    factor, count = op.upscale_factor.value.data, len(outer)
    parts = x.reshape((*outer, channels // factor**2, factor, factor, height, width))
    order = [*range(count), *(count + at for at in (0, 3, 1, 4, 2))]
    return parts.transpose(order).reshape((*outer, channels // factor**2, height * factor, width * factor))


@computes(ConcatOp)
def concat(op: ConcatOp, *inputs: Array) -> Array:
    """One after the other."""
    return np.concatenate(inputs, op.axis.value.data)


@computes(StackOp)
def stack(op: StackOp, *inputs: Array) -> Array:
    """Along a new axis."""
    return np.stack(inputs, op.axis.value.data)


@computes_in(SplitOp)
def split(dims: DimValues, op: SplitOp, x: Array) -> Sequence[Array]:
    """Parts along an axis."""
    axis = op.axis.value.data
    length = x.shape[axis]
    if op.indices is not None:
        edges = [0, *map(dims, op.indices), length]
    else:
        sections = len(op.res)
        part = -(-length // sections)
        edges = [min(index * part, length) for index in range(sections + 1)]
    return [np.take(x, range(start, end), axis) for start, end in pairwise(edges)]


@computes(RepeatOp)
def repeat(op: RepeatOp, x: Array) -> Array:
    """Each element several times."""
    return np.repeat(x, op.repeats.value.data, integer(op.axis))


@computes(TileOp)
def tile(op: TileOp, x: Array) -> Array:
    """The tensor several times."""
    return np.tile(x, integers(op.repeats) or ())


@computes(ReverseSequenceOp)
def reverse_sequence(op: ReverseSequenceOp, x: Array, lengths: Array) -> Array:
    """Every batch element by itself."""
    moved = np.moveaxis(x, (op.batch_axis.value.data, op.seq_axis.value.data), (0, 1))
    result = moved.copy()
    for batch, length in enumerate(np.clip(lengths, 0, moved.shape[1])):
        result[batch, : int(length)] = moved[batch, : int(length)][::-1]
    return np.moveaxis(result, (0, 1), (op.batch_axis.value.data, op.seq_axis.value.data))


@computes_all(MeshgridOp)
def meshgrid(op: MeshgridOp, *vectors: Array) -> Sequence[Array]:
    """NumPy's function."""
    indexing = "xy" if op.indexing.data == "xy" else "ij"
    return np.meshgrid(*vectors, indexing=indexing)


@computes(LayoutTransformOp)
def layout_transform(op: LayoutTransformOp, x: Array) -> Array:
    """Blocks put together, then others cut."""
    source, target = (parse_layout(text.data) or () for text in (op.source, op.target))
    return relaid(x, source, target)


def relaid(x: Array, source: BlockedLayout, target: BlockedLayout) -> Array:
    """A tensor in another layout of the same dimensions."""
    capitals = [letter for letter, _ in target if letter.isupper()]
    letters = [letter for letter, _ in source]
    order = [
        at for c in capitals for at in (letters.index(c), *([letters.index(c.lower())] if c.lower() in letters else []))
    ]
    sizes = [
        x.shape[letters.index(c)] * (x.shape[letters.index(c.lower())] if c.lower() in letters else 1) for c in capitals
    ]
    return _cut(x.transpose(order).reshape(sizes), capitals, target)


def relaid_shape(shape: Sequence[int], source: BlockedLayout, target: BlockedLayout) -> tuple[int, ...]:
    """The shape of what `relaid` gives for a tensor of a shape."""
    letters, blocks = [letter for letter, _ in source], dict(target)

    def length(capital: str) -> int:
        inner = capital.lower()
        return shape[letters.index(capital)] * (shape[letters.index(inner)] if inner in letters else 1)

    return tuple(
        blocks[letter] if letter.islower() else -(-length(letter) // blocks.get(letter.lower(), 1))
        for letter, _ in target
    )


def _cut(x: Array, capitals: Sequence[str], layout: BlockedLayout) -> Array:
    blocks = dict(layout)
    sizes = [blocks.get(capital.lower(), 1) for capital in capitals]
    missing = [-length % size for length, size in zip(x.shape, sizes, strict=True)]
    padded = np.pad(x, [(0, count) for count in missing]) if any(missing) else x  # which would copy it
    shape = [part for length, size in zip(padded.shape, sizes, strict=True) for part in (length // size, size)]
    names = [name for capital in capitals for name in (capital, capital.lower())]
    kept = [names.index(letter) for letter, _ in layout]
    rest = [at for at in range(len(names)) if at not in kept]
    return padded.reshape(shape).transpose([*kept, *rest]).reshape([shape[at] for at in kept])


@computes(MultinomialFromUniformOp)
def multinomial(op: MultinomialFromUniformOp, probabilities: Array, uniform: Array, rows: Array) -> Array:
    """How many sums are not greater than the number."""
    sums = np.take(np.cumsum(wide(probabilities), axis=1), rows[:, 0], axis=0, mode="clip")
    positions = np.minimum((sums <= wide(uniform)).sum(1, keepdims=True), probabilities.shape[1] - 1)
    return positions.astype(numpy_dtype(op.dtype))


@computes(PadOp)
def pad(op: PadOp, x: Array) -> Array:
    """The element that each index of the result comes from, or the value."""
    widths = integers(op.pad_width) or ()
    if op.mode.data != "constant":
        for axis, (before, after) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
            x = x[(slice(None),) * axis + (slice(max(-before, 0), x.shape[axis] - max(-after, 0)),)]
        widths = [max(width, 0) for width in widths]
    inside = np.ones((1,) * x.ndim, bool)
    for axis, (before, after) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
        length = x.shape[axis]
        positions = np.array(range(-before, length + after), np.int64)
        within = (positions >= 0) & (positions < length)
        inside = inside & within.reshape([-1 if at == axis else 1 for at in range(x.ndim)])
        if length == 0 and positions.size:
            x = np.concatenate([x, np.zeros([1 if at == axis else n for at, n in enumerate(x.shape)], x.dtype)], axis)
        x = np.take(x, source_positions(op.mode.data, positions, length), axis)
    return np.where(inside, x, element(op.pad_value.value.data, op, x)) if op.mode.data == "constant" else x


def source_positions(mode: str, positions: Array, length: int) -> Array:
    """The positions of an axis that positions outside of it stand for."""
    match mode:
        case "reflect":
            period = max(2 * (length - 1), 1)
            return length - 1 - np.abs(positions % period - (length - 1)) if length > 1 else positions * 0
        case "circular":
            return positions % length if length else positions * 0
        case _:
            return np.clip(positions, 0, max(length - 1, 0))


@computes(MapIndicesOp)
def map_indices(op: MapIndicesOp, x: Array) -> Array:
    """Each element put into its position between copies of the value."""
    index_map = op.index_map.data
    shape = [dim.evaluate({}) for dim in mapped_shape(index_map, [constant(length) for length in x.shape])]
    result = np.full(shape, element(op.pad_value.value.data, op, x))
    result[mapped(index_map, list(np.indices(x.shape)))] = x
    return result


@computes(TakeOp)
def take(op: TakeOp, x: Array, indices: Array) -> Array:
    """Slices at indices."""
    axis, mode = integer(op.axis) or 0, op.mode.data
    if x.size == 0:
        return np.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis:][1:]), x.dtype)
    return np.take(x, taken_indices(indices, x.shape[axis], mode), axis)


@computes_in(StridedSliceOp)
def strided_slice(dims: DimValues, op: StridedSliceOp, x: Array) -> Sequence[Array]:
    """Every `stride`th position from `begin` before `end`, as the type of the result counts them."""
    axes = integers(op.axes) or ()
    strides = integers(op.strides) or (1,) * len(axes)
    for axis, begin, end, stride in zip(axes, op.begin, op.end, strides, strict=True):
        length, inbound = constant(x.shape[axis]), op.assume_inbound is not None
        count = slice_length(length, begin.data, end.data, stride, inbound)
        first = begin.data if inbound else slice_index(length, begin.data, stride)
        size = 0 if count is None else dims(DimAttr(count))
        x = np.take(x, dims(DimAttr(first)) + stride * np.arange(size), axis)
    return (x,)


@computes(DynamicStridedSliceOp)
def dynamic_strided_slice(op: DynamicStridedSliceOp, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    """Python's slices."""
    return x[tuple(slice(*map(int, position)) for position in zip(begin, end, strides, strict=True))]


_COMBINE: dict[str, Callable[[Any, Any, Any], None]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}


@computes(GatherElementsOp)
def gather_elements(op: GatherElementsOp, x: Array, indices: Array) -> Array:
    """The element at the position of each index, but along the axis at the index."""
    return x[nearest(open_indices(indices, op.axis.value.data), x.shape)]


def nearest(positions: tuple[Array, ...], shape: Sequence[int]) -> tuple[Array, ...]:
    """Positions, of which those out of range are the nearest that there is."""
    return tuple(taken_indices(each, extent, "fast") for each, extent in zip(positions, shape, strict=False))


def open_indices(indices: Array, axis: int) -> tuple[Array, ...]:
    """The coordinates of each element of `indices`, the one along the axis being the index."""
    coordinates: list[Array] = list(np.indices(indices.shape, sparse=True))
    coordinates[axis] = indices
    return tuple(coordinates)


@computes(GatherNDOp)
def gather_nd(op: GatherNDOp, x: Array, indices: Array) -> Array:
    """Slices at coordinates, for each of the batches."""
    positions = nearest(coordinates(indices, op.batch_dims.value.data), x.shape)
    return x[positions] if positions else np.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()


def coordinates(indices: Array, batch: int) -> tuple[Array, ...]:
    """The coordinates in the last dimension of `indices`, after those of the batch."""
    outer = indices.shape[:-1]
    batches = np.indices(outer)[:batch] if outer else ()
    return (*batches, *(indices[..., index] for index in range(indices.shape[-1])))


@computes(ScatterElementsOp)
def scatter_elements(op: ScatterElementsOp, x: Array, indices: Array, updates: Array) -> Array:
    """The elements at the positions of indices changed, in order of the updates."""
    return scatter(x, open_indices(indices, op.axis.value.data), updates, op.reduction.data)


@computes(ScatterNDOp)
def scatter_nd(op: ScatterNDOp, x: Array, indices: Array, updates: Array) -> Array:
    """The slices at coordinates changed, in order of the updates."""
    return scatter(x, coordinates(indices, 0), updates, op.reduction.data)


def scatter(x: Array, indices: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    """A copy of `x` with updates at positions; of equal positions the last one counts, or all are combined."""
    result = wide(x).copy()
    indices = tuple(np.broadcast_arrays(*indices))
    found = nearest(indices, x.shape)
    inside = np.ones(indices[0].shape, bool)
    for each, at, extent in zip(indices, found, x.shape, strict=False):
        inside &= (extent > 0) & ((each == at) | (each == at - extent))
    written = tuple(each[inside] for each in found)
    updates = np.broadcast_to(updates, (*inside.shape, *x.shape[len(indices) :]))[inside]
    if reduction == "update":
        result[written] = updates
    else:
        _COMBINE[reduction](result, written, wide(updates))
    return result.astype(x.dtype)


@computes_in(OneHotOp)
def one_hot(dims: DimValues, op: OneHotOp, indices: Array, on: float, off: float) -> Sequence[Array]:
    """`on` at the index, `off` elsewhere."""
    axis = op.axis.value.data
    hot = np.expand_dims(indices, axis) == _along(np.arange(dims(op.depth)), axis, indices.ndim + 1)
    dtype = result_dtype(op, np.asarray(on))
    return (np.where(hot, np.array(on, dtype), np.array(off, dtype)),)


def _along(vector: Array, axis: int, rank: int) -> Array:
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)


@computes(IndexTensorOp)
def index_tensor(op: IndexTensorOp, x: Array, *indices: Array) -> Array:
    """NumPy's indexing; where an index is out of range, the nearest one."""
    return x[nearest(indices, x.shape)]


@computes(IndexPutOp)
def index_put(op: IndexPutOp, x: Array, values: Array, *indices: Array) -> Array:
    """A copy with values written, of equal positions the last one, or added."""
    return scatter(x, indices, values, "update" if op.accumulate is None else "add")


@computes_in(SliceScatterOp)
def slice_scatter(dims: DimValues, op: SliceScatterOp, x: Array, source: Array) -> Sequence[Array]:
    """A copy with a slice replaced."""
    axis, step = op.axis.value.data % x.ndim, op.step.value.data
    first = dims(DimAttr(slice_index(constant(x.shape[axis]), op.start.data, step)))
    result = x.copy()
    positions = np.array(range(first, first + step * source.shape[axis], step), np.int64)
    result[(slice(None),) * axis + (positions,)] = source
    return (result,)
