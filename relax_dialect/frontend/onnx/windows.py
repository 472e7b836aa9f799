"""Windows that slide over data: the attributes of convolutions and pooling, and convolutions of any operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.formulas import filled
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.node import Node, fixed
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum


@dataclass(frozen=True)
class WindowAttributes:
    """Sizes, strides, dilations, and padding: before each dimension, then after each."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    def reach(self, axis: int) -> int:
        """How many positions a window spans."""
        return self.dilations[axis] * (self.sizes[axis] - 1) + 1


def kernel_sizes(node: Node, index: int) -> tuple[int, ...]:
    """The sizes of the windows; `Refusal` if the attribute and the kernel, operand `index`, say different ones."""
    dims, said = node.shape(index)[2:], node.integers("kernel_shape")
    if said is None:
        return fixed(dims, "the kernel's shape")
    if len(said) != len(dims) or any(
        dim.constant_value not in (None, size) for dim, size in zip(dims, said, strict=True)
    ):
        raise Refusal(f"the kernel has the shape [{', '.join(map(str, dims))}], but kernel_shape says {list(said)}")
    return said


def of_known_size(node: Node, w: Expr, sizes: Sequence[int], index: int = 1) -> Expr:
    """The kernel, operand `index`, whose spatial dimensions are checked at run time if they are symbols."""
    shape = node.shape(index)
    if all(dim.is_constant for dim in shape[2:]):
        return w
    return node.bb.match_cast(w, TensorType([*shape[:2], *map(constant, sizes)], w.dtype))


def window_attributes(node: Node, lengths: Sequence[Dim], sizes: Sequence[int]) -> WindowAttributes:
    """The windows of a node over data with these lengths; `Refusal` if the padding depends on symbolic ones."""
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
    totals = [_same(given, axis, lengths[axis])[1] for axis in range(rank)]
    if not all(total.is_constant for total in totals):
        raise Refusal("auto_pad with a stride needs constant spatial dimensions")
    before = [_before(auto, total) for total in totals]
    pads = (*before, *(total - low for total, low in zip(totals, before, strict=True)))
    return WindowAttributes(given.sizes, strides, dilations, tuple(each.constant_value or 0 for each in pads))


def _same(windows: WindowAttributes, axis: int, length: Dim) -> tuple[Dim, Dim]:
    """The length of padded data in which there is a window for every stride, and the padding.

    Elements that no window reaches are left out of the length.
    """
    stride, reach = windows.strides[axis], windows.reach(axis)
    padded = (ceildiv(length, constant(stride)) - 1) * stride + reach
    return padded, constant(reach - 1) if stride == 1 else maximum(padded - length, constant(0))


def _before(auto: str, total: Dim) -> Dim:
    """The padding before the data."""
    small = floordiv(total, constant(2))
    return small if auto == "SAME_UPPER" else total - small


def padded_data(
    node: Node,
    x: Expr,
    sizes: Sequence[int],
    filler: Callable[[te.Tensor], te.Expr] = lambda x: te.const(0, x.dtype),
    index: int = 0,
) -> tuple[Expr, WindowAttributes, Sequence[Dim] | None]:
    """The data of a node, `x` with the shape of operand `index`, and the windows over it.

    Where `auto_pad` depends on symbolic dimensions, the data has that padding itself, of which `filler` is an element;
    the padding before each spatial dimension then comes third.
    """
    shape, auto = node.shape(index), node.text("auto_pad", "NOTSET")
    lengths, strides = shape[2:], node.integers("strides") or (1,) * (len(shape) - 2)
    known = all(stride == 1 or length.is_constant for stride, length in zip(strides, lengths, strict=False))
    if known or not auto.startswith("SAME"):
        return x, window_attributes(node, lengths, sizes), None
    free = WindowAttributes(tuple(sizes), strides, node.integers("dilations") or (1,) * len(strides), ())
    axes = [_same(free, axis, length) for axis, length in enumerate(lengths)]
    before = [_before(auto, total) for _, total in axes]
    padded = [*shape[:2], *(length for length, _ in axes)]
    made = node.te(lambda data: filled(data, padded, [0, 0, *before], filler(data)), x, name="pad")
    return made, replace(free, pads=(0,) * (2 * len(strides))), before


_FORWARD = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}


def convolution(node: Node, x: Expr, w: Expr, index: int = 1) -> Expr:
    """The convolution of a node without its bias; `index` is the operand that is the kernel."""
    lengths = node.shape()[2:]
    if len(lengths) not in _FORWARD:
        raise Refusal(f"convolutions over {len(lengths)} dimensions are not supported")
    x, windows, _ = padded_data(node, x, kernel_sizes(node, index))
    return _FORWARD[len(lengths)](
        x,
        of_known_size(node, w, windows.sizes, index),
        strides=windows.strides,
        padding=windows.pads,
        dilation=windows.dilations,
        groups=node.integer("group", 1),
    )
