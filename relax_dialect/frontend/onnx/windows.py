"""Windows that slide over data: the attributes of convolutions and pooling, and convolutions of any operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node, fixed
from tir_dialect.dims import Dim


@dataclass(frozen=True)
class WindowAttributes:
    """Sizes, strides, dilations, and padding: before each dimension, then after each."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    def reach(self, axis: int) -> int:
        """How many places a window spans."""
        return self.dilations[axis] * (self.sizes[axis] - 1) + 1


def kernel_sizes(node: Node, index: int) -> tuple[int, ...]:
    """The sizes of the windows; `Refusal` if the attribute and the kernel, operand `index`, say different ones."""
    sizes, said = fixed(node.shape(index)[2:], "the kernel's shape"), node.integers("kernel_shape")
    if said is not None and said != sizes:
        raise Refusal(f"the kernel has the shape {list(sizes)}, but kernel_shape says {list(said)}")
    return sizes


def window_attributes(node: Node, lengths: Sequence[Dim], sizes: Sequence[int]) -> WindowAttributes:
    """The windows of a node over data with these lengths."""
    rank = len(lengths)
    strides = node.integers("strides") or (1,) * rank
    dilations = node.integers("dilations") or (1,) * rank
    given = WindowAttributes(tuple(sizes), strides, dilations, node.integers("pads") or (0,) * (2 * rank))
    if not len(sizes) == len(strides) == len(dilations) == rank or len(given.pads) != 2 * rank:
        raise Refusal(f"expected attributes for {rank} spatial dimensions")
    auto = node.text("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        return given
    if auto == "VALID":
        return WindowAttributes(given.sizes, strides, dilations, (0,) * (2 * rank))
    pads = [_same(given, axis, lengths[axis]) for axis in range(rank)]
    small, large = [total // 2 for total in pads], [total - total // 2 for total in pads]
    both = (*small, *large) if auto == "SAME_UPPER" else (*large, *small)
    return WindowAttributes(given.sizes, strides, dilations, both)


def _same(windows: WindowAttributes, axis: int, length: Dim) -> int:
    """The padding with which there is a window for every stride."""
    stride, reach = windows.strides[axis], windows.reach(axis)
    if stride == 1:
        return reach - 1
    known = length.constant_value
    if known is None:
        raise Refusal("auto_pad with a stride needs constant spatial dimensions")
    return max((-(-known // stride) - 1) * stride + reach - known, 0)


_FORWARD = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}


def convolution(node: Node, x: Expr, w: Expr, index: int = 1) -> Expr:
    """The convolution of a node without its bias; `index` is the operand that is the kernel."""
    lengths = node.shape()[2:]
    if len(lengths) not in _FORWARD:
        raise Refusal(f"convolutions over {len(lengths)} dimensions are not supported")
    windows = window_attributes(node, lengths, kernel_sizes(node, index))
    return _FORWARD[len(lengths)](
        x,
        w,
        strides=windows.strides,
        padding=windows.pads,
        dilation=windows.dilations,
        groups=node.integer("group", 1),
    )
