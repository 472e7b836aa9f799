"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed
from relax_dialect.frontend.onnx.quantization import dequantized_convolution
from relax_dialect.frontend.onnx.values import Refusal
from relax_dialect.frontend.onnx.windows import WindowAttributes, convolution, kernel_sizes, of_known_size
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, floordiv, maximum

_TRANSPOSED = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose, 3: op.nn.conv3d_transpose}


@converts("Conv")
def conv(node: Node) -> Result:
    """A convolution, and a bias for each filter."""
    made = dequantized_convolution(node)
    return with_bias(convolution(node, node[0], node[1]) if made is None else made, node.optional(2))


def with_bias(x: Expr, bias: Expr | None) -> Expr:
    """`x` with a bias for each channel."""
    if bias is None:
        return x
    return op.add(x, op.expand_dims(bias, range(1, (x.ndim or 0) - 1)))


@converts("ConvTranspose")
def conv_transpose(node: Node) -> Result:
    """A transposed convolution, and a bias for each filter."""
    lengths, sizes = node.shape()[2:], kernel_sizes(node, 1)
    rank = len(lengths)
    if rank not in _TRANSPOSED:
        raise Refusal(f"convolutions over {rank} dimensions are not supported")
    strides, dilations = node.integers("strides") or (1,) * rank, node.integers("dilations") or (1,) * rank
    windows = WindowAttributes(sizes, strides, dilations, node.integers("pads") or (0,) * (2 * rank))
    extra = node.integers("output_padding") or (0,) * rank
    wanted = node.integers("output_shape")
    if wanted is not None and not all(length.is_constant for length in lengths):
        return with_bias(_cut_to_size(node, windows, extra, wanted[-rank:]), node.optional(2))
    pads, extra = _transposed_pads(node, windows, extra)
    if min(extra) < 0 or any(each >= max(strides[at], dilations[at]) for at, each in enumerate(extra)):
        made = _padded(node, windows, pads, extra)
    else:
        made = _transposed(node, windows, pads, extra)
    return with_bias(made, node.optional(2))


def _transposed(node: Node, windows: WindowAttributes, pads: Sequence[int], extra: Sequence[int]) -> Expr:
    return _TRANSPOSED[len(windows.sizes)](
        node[0],
        of_known_size(node, node[1], windows.sizes),
        strides=windows.strides,
        padding=pads,
        output_padding=extra,
        dilation=windows.dilations,
        groups=node.integer("group", 1),
    )


def _padded(node: Node, windows: WindowAttributes, pads: Sequence[int], extra: Sequence[int]) -> Expr:
    """With more output padding than a stride: zeros behind what the windows reach."""
    made = _transposed(node, windows, pads, (0,) * len(extra))
    return op.nn.pad(made, [0, 0, 0, 0, *(each for more in extra for each in (0, more))])


def _cut_to_size(node: Node, windows: WindowAttributes, extra: Sequence[int], sizes: Sequence[int]) -> Expr:
    """What `output_shape` leaves of the whole result, whose padding depends on symbolic dimensions; where it is more
    than there is, zeros are behind it.
    """
    rank = len(sizes)
    whole = _padded(node, windows, (0,) * (2 * rank), extra)
    dims = [
        (length - 1) * windows.strides[at] + extra[at] + windows.reach(at) for at, length in enumerate(node.shape()[2:])
    ]
    channels = node.shape(1)[1] * node.integer("group", 1)
    shape = [node.shape()[0], channels, *dims]
    for at, (dim, size) in enumerate(zip(dims, sizes, strict=True), 2):
        missing = maximum(size - dim, constant(0))
        if missing.constant_value != 0:
            whole = op.concat([whole, op.zeros([*shape[:at], missing, *shape[at + 1 :]], node.dtype())], at)
            shape[at] = dim + missing
    begins: list[Dim] = []
    for dim, size in zip(dims, sizes, strict=True):
        total = maximum(dim - size, constant(0))
        small = floordiv(total, constant(2))
        begins.append(small if node.text("auto_pad", "NOTSET") == "SAME_UPPER" else total - small)
    ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]
    cut = op.strided_slice(whole, list(range(2, 2 + rank)), begins, ends)
    return node.bb.match_cast(cut, TensorType([node.shape()[0], channels, *map(constant, sizes)], node.dtype()))


def _transposed_pads(
    node: Node, windows: WindowAttributes, extra: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """The padding and output padding, also where the shape of the result says them."""
    rank, auto = len(windows.sizes), node.text("auto_pad", "NOTSET")
    wanted = node.integers("output_shape")
    if wanted is None and auto in ("NOTSET", ""):
        return windows.pads, extra
    if wanted is None and auto == "VALID":
        return (0,) * (2 * rank), extra
    totals = [extra[at] + windows.reach(at) - windows.strides[at] for at in range(rank)]  # of a size that is a multiple
    if wanted:
        lengths = fixed(node.shape()[2:], "the shape of data, of which the padding depends,")
        totals = [total + windows.strides[at] * lengths[at] - wanted[at - rank] for at, total in enumerate(totals)]
    more = [extra[at] + max(-total, 0) for at, total in enumerate(totals)]
    totals = [max(total, 0) for total in totals]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return ((*small, *large) if auto == "SAME_UPPER" else (*large, *small)), more
