"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.kernels.pooling import max_pool_places, power_pool
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.windows import WindowAttributes, window_attributes
from relax_dialect.ops.windows import make_windows
from tir_dialect import te
from tir_dialect.dims import Dim, constant, product

_MAX = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
_AVERAGE = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}


def _windows(node: Node) -> WindowAttributes:
    return window_attributes(node, node.shape()[2:], node.integers("kernel_shape") or ())


def _extents(node: Node, windows: WindowAttributes) -> list[Dim]:
    """The spatial dimensions of the result."""
    made = make_windows(len(windows.sizes), windows.strides, windows.pads, windows.dilations)
    ceil = bool(node.integer("ceil_mode"))
    counts = [
        made.count(axis, length, constant(windows.sizes[axis]), ceil) for axis, length in enumerate(node.shape()[2:])
    ]
    return [count for count in counts if count is not None]


@converts("MaxPool")
def max_pool(node: Node) -> Result:
    """The greatest element of each window; as second output its place in the data."""
    windows, rank = _windows(node), node.rank() - 2
    if rank not in _MAX:
        raise Refusal(f"pooling over {rank} dimensions is not supported")
    pooled = _MAX[rank](
        node[0],
        windows.sizes,
        strides=windows.strides,
        padding=windows.pads,
        dilation=windows.dilations,
        ceil_mode=bool(node.integer("ceil_mode")),
    )
    if len(node.outputs) < 2 or not node.outputs[1]:
        return pooled
    extents, by_column = _extents(node, windows), bool(node.integer("storage_order"))
    return pooled, node.te(lambda x: max_pool_places(x, windows, extents, by_column), node[0], name="max_pool_places")


@converts("AveragePool")
def average_pool(node: Node) -> Result:
    """The mean of each window."""
    windows, rank = _windows(node), node.rank() - 2
    if rank not in _AVERAGE:
        raise Refusal(f"pooling over {rank} dimensions is not supported")
    return _AVERAGE[rank](
        node[0],
        windows.sizes,
        strides=windows.strides,
        padding=windows.pads,
        dilation=windows.dilations,
        ceil_mode=bool(node.integer("ceil_mode")),
        count_include_pad=bool(node.integer("count_include_pad")),
    )


@converts("LpPool")
def lp_pool(node: Node) -> Result:
    """The `p`-norm of each window."""
    windows = _windows(node)
    extents, p = _extents(node, windows), node.integer("p", 2)
    return node.te(lambda x: power_pool(x, windows, extents, p), node[0], name="lp_pool")


@converts("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(node: Node) -> Result:
    """One element for each channel."""
    axes, x = range(2, node.rank()), node[0]
    if node.op_type == "GlobalAveragePool":
        return op.mean(x, list(axes), keepdims=True)
    if node.op_type == "GlobalMaxPool":
        return op.max(x, list(axes), keepdims=True)
    p = node.integer("p", 2)
    total = op.sum(op.power(op.abs(x), node.like(p)), list(axes), keepdims=True)
    return op.power(total, node.like(1 / p))


@converts("MaxUnpool")
def max_unpool(node: Node) -> Result:
    """Elements put back to the places from which pooling took them, zeros elsewhere."""
    shape = [*node.shape()[:2], *_unpooled(node)]
    zeros = op.full([product(shape)], node.like(0))
    made = op.reshape(op.scatter_elements(zeros, op.flatten(node[1]), op.flatten(node[0]), 0), shape)
    if not node.has(2):
        return made
    known = node.dims(2)
    full = node.run_time_dims(node[2], node.hinted_dims(node.rank())) if known is None else known
    return node.te(lambda x: _enlarged(x, full), made, name="enlarged")


def _enlarged(x: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    """A tensor with zeros behind it, or cut, so that it has a shape."""

    def element(*i: te.Expr) -> te.Expr:
        inside = te.logical_and(*(each < length for each, length in zip(i, x.shape, strict=True)))
        place = [te.minimum(each, length - 1) for each, length in zip(i, x.shape, strict=True)]
        return te.if_then_else(inside, x[tuple(place)], te.const(0, x.dtype))

    return te.compute(shape, element, name="enlarged")


def _unpooled(node: Node) -> list[Dim]:
    sizes = node.integers("kernel_shape") or ()
    rank = len(sizes)
    strides, pads = node.integers("strides") or (1,) * rank, node.integers("pads") or (0,) * (2 * rank)
    return [
        (length - 1) * strides[at] + sizes[at] - pads[at] - pads[at + rank]
        for at, length in enumerate(node.shape()[2:])
    ]
