"""Searching, counting, sorting, and tensors as sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import i1, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.manipulation import indices, scalar_as_vector
from relax_dialect.frontend.torch.node import Node, Result, converts, promoted
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.inference import ZERO
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, broadcast, constant, product, symbol, to_dim
from tir_dialect.dtypes import is_float


@converts("aten.sort.default", "aten.sort.stable")
@scalar_as_vector
def sort(node: Node) -> Result:
    """The elements in order along an axis, and where they were."""
    x, axis, descending = node.tensor("self"), node.axis(), node.flag("descending")
    if not node.wants(1):
        return [op.sort(x, axis, descending=descending), None]
    order = op.argsort(x, axis, descending=descending)
    return [op.gather_elements(x, order, axis), order]


@converts("aten.argsort.default", "aten.argsort.stable")
@scalar_as_vector
def argsort(node: Node) -> Result:
    """The indices of the elements in order."""
    return op.argsort(node.tensor("self"), node.axis(), descending=node.flag("descending"))


@converts("aten.msort.default")
@scalar_as_vector
def msort(node: Node) -> Result:
    """The elements in order along the first axis."""
    return op.sort(node.tensor("self"), 0)


@converts("aten.topk.default")
@scalar_as_vector
def topk(node: Node) -> Result:
    """The greatest or least elements in order, and where they are."""
    return list(op.topk(node.tensor("self"), node.dim("k"), node.axis(), smallest=not node.flag("largest")))


@converts("aten.kthvalue.default")
@scalar_as_vector
def kthvalue(node: Node) -> Result:
    """The element that is at position `k`, counted from 1, when they are in order, and where it is."""
    x, axis = node.tensor("self"), node.axis()
    position = op.strided_slice(op.argsort(x, axis), [axis], [node.integer("k") - 1], [node.integer("k")])
    return _found(node, x, axis, position)


@converts("aten.median.dim", "aten.median.default", "aten.nanmedian.dim", "aten.nanmedian.default")
@scalar_as_vector
def median(node: Node) -> Result:
    """The middle element, of two the lesser, and along an axis also where it is; `nanmedian` is that of the numbers."""
    is_whole = "dim" not in node.arguments
    x, axis = (op.flatten(node.tensor("self")), 0) if is_whole else (node.tensor("self"), node.axis())
    where = op.gather_elements(op.argsort(x, axis), _middle(node, x, axis), axis)
    return op.squeeze(op.gather_elements(x, where, 0), [0]) if is_whole else _found(node, x, axis, where)


@converts("aten.mode.default")
@scalar_as_vector
def mode(node: Node) -> Result:
    """The most frequent element along an axis, of several the least, and where it is last."""
    axis, x = node.axis(), node.tensor("self")
    length, ordered = node.shape()[axis], op.sort(x, axis)

    def times(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            k = te.reduce_axis(x.shape[axis], "k")
            is_same = x[(*i[:axis], k, *i[axis + 1 :])] == x[i]
            return te.sum(te.if_then_else(is_same, te.const(1, "i64"), te.const(0, "i64")), k)

        return te.compute(x.shape, element, name="times")

    first = op.argmax(node.te(times, ordered), axis, keepdims=True)
    same = op.equal(x, op.gather_elements(ordered, first, axis))
    steps = op.arange(0, length, 1, dtype=i64)
    positions = op.reshape(steps, [length if at == axis else 1 for at in range(node.rank())])
    where = op.max(op.where(same, positions, node.const(0, i64)), [axis], keepdims=True)
    return _found(node, x, axis, where)


def _middle(node: Node, x: Expr, axis: int) -> Expr:
    """The index of the median when elements are in order, in which NaN are last; a median is NaN if an element is."""
    assert x.shape is not None
    length = x.shape[axis]
    assert length is not None
    ones = [to_dim(1 if at == axis else each) for at, each in enumerate(x.shape) if each is not None]
    count = op.broadcast_to(node.graph.dimension(to_dim(length), i64), ones)
    one, two = node.const(1, i64), node.const(2, i64)
    numbers = count
    if is_float(node.dtype()):
        numbers = op.subtract(count, op.sum(op.astype(op.isnan(x), i64), [axis], keepdims=True))
    half = op.floor_divide(op.subtract(op.maximum(numbers, one), one), two)
    if node.name == "nanmedian" or numbers is count:
        return half
    return op.where(op.equal(numbers, count), half, numbers)  # the first NaN


def _found(node: Node, x: Expr, axis: int, where: Expr) -> Result:
    """The elements at indices along an axis, and the indices."""
    found = op.gather_elements(x, where, axis)
    return [found, where] if node.flag("keepdim") else [op.squeeze(found, [axis]), op.squeeze(where, [axis])]


@converts("aten.argmax.default", "aten.argmin.default")
@scalar_as_vector
def argmax(node: Node) -> Result:
    """The index of the greatest or least element along an axis, or of all."""
    function = op.argmax if node.name == "argmax" else op.argmin
    if node.has("dim"):
        return function(node.tensor("self"), node.axis(), keepdims=node.flag("keepdim"))
    found = function(op.flatten(node.tensor("self")), 0)
    return op.reshape(found, node.out_dims()) if node.flag("keepdim") else found


@converts("aten.bucketize.Tensor", "aten.searchsorted.Tensor", "aten.bucketize.Scalar", "aten.searchsorted.Scalar")
def bucketize(node: Node) -> Result:
    """The interval between ascending boundaries in which each element lies."""
    name = "boundaries" if node.has("boundaries") else "sorted_sequence"
    dtype = promoted([node.value("self"), node.value(name)])
    right = node.flag("right") or node.text("side") == "right"
    x, boundaries = node.tensor("self", dtype), node.tensor(name, dtype)
    if node.has("sorter"):
        boundaries = op.gather_elements(
            boundaries, indices(node, "sorter", node.rank(name) - 1, name), node.rank(name) - 1
        )
    if node.rank(name) == 1:
        return node.matched(op.bucketize(x, boundaries, right=right), node.out_dtype())
    return node.matched(node.te(_of_rows(right=right), x, boundaries, name="searchsorted"), node.out_dtype())


def _of_rows(*, right: bool) -> Callable[[te.Tensor, te.Tensor], te.Tensor]:
    """How many boundaries of a row are before each element of it; all are before NaN."""

    def kernel(x: te.Tensor, boundaries: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            k = te.reduce_axis(boundaries.shape[-1], "k")
            value, bound = x[i], boundaries[(*i[:-1], k)]
            is_after = bound > value if right else bound >= value
            return te.sum(te.if_then_else(is_after, te.const(0, "i64"), te.const(1, "i64")), k)

        return te.compute(x.shape, element, name="searchsorted")

    return kernel


@converts("aten.nonzero.default")
def nonzero(node: Node) -> Result:
    """The indices of the elements that are not zero, one in each row."""
    return op.permute_dims(op.nonzero(node.tensor("self")), [1, 0])


@converts("aten.nonzero_static.default")
def nonzero_static(node: Node) -> Result:
    """The indices of so many elements that are not zero; rows of a number follow where there are fewer."""
    size, dims = node.dim("size"), node.out_dims()
    found = op.permute_dims(op.nonzero(node.tensor("self")), [1, 0])
    rest = op.full(list(dims), node.const(node.integer("fill_value", -1), i64))
    return node.matched(op.strided_slice(op.concat([found, rest], 0), [0], [0], [size]), i64)


@converts("aten.masked_select.default")
def masked_select(node: Node) -> Result:
    """The elements at which a mask is true."""
    x, mask = (_broadcast(node, name) for name in ("self", "mask"))
    return op.take(op.flatten(x), where_true(node, op.flatten(mask)), 0)


def _broadcast(node: Node, name: str) -> Expr:
    """A tensor or its mask, in the shape that both have together."""
    shapes = node.shape(), node.shape("mask")
    rank = max(map(len, shapes))
    aligned = [(constant(1),) * (rank - len(shape)) + shape for shape in shapes]
    dims = [broadcast(*sizes) for sizes in zip(*aligned, strict=True)]
    return node.tensor(name) if list(node.shape(name)) == dims else op.broadcast_to(node.tensor(name), dims)


def where_true(node: Node, mask: Expr) -> Expr:
    """The positions at which a mask of rank 1 is true."""
    name = node.bb.fresh_symbol("k")
    return op.squeeze(node.graph.match(op.nonzero(mask), TensorType([1, symbol(name)], i64)), [0])


@converts("aten._unique2.default", "aten.unique_dim.default")
def unique(node: Node) -> Result:
    """The different elements, or slices along an axis, in ascending order."""
    axis = node.axis() if node.has("dim") else None
    values, inverse, counts = op.unique(node.tensor("self"), axis, return_inverse=True, return_counts=True)
    shaped = op.reshape(inverse, list(node.shape())) if axis is None else inverse
    return [values, shaped if node.wants(1) else None, counts if node.wants(2) else None]


@converts("aten.unique_consecutive.default")
def unique_consecutive(node: Node) -> Result:
    """The elements, or slices along an axis, that differ from the one before."""
    is_flat = not node.has("dim")
    x, axis = (op.flatten(node.tensor("self")), 0) if is_flat else (node.tensor("self"), node.axis())
    length = product(node.shape()) if is_flat else node.shape()[axis]
    begins = node.te(_differs_from_before(axis), x, name="begins")
    at = where_true(node, begins)
    inverse = counts = None
    if node.wants(1):
        inverse = op.subtract(op.cumsum(op.astype(begins, i64), 0), node.const(1, i64))
        inverse = op.reshape(inverse, list(node.shape())) if is_flat else inverse
    if node.wants(2):
        counts = node.te(_lengths(length), at, name="lengths")
    return [op.take(x, at, axis), inverse, counts]


def _differs_from_before(axis: int) -> Callable[[te.Tensor], te.Tensor]:
    def kernel(x: te.Tensor) -> te.Tensor:
        others = [te.reduce_axis(extent, "r") for at, extent in enumerate(x.shape) if at != axis]

        def element(i: te.Expr) -> te.Expr:
            here, before = ([*others[:axis], at, *others[axis:]] for at in (i, te.maximum(i - 1, 0)))
            differs = te.if_then_else(x[tuple(here)] == x[tuple(before)], te.const(0, "i32"), te.const(1, "i32"))
            return te.sum(differs, others) if others else differs

        def begins(i: te.Expr) -> te.Expr:
            return te.logical_or(i == 0, counts[i] > 0)

        counts = te.compute((x.shape[axis],), element, name="differences")
        return te.compute(counts.shape, begins, name="begins")

    return kernel


def _lengths(length: Dim) -> Callable[[te.Tensor], te.Tensor]:
    """From each start to the next one, the last to the end."""

    def kernel(starts: te.Tensor) -> te.Tensor:
        count = starts.shape[0]

        def element(i: te.Expr) -> te.Expr:
            after = starts[te.minimum(i + 1, count - 1)]
            return te.if_then_else(i + 1 < count, after, te.cast(length, "i64")) - starts[i]

        return te.compute((count,), element, name="lengths")

    return kernel


@converts("aten.isin.Tensor_Tensor")
def isin(node: Node) -> Result:
    """Whether elements are among others."""
    dtype = promoted([node.value("elements"), node.value("test_elements")])
    rank = node.rank("elements")
    x = op.expand_dims(node.tensor("elements", dtype), [rank])
    same = op.equal(x, op.flatten(node.tensor("test_elements", dtype)))
    found = op.astype(op.max(op.astype(same, "ui8"), [rank]), "i1")
    return op.logical_not(found) if node.flag("invert") else found


@converts("aten.histc.default")
def histc(node: Node) -> Result:
    """How many elements are in each of so many intervals of one width; the last one has its end."""
    x, bins = op.flatten(node.tensor("self")), node.integer("bins", 100)
    low, high = _range(node, x)
    width = op.subtract(high, low)
    inside = op.logical_and(op.greater_equal(x, low), op.less_equal(x, high))
    at = op.divide(op.multiply(op.subtract(x, low), node.like(bins, x)), width)
    at = op.minimum(op.astype(op.where(inside, at, node.like(0, x)), i64), node.const(bins - 1, i64))
    at = op.where(inside, at, node.const(bins, i64))
    ones = op.where(inside, node.like(1, x), node.like(0, x))
    return op.strided_slice(added_at(node, at, ones, to_dim(bins + 1)), [0], [0], [bins])


def _range(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """The ends of all intervals: those of the data where both are equal, and 1 apart where these are."""
    ends = node.exact_number("min"), node.exact_number("max")
    if ends[0] != ends[1]:
        return node.like(ends[0], x), node.like(ends[1], x)
    low, high = op.min(x), op.max(x)
    same, one = op.equal(low, high), node.like(1, x)
    return op.where(same, op.subtract(low, one), low), op.where(same, op.add(high, one), high)


@converts("aten.histogram.bin_ct", "aten.histogram.bins_tensor")
def histogram(node: Node) -> Result:
    """How many elements are in each interval, or the sums of their weights, and the ends of the intervals."""
    x = op.flatten(node.tensor("self"))
    if node.has("range") or isinstance(node.value("bins"), int):
        edges = _edges(node, x, node.integer("bins", 100), node.value("range"))
    else:
        edges = node.tensor("bins")
    return [_in_intervals(node, [x], [edges]), edges]


@converts("aten._histogramdd_bin_edges.default")
def edges_of_columns(node: Node) -> Result:
    """The ends of the intervals of each column."""
    return _edges_of_columns(node, _columns(node))


@converts("aten._histogramdd_from_bin_cts.default", "aten._histogramdd_from_bin_tensors.default")
def histogram_of_columns(node: Node) -> Result:
    """How many rows are in each box of intervals, one of each column."""
    columns = _columns(node)
    is_given = node.operator.endswith("tensors.default")
    return _in_intervals(node, columns, node.tensors("bins") if is_given else _edges_of_columns(node, columns))


def _columns(node: Node) -> list[Expr]:
    """The last dimension's elements, each of all others."""
    *lead, count = node.shape()
    if count.constant_value is None:
        raise Refusal("a number of columns that depends on sizes is not supported")
    flat = op.reshape(node.tensor("self"), [product(lead), count])
    return [op.take(flat, node.const(at, i64), 1) for at in range(count.constant_value)]


def _edges_of_columns(node: Node, columns: Sequence[Expr]) -> list[Expr]:
    bins, ends = node.integers("bins"), node.value("range")
    return [
        _edges(node, x, count, None if ends is None else ends[2 * at : 2 * at + 2])
        for at, (x, count) in enumerate(zip(columns, bins, strict=True))
    ]


def _edges(node: Node, x: Expr, bins: int, ends: Sequence[float] | None) -> Expr:
    """The ends of so many intervals of one width, which cover the data if no range is given."""
    low, high = _covered(node, x) if ends is None else (node.like(float(each), x) for each in ends)
    same, half = op.equal(low, high), node.like(0.5, x)
    low, high = op.where(same, op.subtract(low, half), low), op.where(same, op.add(high, half), high)
    steps, width = np.arange(bins + 1), op.divide(op.subtract(high, low), node.like(bins, x))
    from_low = op.add(low, op.multiply(node.const(steps, node.out_dtype()), width))
    from_high = op.subtract(high, op.multiply(node.const(bins - steps, node.out_dtype()), width))
    return op.where(node.const(steps < (bins + 1) // 2, i1), from_low, from_high)


def _covered(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """The ends of the data; 0 and 1 if there is none."""
    if isinstance(x.type, TensorType) and x.type.known_dims is not None and ZERO in x.type.known_dims:
        return node.like(0, x), node.like(1, x)
    return op.min(x), op.max(x)


def _in_intervals(node: Node, columns: Sequence[Expr], edges: Sequence[Expr]) -> Expr:
    """Counts, or sums of weights, by intervals; the last one of each column has its end."""
    dtype, dims = node.out_dtype(), list(node.out_dims())
    at: Expr | None = None
    inside: Expr | None = None
    for x, ends, count in zip(columns, edges, dims, strict=True):
        last = op.take(ends, node.graph.dimension(count, i64), 0)
        number = node.graph.dimension(count, i64)
        found = op.subtract(op.bucketize(x, ends, right=True), node.const(1, i64))
        found = op.where(op.equal(x, last), op.subtract(number, node.const(1, i64)), found)
        within = op.logical_and(op.greater_equal(found, node.const(0, i64)), op.less_equal(x, last))
        found = op.where(within, found, node.const(0, i64))
        at = found if at is None else op.add(op.multiply(at, number), found)
        inside = within if inside is None else op.logical_and(inside, within)
    assert at is not None
    assert inside is not None
    zero = node.const(0, dtype)
    weights = node.const(1, dtype) if not node.has("weight") else op.flatten(node.tensor("weight", dtype))
    counts = op.reshape(added_at(node, at, op.where(inside, weights, zero), product(dims)), dims)
    if not node.flag("density"):
        return counts
    for axis, ends in enumerate(edges):
        many = dims[axis]
        widths = op.subtract(*(op.strided_slice(ends, [0], [by], [many + by]) for by in (1, 0)))
        others = [each for each in range(len(dims)) if each != axis]
        counts = op.divide(counts, op.expand_dims(widths, others) if others else widths)
    return op.divide(counts, op.sum(op.where(inside, weights, zero)))


@converts("aten.bincount.default")
def bincount(node: Node) -> Result:
    """How often each number from 0 on comes up, or the sum of the weights where it does."""
    x, (count,) = node.tensor("self", i64), node.out_dims()
    least = node.const([node.integer("minlength") - 1], i64)
    length = op.add(op.max(op.concat([x, least], 0)), node.const(1, i64))
    node.graph.match(op.tensor_to_shape(op.reshape(length, [1])), ShapeType([count]))
    dtype = node.out_dtype()
    weights = node.optional("weights", dtype)
    return added_at(node, x, op.full(list(node.shape()), node.const(1, dtype)) if weights is None else weights, count)


def added_at(node: Node, at: Expr, values: Expr, count: Dim) -> Expr:
    """Sums of values by the index that each has, of `count` indices."""
    assert values.dtype is not None
    return op.index_put(op.zeros([count], values.dtype), values, [at], accumulate=True)
