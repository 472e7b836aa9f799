"""Parts of images and sequences that ONNX Runtime reads in its own ways."""

from __future__ import annotations

from dataclasses import replace

from relax_dialect.frontend.onnx.convolution import conv_transpose
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.range_checks import indices_within
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv


@converts("CropAndResize", domain=MICROSOFT)
def crop_and_resize(node: Node) -> Result:
    """Regions of images brought to one size, whose corners are those of the regions."""
    mode, outside = node.text("mode", "bilinear"), node.number("extrapolation_value")
    if mode not in ("bilinear", "nearest"):
        raise Refusal(f"the mode {mode} is not supported")
    sizes = node.dims(3) or node.run_time_dims(node[3], node.hinted_dims(4)[2:])

    def kernel(x: te.Tensor, regions: te.Tensor, images: te.Tensor) -> te.Tensor:
        def element(r: te.Expr, c: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
            n = te.cast(images[r], "index")
            positions = [
                _position(at, size, (regions[r, axis], regions[r, axis + 2]), x.shape[2 + axis])
                for axis, (at, size) in enumerate(zip((i, j), sizes, strict=True))
            ]
            is_inside = te.logical_and(*(is_inside for _, is_inside in positions))
            positions = [te.select(is_inside, position, te.const(0, "f32")) for position, _ in positions]
            ends = (
                [(te.floor(position), te.ceil(position)) for position in positions]
                if mode == "bilinear"
                else [(te.round_away(p),) for p in positions]
            )
            found = [
                [x[n, c, *(te.cast(te.cast(at, "i64"), "index") for at in (row, column))] for column in ends[1]]
                for row in ends[0]
            ]
            if mode == "bilinear":
                (top, bottom), (share_y, share_x) = found, (position - te.floor(position) for position in positions)
                over, under = (left + (right - left) * share_x for left, right in (top, bottom))
                value = over + (under - over) * share_y
            else:
                value = found[0][0]
            return te.select(is_inside, value, te.const(outside, x.dtype))

        return te.compute((regions.shape[0], x.shape[1], *sizes), element, name="crop_and_resize")

    what = f"'{node.op_type}' batch_indices"
    images = indices_within(node.bb, node[2], [node.shape()[0]], what, "the images", from_back=False)
    return node.te(kernel, node[0], node[1], images, name="crop_and_resize")


def _position(at: te.Expr, size: Dim, region: tuple[te.Expr, te.Expr], length: Dim) -> tuple[te.Expr, te.Expr]:
    """Where an element of the result is along an axis of the image, and whether that is inside of it."""
    first, last = region
    end = te.cast(te.cast(te.cast(length, "index") - 1, "i64"), "f32")
    steps = te.cast(te.cast(te.cast(size, "index") - 1, "i64"), "f32")
    step = (last - first) * end / te.maximum(steps, te.const(1, "f32"))
    corner = first * end + te.cast(te.cast(at, "i64"), "f32") * step
    position = te.select(steps > 0, corner, (first + last) * end * 0.5)
    return position, te.logical_and(position >= 0, position <= end)


@converts("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(node: Node) -> Result:
    """All slices of a size along a dimension, which become a dimension at the end."""
    axis, size, step = node.axis("dim", -1), node.integer("size"), node.integer("step", 1)
    *before, length = node.shape()[: axis + 1]
    (count,) = node.named(
        [floordiv(length - size, constant(step)) + 1], node.hinted_dims(node.rank() + 1)[axis : axis + 1]
    )

    def kernel(x: te.Tensor) -> te.Tensor:
        def element(*at: te.Expr) -> te.Expr:
            index = list(at[:-1])
            index[axis] = at[axis] * step + at[-1]
            return x[tuple(index)]

        return te.compute((*before, count, *x.shape[axis + 1 :], size), element, name="unfold")

    return node.te(kernel, node[0], name="unfold")


@converts("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def conv_transpose_with_pads(node: Node) -> Result:
    """A transposed convolution whose padding is an operand."""
    inputs = [node.inputs[0], node.inputs[1], *([node.inputs[3]] if node.has(3) else [])]
    pads = node.ints(2) if node.has(2) else (0,) * (2 * (node.rank() - 2))
    if pads is not None:
        return conv_transpose(replace(node, inputs=inputs, attributes={**node.attributes, "pads": pads}))
    raise Refusal("a padding that is not known while importing is not supported")
