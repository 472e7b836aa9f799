"""Windows that slide over data: attributes of convolutions and pooling, convolutions of any operands, and pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.formulas import Width, filled
from relax_dialect.frontend.edge_cases import indices_within
from relax_dialect.frontend.onnx.manipulation import spatial
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed
from relax_dialect.frontend.onnx.values import Refusal
from relax_dialect.ops.layouts import make_windows
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, product
from tir_dialect.dtypes import is_float


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


def _position(
    windows: WindowAttributes, before: Sequence[Width], at: Sequence[te.Expr], r: Sequence[te.Expr]
) -> list[te.Expr]:
    """The index in the data, perhaps out of bounds, of an element of a window; `before` is the padding."""
    return [i * windows.strides[axis] + r[axis] * windows.dilations[axis] - before[axis] for axis, i in enumerate(at)]


def _inside(position: Sequence[te.Expr], lengths: Sequence[Dim]) -> te.Expr:
    tests = [test for each, length in zip(position, lengths, strict=True) for test in (each >= 0, each < length)]
    return te.logical_and(*tests)


def _clamped(position: Sequence[te.Expr], lengths: Sequence[Dim]) -> list[te.Expr]:
    return [te.maximum(te.minimum(each, length - 1), 0) for each, length in zip(position, lengths, strict=True)]


def power_pool(x: te.Tensor, windows: WindowAttributes, extents: Sequence[Dim], p: int) -> te.Tensor:
    """The `p`-norm of each window."""
    over = [te.reduce_axis(size, f"r{at}") for at, size in enumerate(windows.sizes)]
    lengths, wide = x.shape[2:], "f64" if str(x.dtype) == "f64" else "f32"

    def total(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
        position = _position(windows, windows.pads, at, over)
        element = te.abs(te.cast(x[(n, c, *_clamped(position, lengths))], wide))
        return te.sum(
            te.select(_inside(position, lengths), te.pow(element, te.const(p, wide)), te.const(0, wide)), over
        )

    shape = (*x.shape[:2], *extents)
    totals = te.compute(shape, total, name="totals")
    return te.compute(shape, lambda *i: te.cast(te.pow(totals[i], te.const(1 / p, wide)), x.dtype), name="lp_pool")


def lowest(x: te.Tensor) -> te.Expr:
    """What is no greater than any element."""
    return te.const(float("-inf"), x.dtype) if is_float(x.dtype) else te.min_value(x.dtype)


def max_pool_indices(
    x: te.Tensor, windows: WindowAttributes, before: Sequence[Width], extents: Sequence[Dim], by_column: bool
) -> te.Tensor:
    """The index of the greatest element of each window in the flattened data; `by_column` counts columns first.

    `before` is the padding before each spatial dimension.
    """
    shape = (*x.shape[:2], *extents)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("max_pool_indices", *spatial(shape)) as index:
            best, found = b.alloc((), x.dtype, "best"), b.alloc((), "i64", "found")
            b.store(best, (), lowest(x))
            b.store(found, (), -1)
            _search(b, x, windows, before, index, (best, found), by_column)
            b.store(outs[0], index, found[()])

    return te.extern([(shape, "i64")], [x], body, name="max_pool_indices")[0]


def _search(
    b: te.ExternBuilder,
    x: te.Tensor,
    windows: WindowAttributes,
    before: Sequence[Width],
    index: Sequence[te.Expr],
    state: tuple[te.Tensor, te.Tensor],
    by_column: bool,
) -> None:
    """Looks through one window; `state` are the greatest element and its place."""
    from contextlib import ExitStack

    (best, found), lengths = state, x.shape[2:]
    with ExitStack() as stack:
        r = [stack.enter_context(b.for_range(0, size, f"r{at}")) for at, size in enumerate(windows.sizes)]
        position = _position(windows, before, index[2:], r)
        stack.enter_context(b.if_(_inside(position, lengths)))
        element = x[(*index[:2], *_clamped(position, lengths))]
        stack.enter_context(b.if_(te.logical_or(element > best[()], found[()] < 0)))
        b.store(best, (), element)
        flat = index[0] * x.shape[1] + index[1]
        pairs = list(zip(position, lengths, strict=True))
        volume = te.cast(te.const(0, "i64"), "index")
        for each, length in reversed(pairs) if by_column else pairs:
            volume = volume * length + each
        for length in lengths:
            flat = flat * length
        b.store(found, (), te.cast(flat + volume, "i64"))


_MAX = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
_AVERAGE = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}


def _sizes(node: Node) -> Sequence[int]:
    return node.integers("kernel_shape") or ()


def _extents(node: Node, windows: WindowAttributes, x: Expr) -> list[Dim]:
    """The spatial dimensions of the result."""
    made = make_windows(len(windows.sizes), windows.strides, windows.pads, windows.dilations)
    ceil, lengths = bool(node.integer("ceil_mode")), (x.shape or ())[2:]
    counts = [made.count(axis, length, constant(windows.sizes[axis]), ceil) for axis, length in enumerate(lengths)]
    return [count for count in counts if count is not None]


@converts("MaxPool")
def max_pool(node: Node) -> Result:
    """The greatest element of each window; as second output its place in the data."""
    x, windows, before = padded_data(node, node[0], _sizes(node), lowest)
    rank = node.rank() - 2
    if rank not in _MAX:
        raise Refusal(f"pooling over {rank} dimensions is not supported")
    pooled = _MAX[rank](
        x,
        windows.sizes,
        strides=windows.strides,
        padding=windows.pads,
        dilation=windows.dilations,
        ceil_mode=bool(node.integer("ceil_mode")),
    )
    if len(node.outputs) < 2 or not node.outputs[1]:
        return pooled
    extents, by_column = _extents(node, windows, x), bool(node.integer("storage_order"))
    return pooled, node.te(
        lambda x: max_pool_indices(x, windows, before or windows.pads, extents, by_column),
        node[0],
        name="max_pool_indices",
    )


@converts("AveragePool")
def average_pool(node: Node) -> Result:
    """The mean of each window."""
    x, windows, before = padded_data(node, node[0], _sizes(node))
    rank, counts_padding = node.rank() - 2, bool(node.integer("count_include_pad"))
    if rank not in _AVERAGE:
        raise Refusal(f"pooling over {rank} dimensions is not supported")

    def mean(x: Expr) -> Expr:
        return _AVERAGE[rank](
            x,
            windows.sizes,
            strides=windows.strides,
            padding=windows.pads,
            dilation=windows.dilations,
            ceil_mode=bool(node.integer("ceil_mode")),
            count_include_pad=counts_padding,
        )

    if before is None or counts_padding:
        return mean(x)
    # What part of each window is data: the padding is part of `x`.
    lengths = node.shape()[2:]

    def inside(data: te.Tensor) -> te.Tensor:
        def is_data(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
            position = [i - low for i, low in zip(at, before, strict=True)]
            return te.cast(_inside(position, lengths), data.dtype)

        return te.compute((1, 1, *data.shape[2:]), is_data, name="inside")

    return op.divide(mean(x), mean(node.te(inside, x, name="inside")))


@converts("LpPool")
def lp_pool(node: Node) -> Result:
    """The `p`-norm of each window."""
    x, windows, _ = padded_data(node, node[0], _sizes(node))
    extents, p = _extents(node, windows, x), node.integer("p", 2)
    return node.te(lambda x: power_pool(x, windows, extents, p), x, name="lp_pool")


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
    """Elements put back to the positions from which pooling took them, zeros elsewhere."""
    shape = [*node.shape()[:2], *_unpooled(node)]
    zeros = op.full([product(shape)], node.like(0))
    what, count = "'MaxUnpool' indices", product(shape)
    indices = indices_within(node.bb, op.flatten(node[1]), [count], what, "the result", from_back=False)
    made = op.reshape(op.scatter_elements(zeros, indices, op.flatten(node[0]), 0), shape)
    if not node.has(2):
        return made
    known = node.dims(2)
    full = node.run_time_dims(node[2], node.hinted_dims(node.rank())) if known is None else known
    return node.te(lambda x: _enlarged(x, full), made, name="enlarged")


def _enlarged(x: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    """A tensor with zeros behind it, or cut, so that it has a shape."""

    def element(*i: te.Expr) -> te.Expr:
        inside = te.logical_and(*(each < length for each, length in zip(i, x.shape, strict=True)))
        position = [te.minimum(each, length - 1) for each, length in zip(i, x.shape, strict=True)]
        return te.if_then_else(inside, x[tuple(position)], te.const(0, x.dtype))

    return te.compute(shape, element, name="enlarged")


def _unpooled(node: Node) -> list[Dim]:
    sizes = node.integers("kernel_shape") or ()
    rank = len(sizes)
    strides, pads = node.integers("strides") or (1,) * rank, node.integers("pads") or (0,) * (2 * rank)
    return [
        (length - 1) * strides[at] + sizes[at] - pads[at] - pads[at + rank]
        for at, length in enumerate(node.shape()[2:])
    ]
