"""Convolutions and pooling, and the windows that they have in common."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from xdsl.dialects.builtin import f64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import indices_within
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, product, to_dim
from tir_dialect.dtypes import is_float


def each(node: Node, name: str, rank: int, default: int | None = None) -> list[int]:
    """One number per spatial dimension; PyTorch writes one for all, and nothing for the default."""
    found = node.integers(name)
    if not found:
        return [0 if default is None else default] * rank
    return found * rank if len(found) == 1 else found


def padding(node: Node, rank: int) -> list[int]:
    """What is before each dimension, then what is behind each."""
    return each(node, "padding", rank) * 2


def batched(x: Expr, rank: int, function: Callable[[Expr], Expr]) -> Expr:
    """A function of data with a batch dimension, applied to data with or without one."""
    if x.ndim == rank + 2:
        return function(x)
    if x.ndim != rank + 1:
        raise Refusal(f"expected data of rank {rank + 1} or {rank + 2}, got rank {x.ndim}")
    return op.squeeze(function(op.expand_dims(x, [0])), [0])


def with_bias(x: Expr, bias: Expr | None, spatial: int) -> Expr:
    """`x` with a bias for each channel, behind which there are spatial dimensions."""
    if bias is None:
        return x
    return op.add(x, op.expand_dims(bias, list(range(1, spatial + 1))) if spatial else bias)


def same_padding(kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """The padding with which the size stays: the larger half behind."""
    totals = [by * (size - 1) for size, by in zip(kernel, dilation, strict=True)]
    return [total // 2 for total in totals] + [total - total // 2 for total in totals]


FORWARD = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
TRANSPOSED = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose, 3: op.nn.conv3d_transpose}


@converts("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def conv(node: Node) -> Result:
    """A convolution, and a bias for each filter."""
    return _forward(node, padding(node, _rank(node)))


@converts("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def conv_padding(node: Node) -> Result:
    """A convolution without padding, or with one that keeps the size."""
    rank = _rank(node)
    if node.text("padding") == "valid":
        return _forward(node, [0] * 2 * rank)
    kernel = [dim.constant_value or 1 for dim in node.shape("weight")[2:]]
    return _forward(node, same_padding(kernel, each(node, "dilation", rank, 1)))


@converts("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def conv_transpose(node: Node) -> Result:
    """A transposed convolution, and a bias for each filter."""
    return _transposed(node)


@converts("aten.convolution.default")
def convolution(node: Node) -> Result:
    """Either of them."""
    return _transposed(node) if node.flag("transposed") else _forward(node, padding(node, _rank(node)))


def _rank(node: Node) -> int:
    """The number of spatial dimensions."""
    rank = node.rank("weight") - 2
    if rank not in FORWARD:
        raise Refusal(f"convolutions over {rank} dimensions are not supported")
    return rank


def _forward(node: Node, pads: list[int]) -> Expr:
    rank = _rank(node)

    def apply(x: Expr) -> Expr:
        return FORWARD[rank](
            x,
            node.tensor("weight"),
            strides=each(node, "stride", rank, 1),
            padding=pads,
            dilation=each(node, "dilation", rank, 1),
            groups=node.integer("groups", 1),
        )

    return batched(node.tensor("input"), rank, lambda x: with_bias(apply(x), node.optional("bias"), rank))


def _transposed(node: Node) -> Expr:
    rank = _rank(node)

    def apply(x: Expr) -> Expr:
        return TRANSPOSED[rank](
            x,
            node.tensor("weight"),
            strides=each(node, "stride", rank, 1),
            padding=padding(node, rank),
            output_padding=each(node, "output_padding", rank),
            dilation=each(node, "dilation", rank, 1),
            groups=node.integer("groups", 1),
        )

    return batched(node.tensor("input"), rank, lambda x: with_bias(apply(x), node.optional("bias"), rank))


_MAX = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
_AVERAGE = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}
_ADAPTIVE = {1: op.nn.adaptive_avg_pool1d, 2: op.nn.adaptive_avg_pool2d, 3: op.nn.adaptive_avg_pool3d}


def _pool_rank(node: Node) -> int:
    """The number of spatial dimensions, which the name says: `max_pool2d_with_indices`."""
    return int(node.name[node.name.index("d", node.name.index("pool")) - 1])


@converts(*(f"aten.max_pool{rank}d.default" for rank in _MAX))
def max_pool(node: Node) -> Result:
    """The greatest element of each window."""
    return _max_pool(node)


@converts("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(node: Node) -> Result:
    """The greatest element of each window, and where it is: its index in the flattened image."""
    if not node.wants(1):
        return [_max_pool(node), None]
    rank = _pool_rank(node)
    sizes, before = each(node, "kernel_size", rank), padding(node, rank)
    strides = each(node, "stride", rank) if node.integers("stride") else sizes
    steps = each(node, "dilation", rank, 1)
    starts = [_evenly(by, off) for by, off in zip(strides, before[:rank], strict=True)]
    return _with_indices(node, [Windows(*along) for along in zip(starts, map(to_dim, sizes), steps, strict=True)])


def _evenly(stride: int, before: int) -> Callable[[te.Expr], te.Expr]:
    return lambda i: i * stride - before


@dataclass(frozen=True)
class Windows:
    """The windows along one dimension."""

    start: Callable[[te.Expr], te.Expr]
    """Where a window begins."""

    size: Dim
    """The number of elements of the longest one."""

    step: int
    """How far they are apart."""

    end: Callable[[te.Expr], te.Expr] | None = None
    """Where a window ends before it has as many elements."""


def _with_indices(node: Node, windows: Sequence[Windows]) -> Result:
    """The greatest elements of windows, and their indices in the flattened image; NaN is greater than all."""
    rank, shape, dims = len(windows), node.shape(), node.out_dims()
    lead, lengths, lowest = len(dims) - rank, shape[-rank:], -math.inf if is_float(node.dtype()) else None

    def indices(i: Sequence[te.Expr], inside: Sequence[te.Expr]) -> list[te.Expr]:
        return [along.start(at) + by * along.step for along, at, by in zip(windows, i, inside, strict=True)]

    def gathered(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            out, position = i[lead : lead + rank], indices(i[lead : lead + rank], _unraveled(i[-1], windows))
            seen = [
                te.logical_and(at >= 0, at < te.cast(end, "index")) for at, end in zip(position, lengths, strict=True)
            ]
            seen += [at < along.end(o) for along, at, o in zip(windows, position, out, strict=True) if along.end]
            least = te.min_value(str(node.dtype())) if lowest is None else te.const(lowest, str(node.dtype()))
            return te.if_then_else(te.logical_and(*seen), x[(*i[:lead], *position)], least)

        return te.compute((*dims, product([along.size for along in windows])), element, name="windows")

    def flattened(which: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            position = indices(i[lead:], _unraveled(te.cast(which[i], "index"), windows))
            found: te.Expr = te.cast(to_dim(0), "index")
            for at, along, end in zip(position, windows, lengths, strict=True):
                first = te.if_then_else(at < 0, at + te.ceildiv(-at, along.step) * along.step, at)
                found = found * te.cast(end, "index") + first
            return te.cast(found, "i64")

        return te.compute(dims, element, name="indices")

    which = op.argmax(node.te(gathered, node.tensor("self"), name="windows"), -1)
    where = node.te(flattened, which, name="indices")
    flat = [*dims[:lead], product(lengths)]
    few = [*dims[:lead], product(dims[lead:])]
    values = op.gather_elements(op.reshape(node.tensor("self"), flat), op.reshape(where, few), lead)
    return [op.reshape(values, dims), where]


def _unraveled(at: te.Expr, windows: Sequence[Windows]) -> list[te.Expr]:
    """The indices along each dimension of an element of a flattened window."""
    found = list[te.Expr]()
    for along in reversed(windows):
        size = te.cast(along.size, "index")
        found.insert(0, te.floormod(at, size))
        at = te.floordiv(at, size)
    return found


@converts("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def max_unpool(node: Node) -> Result:
    """Zeros, with elements at indices of the flattened image."""
    rank, dims = _pool_rank(node), node.out_dims()
    lead = len(dims) - rank
    x, where = (
        op.reshape(node.tensor(name), [*dims[:lead], product(node.shape(name)[lead:])]) for name in ("self", "indices")
    )
    count = product(dims[lead:])
    where = indices_within(node.bb, where, [count], f"'{node.name}' indices", "the result", from_back=False)
    flat = op.full([*dims[:lead], count], node.like(0, x))
    return op.reshape(op.scatter_elements(flat, where, x, lead), dims)


def _windows(node: Node) -> tuple[list[int], list[int]]:
    """The sizes of windows and the steps between them.

    With `ceil_mode` a window may be longer than the padded data. It is the only one then, and ends with the data.
    """
    rank = _pool_rank(node)
    sizes = each(node, "kernel_size", rank)
    strides = each(node, "stride", rank) if node.integers("stride") else sizes
    if not node.flag("ceil_mode") or set(each(node, "dilation", rank, 1)) != {1}:
        return sizes, strides
    lengths = [dim.constant_value for dim in node.shape()[-rank:]]
    paddings = padding(node, rank)
    return [
        size if length is None else min(size, length + 2 * pad)
        for size, length, pad in zip(sizes, lengths, paddings, strict=False)
    ], strides


def _max_pool(node: Node) -> Expr:
    rank = _pool_rank(node)
    sizes, strides = _windows(node)

    def apply(x: Expr) -> Expr:
        return _MAX[rank](
            x,
            sizes,
            strides=strides,
            padding=padding(node, rank),
            dilation=each(node, "dilation", rank, 1),
            ceil_mode=node.flag("ceil_mode"),
        )

    return batched(node.tensor("self"), rank, apply)


@converts(*(f"aten.avg_pool{rank}d.default" for rank in _AVERAGE))
def avg_pool(node: Node) -> Result:
    """The mean of each window, or its sum divided by a number."""
    rank = _pool_rank(node)
    if node.has("divisor_override"):
        return batched(node.tensor("self"), rank, lambda x: _divided_sums(node, x))
    sizes, strides = _windows(node)

    def apply(x: Expr) -> Expr:
        return _AVERAGE[rank](
            x,
            sizes,
            strides=strides,
            padding=padding(node, rank),
            ceil_mode=node.flag("ceil_mode"),
            count_include_pad=node.flag("count_include_pad"),
        )

    return batched(node.tensor("self"), rank, apply)


def _divided_sums(node: Node, x: Expr) -> Expr:
    """The sum of each window, divided by a number; with `ceil_mode` zeros follow until the last window ends."""
    rank = _pool_rank(node)
    sizes, before = each(node, "kernel_size", rank), padding(node, rank)[:rank]
    strides = each(node, "stride", rank) if node.integers("stride") else sizes
    after = list(before)
    if node.flag("ceil_mode"):
        lengths = [dim.constant_value for dim in (*node.shape()[-rank:], *node.out_dims()[-rank:])]
        known = [length for length in lengths if length is not None]
        if len(known) < 2 * rank:
            raise Refusal("a divisor together with ceil_mode and dynamic sizes is not supported")
        ends = [(count - 1) * stride + size for count, stride, size in zip(known[rank:], strides, sizes, strict=True)]
        after = [max(end - length - pad, 0) for end, length, pad in zip(ends, known[:rank], before, strict=True)]
    widths = [0] * 4 + [width for pair in zip(before, after, strict=True) for width in pair]
    dtype, divisor = node.dtype(), node.number("divisor_override")
    padded = op.nn.pad(x, widths) if any(widths) else x
    if is_float(dtype):
        means = _AVERAGE[rank](padded, sizes, strides=strides)
        return op.multiply(means, node.like(math.prod(sizes) / divisor, means))
    means = _AVERAGE[rank](op.astype(padded, f64), sizes, strides=strides)
    sums = op.round(op.multiply(means, node.like(math.prod(sizes), means)))
    return op.astype(op.trunc(op.divide(sums, node.like(divisor, sums))), dtype)


@converts(
    *(f"aten.max_pool{rank}d_with_indices_backward.default" for rank in (2, 3)),
    *(f"aten.adaptive_max_pool{rank}d_backward.default" for rank in (2, 3)),
)
def max_pool_backward(node: Node) -> Result:
    """Gradients added up at the element that was the greatest of each window."""
    rank, dims = _pool_rank(node), node.out_dims()
    lead = len(dims) - rank
    flat = [*dims[:lead], product(dims[lead:])]
    few = [*dims[:lead], product(node.shape("indices")[lead:])]
    where, gradients = (op.reshape(node.tensor(name), few) for name in ("indices", "grad_output"))
    found = op.scatter_elements(op.zeros(flat, node.out_dtype()), where, gradients, lead, "add")
    return op.reshape(found, dims)


@converts("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_backward(node: Node) -> Result:
    """Each gradient shared by the elements of its window."""
    rank = _pool_rank(node)
    if rank == 2 and not node.has("divisor_override"):
        sizes, strides = _windows(node)
        single = node.rank("self") == 3
        x, gradient = (
            op.expand_dims(each, [0]) if single else each for each in (node.tensor("self"), node.tensor("grad_output"))
        )
        made = op.grad.avg_pool2d_backward(
            x,
            gradient,
            sizes,
            strides=strides,
            padding=padding(node, 2),
            ceil_mode=node.flag("ceil_mode"),
            count_include_pad=node.flag("count_include_pad"),
        )
        return op.squeeze(made, [0]) if single else made
    sizes, before = each(node, "kernel_size", rank), padding(node, rank)[:rank]
    strides = each(node, "stride", rank) if node.integers("stride") else sizes
    with_padding, divisor = node.flag("count_include_pad"), node.has("divisor_override")

    def window(at: te.Expr, along: int) -> _Window:
        start = at * strides[along] - before[along]
        length = te.cast(node.shape("self")[along - rank], "index")
        end = te.minimum(start + sizes[along], length + before[along])
        inside = end - start if with_padding else te.minimum(end, length) - te.maximum(start, 0)
        return start, end, None if divisor else inside

    found = _shared(node, window)
    return op.divide(found, node.like(node.number("divisor_override"), found)) if divisor else found


@converts("aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(node: Node) -> Result:
    """Gradients of windows whose ends are rounded outward."""
    rank = _pool_rank(node)
    lengths, counts = node.shape("self")[-rank:], node.shape("grad_output")[-rank:]
    if all(count.constant_value == 1 for count in counts):
        gradient = node.tensor("grad_output")
        shared = op.divide(gradient, node.graph.dimension(product(lengths), node.out_dtype()))
        return op.broadcast_to(shared, node.out_dims())
    windows = [_adaptive(*pair) for pair in zip(lengths, counts, strict=True)]

    def window(at: te.Expr, along: int) -> _Window:
        start, end = windows[along].start(at), windows[along].end
        assert end is not None
        return start, end(at), end(at) - start

    return _shared(node, window)


_Window: TypeAlias = "tuple[te.Expr, te.Expr, te.Expr | None]"
"""Where a window begins and ends, and among how many elements it is shared; `None` for one each."""


def _shared(node: Node, window: Callable[[te.Expr, int], _Window]) -> Expr:
    """Gradients of sums or means over windows, of which each belongs to all elements of its window: a product with a
    matrix along each spatial dimension. `window` has the windows along each of them.
    """
    rank, dtype, found = _pool_rank(node), str(node.out_dtype()), node.tensor("grad_output")
    lengths, counts = node.shape("self")[-rank:], node.shape("grad_output")[-rank:]
    lead = node.rank("grad_output") - rank
    turned = [*range(lead), *range(lead + 1, lead + rank), lead]
    for along, (length, count) in enumerate(zip(lengths, counts, strict=True)):

        def share(at: te.Expr, element: te.Expr, along: int = along) -> te.Expr:
            start, end, among = window(at, along)
            part = te.const(1, dtype) if among is None else te.const(1, dtype) / te.cast(among, dtype)
            is_inside = te.logical_and(element >= start, element < end)
            return te.if_then_else(is_inside, part, te.const(0, dtype))

        def shares(count: Dim = count, length: Dim = length) -> te.Tensor:
            return te.compute((count, length), share, name="shares")

        found = op.matmul(op.permute_dims(found, turned), node.te(shares, name="shares"))
    return found


@converts("aten.fractional_max_pool2d.default", "aten.fractional_max_pool3d.default")
def fractional_max_pool(node: Node) -> Result:
    """The greatest elements, and their indices, of windows whose distances vary as samples between 0 and 1 say."""
    rank, shape, dims = _pool_rank(node), node.shape(), node.out_dims()
    x, samples = node.tensor("self"), node.tensor("random_samples", node.dtype())
    if len(shape) == rank + 1:
        x, shape, dims = op.expand_dims(x, [0]), (to_dim(1), *shape), [to_dim(1), *dims]
    sizes, lengths, counts = each(node, "kernel_size", rank), shape[2:], dims[2:]
    order = [1, 0] if rank == 2 else [0, 1, 2]

    def start(u: te.Tensor, i: Sequence[te.Expr], along: int) -> te.Expr:
        """Where a window begins; the last one ends with the data. As PyTorch, in the dtype of the data."""
        at, sample = i[2 + along], u[(*i[:2], order[along])]
        last = te.cast(lengths[along], "index") - sizes[along]
        steps = te.maximum(te.cast(counts[along], "index") - 1, 1)
        ratio = te.cast(last, u.dtype) / te.cast(steps, u.dtype)
        first = te.cast((te.cast(at, u.dtype) + sample) * ratio, "index") - te.cast(sample * ratio, "index")
        return te.if_then_else(at == te.cast(counts[along], "index") - 1, last, first)

    def inside(at: te.Expr) -> list[te.Expr]:
        return _unraveled(at, [Windows(lambda i: i, to_dim(size), 1) for size in sizes])

    def gathered(x: te.Tensor, u: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            position = [start(u, i, along) + by for along, by in enumerate(inside(i[-1]))]
            return x[(*i[:2], *position)]

        return te.compute((*dims, math.prod(sizes)), element, name="windows")

    def flattened(which: te.Tensor, u: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            found: te.Expr = te.cast(to_dim(0), "index")
            for along, by in enumerate(inside(te.cast(which[i], "index"))):
                found = found * te.cast(lengths[along], "index") + start(u, i, along) + by
            return te.cast(found, "i64")

        return te.compute(dims, element, name="indices")

    windows = node.te(gathered, x, samples, name="windows")
    where = node.te(flattened, op.argmax(windows, -1), samples, name="indices")
    return [op.reshape(op.max(windows, [-1]), node.out_dims()), op.reshape(where, node.out_dims(1))]


@converts(
    *(f"aten.adaptive_avg_pool{rank}d.default" for rank in _ADAPTIVE),
    "aten._adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool3d.default",
)
def adaptive_avg_pool(node: Node) -> Result:
    """Means over a number of windows that cover the data."""
    rank = _pool_rank(node)
    sizes = [dim.constant_value for dim in node.out_dims()[-rank:]]
    if sizes == [1] * rank:
        return op.mean(node.tensor("self"), list(range(-rank, 0)), keepdims=True)
    fixed = [size for size in sizes if size is not None]
    if len(fixed) < rank:
        lengths, counts = (dims[-rank:] for dims in (node.shape(), node.out_dims()))
        windows = [_adaptive(*pair) for pair in zip(lengths, counts, strict=True)]
        return node.te(_means(node, windows), node.tensor("self"), name="adaptive_avg_pool")
    return batched(node.tensor("self"), rank, lambda x: _ADAPTIVE[rank](x, fixed))


def _means(node: Node, windows: Sequence[Windows]) -> Callable[[te.Tensor], te.Tensor]:
    """The means of windows whose ends depend on sizes."""
    dims, dtype = node.out_dims(), str(node.dtype())
    lead = len(dims) - len(windows)

    def ends(along: Windows, at: te.Expr) -> te.Expr:
        assert along.end is not None
        return along.end(at)

    def kernel(x: te.Tensor) -> te.Tensor:
        def total(*i: te.Expr) -> te.Expr:
            inside = [te.reduce_axis(along.size, "r") for along in windows]
            position = [along.start(at) + by for along, at, by in zip(windows, i[lead:], inside, strict=True)]
            seen = [at < ends(along, o) for along, at, o in zip(windows, position, i[lead:], strict=True)]
            element = te.if_then_else(te.logical_and(*seen), x[(*i[:lead], *position)], te.const(0, dtype))
            return te.sum(element, inside)

        sums = te.compute(dims, total, name="sums")

        def mean(*i: te.Expr) -> te.Expr:
            counts = [ends(along, at) - along.start(at) for along, at in zip(windows, i[lead:], strict=True)]
            return sums[i] / te.cast(reduce(operator.mul, counts), dtype)

        return te.compute(dims, mean, name="adaptive_avg_pool")

    return kernel


@converts(*(f"aten.adaptive_max_pool{rank}d.default" for rank in _MAX))
def adaptive_max_pool(node: Node) -> Result:
    """The greatest elements of a number of windows that cover the data, and their indices in the flattened image."""
    rank = _pool_rank(node)
    lengths, counts = (dims[-rank:] for dims in (node.shape(), node.out_dims()))
    if not node.wants(1):
        if all(count.constant_value == 1 for count in counts):
            return [op.max(node.tensor("self"), list(range(-rank, 0)), keepdims=True), None]
        pairs = [(each.constant_value, count.constant_value) for each, count in zip(lengths, counts, strict=True)]
        sizes = [length // count for length, count in pairs if length and count and length % count == 0]
        if len(sizes) == rank:
            return [batched(node.tensor("self"), rank, lambda x: _MAX[rank](x, sizes, strides=sizes)), None]
    return _with_indices(node, [_adaptive(*pair) for pair in zip(lengths, counts, strict=True)])


def _adaptive(length: Dim, count: Dim) -> Windows:
    """Windows whose ends are rounded outward."""
    whole, many = te.cast(length, "index"), te.cast(count, "index")
    return Windows(
        start=lambda i: te.floordiv(i * whole, many),
        size=ceildiv(length, count) + 1,
        step=1,
        end=lambda i: te.ceildiv((i + 1) * whole, many),
    )
