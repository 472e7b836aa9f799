"""Object detection, and convolutions at positions that are data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.convolution import with_bias
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed
from relax_dialect.frontend.onnx.values import Refusal
from relax_dialect.frontend.onnx.windows import WindowAttributes, window_attributes
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv, product


@dataclass(frozen=True)
class Blocks:
    """Blocks of an image: their shape, and how they lie in it."""

    sizes: Sequence[Dim]
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]
    channels: Dim
    """Of the image."""

    def count(self, axis: int, length: Dim) -> Dim:
        """How many blocks there are along an axis."""
        rank = len(self.sizes)
        reach = self.dilations[axis] * (self.sizes[axis] - 1) + 1
        padded = length + self.pads[axis] + self.pads[axis + rank]
        return floordiv(padded - reach, constant(self.strides[axis])) + 1


def columns_to_image(x: te.Tensor, image: Sequence[Dim], blocks: Blocks) -> te.Tensor:
    """Blocks, `[n, channel times position in the block, block]`, added up at their positions in an image."""
    counts = [blocks.count(axis, length) for axis, length in enumerate(image)]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        columns, made = ins[0], outs[0]
        with b.block("col2im", ("spatial", x.shape[0], "n"), ("spatial", blocks.channels, "c")) as (n, c):
            with ExitStack() as stack:
                index = [stack.enter_context(b.for_range(0, length, f"i{at}")) for at, length in enumerate(image)]
                b.store(made, (n, c, *index), te.const(0, x.dtype))
            with ExitStack() as stack:
                tap = [stack.enter_context(b.for_range(0, size, f"k{at}")) for at, size in enumerate(blocks.sizes)]
                position = [stack.enter_context(b.for_range(0, count, f"l{at}")) for at, count in enumerate(counts)]
                target = [
                    position[at] * blocks.strides[at] + tap[at] * blocks.dilations[at] - blocks.pads[at]
                    for at in range(len(image))
                ]
                tests = [t for at, length in zip(target, image, strict=True) for t in (at >= 0, at < length)]
                stack.enter_context(b.if_(te.logical_and(*tests)))
                row = c * product(blocks.sizes) + _flat(tap, blocks.sizes)
                old = made[(n, c, *target)]
                b.store(made, (n, c, *target), old + columns[n, row, _flat(position, counts)])

    return te.extern([((x.shape[0], blocks.channels, *image), x.dtype)], [x], body, name="col2im")[0]


def _flat(index: Sequence[te.Expr], shape: Sequence[Dim]) -> te.Expr:
    flat = index[0]
    for each, extent in zip(index[1:], shape[1:], strict=True):
        flat = flat * extent + each
    return flat


def deform_conv(tensors: Sequence[te.Tensor], windows: WindowAttributes, groups: int, offset_groups: int) -> te.Tensor:
    """The products of a kernel with elements between which is interpolated; operands: data, kernel, offsets, mask."""
    x, w, offsets = tensors[:3]
    mask = tensors[3] if len(tensors) > 3 else None
    rows, columns = windows.sizes
    positions = constant(rows * columns)
    filters, inner = w.shape[0], w.shape[1]
    spatial = offsets.shape[2:]

    def sampled(n: te.Expr, c: te.Expr, tap: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        group = te.floordiv(c, x.shape[1] // offset_groups)
        base = group * (2 * rows * columns) + 2 * tap
        row, column = te.floordiv(tap, constant(columns)), te.floormod(tap, constant(columns))
        y = _position(i, row, windows, 0, offsets[n, base, i, j])
        z = _position(j, column, windows, 1, offsets[n, base + 1, i, j])
        value = _bilinear(x, n, c, y, z)
        return value if mask is None else value * mask[n, group * (rows * columns) + tap, i, j]

    shape = (x.shape[0], x.shape[1], positions, *spatial)
    samples = te.compute(shape, sampled, name="samples")
    c, tap = te.reduce_axis(inner, "c"), te.reduce_axis(positions, "tap")

    def element(n: te.Expr, o: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        channel = te.floordiv(o, filters // groups) * inner + c
        row, column = te.floordiv(tap, constant(columns)), te.floormod(tap, constant(columns))
        element = samples[n, channel, tap, i, j] * w[o, c, row, column]
        return te.sum(element, [c, tap], accumulate="f64" if str(x.dtype) == "f64" else "f32")

    sums = te.compute((x.shape[0], filters, *spatial), element, name="deform_conv")
    return sums if sums.dtype == x.dtype else te.compute(sums.shape, lambda *i: te.cast(sums[i], x.dtype))


def _position(at: te.Expr, tap: te.Expr, windows: WindowAttributes, axis: int, offset: te.Expr) -> te.Expr:
    whole = at * windows.strides[axis] + tap * windows.dilations[axis] - windows.pads[axis]
    return te.cast(te.cast(whole, "i64"), offset.dtype) + offset


def _bilinear(x: te.Tensor, n: te.Expr, c: te.Expr, y: te.Expr, z: te.Expr) -> te.Expr:
    """The element between four positions; those outside are 0."""
    total: te.Expr | None = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = te.floor(y) + down, te.floor(z) + right
            share = (1 - te.abs(y - row)) * (1 - te.abs(z - column))
            i, j = (te.cast(te.cast(each, "i64"), "index") for each in (row, column))
            height, width = x.shape[2:]
            inside = te.logical_and(i >= 0, i < height, j >= 0, j < width)
            part = share * te.select(inside, x[n, c, _clamped(i, height), _clamped(j, width)], te.const(0, x.dtype))
            total = part if total is None else total + part
    assert total is not None
    return total


def _clamped(position: te.Expr, length: Dim) -> te.Expr:
    return te.maximum(te.minimum(position, length - 1), 0)


@converts("NonMaxSuppression")
def non_max_suppression(node: Node) -> Result:
    """The boxes with the best scores that do not overlap."""
    most = _scalar(node[2]) if node.has(2) else node.bb.const(0, "i64")
    overlap = _scalar(node[3]) if node.has(3) else node.like(0)
    least = _scalar(node[4]) if node.has(4) else node.like(float("-inf"))
    return op.vision.non_max_suppression(
        node[0], node[1], most, overlap, least, center_point_box=bool(node.integer("center_point_box"))
    )


def _scalar(x: Expr) -> Expr:
    return x if x.ndim == 0 else op.reshape(x, [])


@converts("RoiAlign")
def roi_align(node: Node) -> Result:
    """Regions of images brought to one size."""
    aligned = node.version >= 16 and node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return op.vision.roi_align(
        node[0],
        node[1],
        node[2],
        node.integer("output_height", 1),
        node.integer("output_width", 1),
        sampling_ratio=node.integer("sampling_ratio"),
        spatial_scale=node.number("spatial_scale", 1.0),
        mode=node.text("mode", "avg"),
        aligned=aligned,
        offset=0.5 if aligned else 0.0,
    )


@converts("MaxRoiPool")
def max_roi_pool(node: Node) -> Result:
    """The greatest element in each of so many parts of regions of images; 0 for parts outside."""
    rows, columns = node.integers("pooled_shape") or (1, 1)
    scale = node.number("spatial_scale", 1.0)
    return node.te(lambda x, regions: _max_of_regions(x, regions, (rows, columns), scale), node[0], node[1])


def _max_of_regions(x: te.Tensor, regions: te.Tensor, parts: tuple[int, int], scale: float) -> te.Tensor:
    """Regions are `[image, x1, y1, x2, y2]`, their ends included."""
    sizes = x.shape[2:]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        image, boxes, made = *ins, outs[0]
        with b.block("max_roi_pool", ("spatial", boxes.shape[0], "r"), ("spatial", x.shape[1], "c")) as (r, c):
            n = te.cast(te.cast(boxes[r, 0], "i64"), "index")
            with b.for_range(0, parts[0], "i") as i, b.for_range(0, parts[1], "j") as j:
                bounds = [
                    b.let(bound, "bound")
                    for axis, part in enumerate((i, j))
                    for bound in _part(boxes, r, axis, part, parts[axis], sizes[axis], scale)
                ]
                top, bottom, left, right = (te.cast(bound, "index") for bound in bounds)
                is_empty = te.logical_or(bounds[1] <= bounds[0], bounds[3] <= bounds[2])
                least = te.const(float("-inf"), x.dtype)
                b.store(made, (r, c, i, j), te.select(is_empty, te.const(0, x.dtype), least))
                with b.for_range(top, bottom, "h") as h, b.for_range(left, right, "w") as w:
                    old = made[r, c, i, j]
                    b.store(
                        made, (r, c, i, j), te.maximum(old, image[n, c, _clamped(h, sizes[0]), _clamped(w, sizes[1])])
                    )

    shape = (regions.shape[0], x.shape[1], constant(parts[0]), constant(parts[1]))
    return te.extern([(shape, x.dtype)], [x, regions], body, name="max_roi_pool")[0]


def _part(
    boxes: te.Tensor, r: te.Expr, axis: int, part: te.Expr, parts: int, size: Dim, scale: float
) -> tuple[te.Expr, te.Expr]:
    """Where a part of a region begins and ends along an axis of the image; 0 is that of rows."""
    first, last = (te.round_away(boxes[r, position] * scale) for position in (2 - axis, 4 - axis))
    step = te.maximum(last - first + 1, 1) / te.const(parts, boxes.dtype)
    position = te.cast(te.cast(part, "i64"), boxes.dtype)
    limit = te.cast(te.cast(size, "index"), "i64")
    ends = te.floor(position * step) + first, te.ceil((position + 1) * step) + first
    begin, end = (te.minimum(te.maximum(te.cast(each, "i64"), 0), limit) for each in ends)
    return begin, end


@converts("DeformConv")
def deformable_convolution(node: Node) -> Result:
    """A convolution whose positions are moved by offsets that are data."""
    if node.rank() != 4:
        raise Refusal("deformable convolutions over other than two dimensions are not supported")
    windows = window_attributes(node, node.shape()[2:], fixed(node.shape(1)[2:], "the kernel's shape"))
    arguments = [node[0], node[1], node[2], *([node[4]] if node.has(4) else [])]
    groups, offset_groups = node.integer("group", 1), node.integer("offset_group", 1)
    made = node.te(
        lambda *tensors: deform_conv(tensors, windows, groups, offset_groups), *arguments, name="deform_conv"
    )
    return with_bias(made, node.optional(3))


@converts("Col2Im")
def col2im(node: Node) -> Result:
    """Blocks of an image, put back and added up where they overlap."""
    image, block = node.dims(1), node.dims(2)
    hints = node.hinted_dims(2 + node.length(1))
    if image is None:
        image = node.run_time_dims(node[1], hints[2:])
    if block is None:
        block = node.run_time_dims(node[2])
    rank, depth = len(image), floordiv(node.shape()[1], product(block))
    (depth,) = node.named([depth], hints[1:2])
    blocks = Blocks(
        block,
        node.integers("strides") or (1,) * rank,
        node.integers("dilations") or (1,) * rank,
        node.integers("pads") or (0,) * (2 * rank),
        depth,
    )
    return node.te(lambda x: columns_to_image(x, image, blocks), node[0], name="col2im")
