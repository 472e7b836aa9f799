"""Tensors under other shapes, in another order, and padded; slices and selections; joining, cutting and repeating."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce, wraps

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import indices_within
from relax_dialect.frontend.torch.node import Converter, Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.struct_info.types import ShapeType
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum, mod, product, to_dim

END = 1 << 62
"""What is at or after this position stands for the end of a dimension."""


def scalar_as_vector(converter: Converter) -> Converter:
    """A converter along an axis, for which scalars are vectors of one element: the tensor, a source, an index."""

    @wraps(converter)
    def convert(node: Node) -> Result:
        if node.rank():
            return converter(node)
        scalars = [
            name for name in ("self", "source", "src", "index") if name in node.arguments and not node.rank(name)
        ]
        vectors = {name: op.reshape(node.tensor(name), [1]) for name in scalars}
        made = converter(replace(node, arguments={**node.arguments, **vectors}))
        if made is None or isinstance(made, Expr):
            return made if made is None else op.reshape(made, [])
        return [None if each is None else op.reshape(each, []) for each in made]

    return convert


@converts("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(node: Node) -> Result:
    """Every `step`-th element from a start to an end; the tensor itself if that is all."""
    axis, step = node.axis(), node.integer("step", 1)
    start, end = positions(node, node.shape()[axis])
    if start.constant_value == 0 and step == 1 and list(node.shape()) == node.out_dims():
        return node.tensor("self")
    return op.strided_slice(node.tensor("self"), [axis], [start], [end], [step])


def positions(node: Node, length: Dim) -> tuple[Dim, Dim]:
    """The start and end of a slice of a dimension."""
    end = node.value("end")
    return node.dim("start"), length if end is None or (isinstance(end, int) and end >= END) else node.dim("end")


@converts("aten.narrow.default", "aten.narrow_copy.default")
def narrow(node: Node) -> Result:
    """A number of elements from a start on."""
    start = node.dim("start")
    return op.strided_slice(node.tensor("self"), [node.axis()], [start], [start + node.dim("length")])


@converts("aten.select.int", "aten.select_copy.int")
def select(node: Node) -> Result:
    """The slice at one index of an axis."""
    axis, index = node.axis(), node.dim("index")
    end = to_dim(node.shape()[axis]) if index.constant_value == -1 else index + 1
    return op.squeeze(op.strided_slice(node.tensor("self"), [axis], [index], [end]), [axis])


@converts("aten.index_select.default")
@scalar_as_vector
def index_select(node: Node) -> Result:
    """The slices at indices along an axis."""
    index = indices(node, "index", node.axis())
    return op.take(node.tensor("self"), index if index.ndim else op.expand_dims(index, [0]), node.axis())


def indices(node: Node, name: str, axis: int, of: str = "self") -> Expr:
    """An argument whose elements are indices along an axis of another one, which PyTorch counts from the front only."""
    shape = node.shape(of)
    extent = shape[axis] if shape else constant(1)
    return indices_within(node.bb, node.tensor(name), [extent], f"'{node.name}' {name}", from_back=False)


@converts("aten.take.default")
def take(node: Node) -> Result:
    """Elements at offsets of the flattened tensor."""
    x = op.flatten(node.tensor("self"))
    found = indices_within(node.bb, node.tensor("index"), [product(node.shape())], "'take' index")
    return op.take(x, found, 0)


@converts("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(node: Node) -> Result:
    """Elements of memory, as strides say; the tensor is taken as it lies in memory if nothing was moved."""

    def kernel(x: te.Tensor) -> te.Tensor:
        return te.compute(node.out_dims(), lambda *i: x[_offset(node, i)], name="as_strided")

    return node.te(kernel, op.flatten(node.tensor("self")), name="as_strided")


@converts("aten.as_strided_scatter.default")
def as_strided_scatter(node: Node) -> Result:
    """The tensor, in which elements of memory, as strides say, are those of another."""
    x, dims = node.tensor("self"), node.shape("src")

    def kernel() -> te.Tensor:
        return te.compute(dims, lambda *i: te.cast(_offset(node, i), "i64"), name="offsets")

    offsets = op.flatten(node.te(kernel, name="offsets"))
    written = op.scatter_elements(op.flatten(x), offsets, op.flatten(node.tensor("src", node.dtype())), 0)
    return op.reshape(written, node.out_dims())


def _offset(node: Node, indices: Sequence[te.Expr]) -> te.Expr:
    """Where an element is in memory, by the node's strides and offset."""
    found: te.Expr = te.cast(node.dim("storage_offset"), "index")
    for at, stride in zip(indices, node.dims("stride"), strict=True):
        found = found + at * te.cast(stride, "index")
    return found


@converts("aten.unfold.default", "aten.unfold_copy.default")
def unfold(node: Node) -> Result:
    """Windows that slide along a dimension, their elements as last dimension."""
    axis, step = node.axis("dimension"), node.integer("step")

    def kernel(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            return x[(*i[:axis], i[axis] * step + i[-1], *i[axis + 1 : -1])]

        return te.compute(node.out_dims(), element, name="unfold")

    x = node.tensor("self")
    return node.te(kernel, x if node.rank() else op.reshape(x, [1]), name="unfold")


@converts(
    "aten._reshape_copy.default",
    "aten._unsafe_view.default",
    "aten.flatten.using_ints",
    "aten.reshape.default",
    "aten.reshape_as.default",
    "aten.unflatten.int",
    "aten.view.default",
    "aten.view_as.default",
    "aten.view_copy.default",
)
def reshape(node: Node) -> Result:
    """The elements under another shape, which PyTorch says."""
    return op.reshape(node.tensor("self"), node.out_dims())


@converts("aten.resize.default")
def resize(node: Node) -> Result:
    """The first elements under another shape; what there is more of, PyTorch leaves unset, and here is 0."""
    dims = node.out_dims()

    def kernel(x: te.Tensor) -> te.Tensor:
        count = x.shape[0]

        def element(*i: te.Expr) -> te.Expr:
            position = te.cast(te.const(0, "i64"), "index")
            for at, dim in zip(i, dims, strict=True):
                position = position * dim + at
            return te.if_then_else(position < count, x[te.minimum(position, count - 1)], te.const(0, x.dtype))

        return te.compute(dims, element, name="resize")

    return node.te(kernel, op.flatten(node.tensor("self")), name="resize")


@converts("aten.permute.default", "aten.permute_copy.default")
def permute(node: Node) -> Result:
    """The dimensions in another order."""
    return op.permute_dims(node.tensor("self"), node.axes("dims")) if node.rank() else node.tensor("self")


@converts("aten.transpose.int", "aten.transpose_copy.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(node: Node) -> Result:
    """Two dimensions swapped."""
    order = list(range(node.rank()))
    names = ("dim0", "dim1") if node.has("dim0") else ("axis0", "axis1")
    one, other = (node.axis(name) for name in names)
    if one == other:
        return node.tensor("self")
    order[one], order[other] = other, one
    return op.permute_dims(node.tensor("self"), order)


@converts("aten.t.default", "aten.t_copy.default", "aten.numpy_T.default", "aten.mT.default")
def matrix_transpose(node: Node) -> Result:
    """Rows as columns."""
    rank = node.rank()
    if rank < 2:
        return node.tensor("self")
    last = [*range(rank - 2), rank - 1, rank - 2]
    return op.permute_dims(node.tensor("self"), list(range(rank))[::-1] if node.name == "numpy_T" else last)


@converts("aten.movedim.int", "aten.movedim.intlist")
def movedim(node: Node) -> Result:
    """Dimensions moved to other positions."""
    source, destination = node.axes("source"), node.axes("destination")
    order = [axis for axis in range(node.rank()) if axis not in source]
    for position, axis in sorted(zip(destination, source, strict=True)):
        order.insert(position, axis)
    return op.permute_dims(node.tensor("self"), order)


@converts(
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.squeeze_copy.default",
    "aten.squeeze_copy.dim",
    "aten.squeeze_copy.dims",
)
def squeeze(node: Node) -> Result:
    """Without dimensions of 1; other dimensions that are named stay."""
    dims, names_none = node.shape(), "dim" in node.arguments and not node.integers("dim")
    axes = [] if names_none else [axis for axis in node.axes() if dims and dims[axis].constant_value == 1]
    return op.squeeze(node.tensor("self"), axes) if axes else node.tensor("self")


@converts("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(node: Node) -> Result:
    """With a new dimension of 1."""
    return op.expand_dims(node.tensor("self"), [node.axis(new=1)])


@converts("aten.expand.default", "aten.expand_as.default", "aten.expand_copy.default", "aten.broadcast_to.default")
def expand(node: Node) -> Result:
    """Repeated along dimensions of 1."""
    dims = node.out_dims()
    return node.tensor("self") if list(node.shape()) == dims else op.broadcast_to(node.tensor("self"), dims)


@converts("aten.flip.default", "aten.fliplr.default", "aten.flipud.default")
@scalar_as_vector
def flip(node: Node) -> Result:
    """The elements in reverse order along axes."""
    x, fixed = node.tensor("self"), {"fliplr": [1], "flipud": [0]}.get(node.name)
    for axis in fixed or (node.axes("dims") if node.integers("dims") else []):
        x = op.flip(x, axis)
    return x


@converts("aten.roll.default")
def roll(node: Node) -> Result:
    """The elements moved along axes, those at the end to the front; without axes, of the flattened tensor."""
    x, shifts = node.tensor("self"), node.dims("shifts")
    if not node.integers("dims"):
        return op.reshape(_rolled(op.flatten(x), shifts[0], 0), node.out_dims())
    for shift, axis in zip(shifts, node.axes("dims"), strict=True):
        x = _rolled(x, shift, axis)
    return x


def _rolled(x: Expr, shift: Dim, axis: int) -> Expr:
    """By the remainder of the shift, if the dimension is known; a symbolic one may be shorter than the shift."""
    length = None if x.shape is None else x.shape[axis]
    if length is None:
        raise Refusal("a dimension of unknown size cannot be rolled")
    # Nothing is moved along a dimension of 0, which is no divisor.
    cut = mod(constant(0) - shift, maximum(length, constant(1)))
    front = op.strided_slice(x, [axis], [cut], [length])
    return op.concat([front, op.strided_slice(x, [axis], [0], [cut])], axis)


@converts("aten.constant_pad_nd.default")
def constant_pad(node: Node) -> Result:
    """More elements of one value; fewer where a number is negative."""
    return _pad(node, node.dims("pad"), "constant", node.exact_number("value"))


@converts("aten.pad.default")
def pad(node: Node) -> Result:
    """More elements of one value, mirrored, of the edge, or from the other end."""
    return _pad(node, node.dims("pad"), node.text("mode", "constant"), node.exact_number("value"))


@converts(*(f"aten.{mode}_pad{rank}d.default" for mode in ("reflection", "replication") for rank in (1, 2, 3)))
def edge_pad(node: Node) -> Result:
    """More elements, mirrored or of the edge."""
    return _pad(node, node.dims("padding"), "reflect" if "reflection" in node.name else "replicate", 0.0)


def _pad(node: Node, widths: list[Dim], mode: str, value: float) -> Expr:
    """PyTorch lists widths from the last dimension on."""
    x, pairs = node.tensor("self"), list(zip(widths[::2], widths[1::2], strict=True))
    ordered = [(to_dim(0), to_dim(0))] * (node.rank() - len(pairs)) + pairs[::-1]
    fixed = [width.constant_value for pair in ordered for width in pair]
    lengths = [length.constant_value for length in node.shape()]
    # As PyTorch has it, the edge is there, too, if that side cuts everything off.
    cuts_all = mode == "replicate" and any(
        length is not None and width.constant_value is not None and width.constant_value <= -length
        for pair, length in zip(ordered, lengths, strict=True)
        for width in pair
    )
    if None in fixed or cuts_all:
        return _pad_by_sizes(node, ordered, mode, value)
    return op.nn.pad(x, [each for each in fixed if each is not None], mode, value) if any(fixed) else x


def _pad_by_sizes(node: Node, widths: list[tuple[Dim, Dim]], mode: str, value: float) -> Expr:
    """With widths that depend on sizes."""
    shape, padded = node.shape(), [before != to_dim(0) or after != to_dim(0) for before, after in widths]

    def kernel(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            at = [each - te.cast(before, "index") for each, (before, _) in zip(i, widths, strict=True)]
            ends = [te.cast(length, "index") for length in shape]
            if mode == "constant":
                cases = [(here >= 0, here < end) for here, end, pads in zip(at, ends, padded, strict=True) if pads]
                inside = reduce(te.logical_and, [each for case in cases for each in case])
                return te.if_then_else(inside, x[tuple(at)], te.const(value, str(node.dtype())))
            fold = _FOLDED[mode]
            return x[tuple(fold(a, end) if pads else a for a, end, pads in zip(at, ends, padded, strict=True))]

        return te.compute(node.out_dims(), element, name="pad")

    return node.te(kernel, node.tensor("self"), name="pad")


def _mirrored(at: te.Expr, end: te.Expr) -> te.Expr:
    inner = te.if_then_else(at < 0, -at, at)
    return te.if_then_else(inner >= end, (end - 1) * 2 - inner, inner)


_FOLDED: Mapping[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    "reflect": _mirrored,
    "replicate": lambda at, end: te.maximum(te.minimum(at, end - 1), 0),
    "circular": lambda at, end: te.floormod(at + end, end),
}
"""The index of the element that an index out of range stands for."""


@converts("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(node: Node) -> Result:
    """Tensors one after the other; what has rank 1 and no elements does not count."""
    rank = len(node.out_dims())
    parts = [each for each in node.tensors("tensors", node.out_dtype()) if each.ndim == rank]
    return parts[0] if len(parts) == 1 else op.concat(parts, node.integer("dim") % rank)


@converts("aten.stack.default")
def stack(node: Node) -> Result:
    """Tensors along a new axis."""
    return op.stack(node.tensors("tensors", node.out_dtype()), node.integer("dim"))


@converts("aten.split.Tensor", "aten.split_copy.Tensor", "aten.chunk.default")
def split(node: Node) -> Result:
    """Parts of one size, the last one smaller if need be."""
    sizes = [node.out_dims(index)[node.axis()] for index in range(len(node.results))]
    return _parts(node, sizes)


@converts("aten.split_with_sizes.default", "aten.split_with_sizes_copy.default", "aten.split.sizes")
def split_with_sizes(node: Node) -> Result:
    """Parts of given sizes."""
    return _parts(node, node.dims("split_sizes" if node.has("split_sizes") else "split_size"))


@converts("aten.tensor_split.indices", "aten.tensor_split.sections")
def tensor_split(node: Node) -> Result:
    """Parts whose sizes PyTorch says."""
    return split(node)


def _parts(node: Node, sizes: list[Dim]) -> Result:
    """The tensor cut into parts of these sizes along the axis of the node."""
    if len(sizes) == 1:
        return [node.tensor("self")]
    ends = [sum(sizes[: at + 1], to_dim(0)) for at in range(len(sizes) - 1)]
    return list(op.split(node.tensor("self"), indices=ends, axis=node.axis()))


@converts("aten.unbind.int", "aten.unbind_copy.int")
def unbind(node: Node) -> Result:
    """The slices along an axis."""
    axis, count = node.axis(), len(node.results)
    if count == 0:
        return []
    parts = op.split(node.tensor("self"), sections=count, axis=axis) if count > 1 else [node.tensor("self")]
    return [op.squeeze(part, [axis]) for part in parts]


@converts("aten.repeat.default", "aten.tile.default")
def repeat(node: Node) -> Result:
    """The tensor laid side by side."""
    times = node.dims("repeats" if node.has("repeats") else "dims")
    fixed = [each.constant_value for each in times]
    if None not in fixed:
        return op.tile(node.tensor("self"), [each for each in fixed if each is not None])
    rank = max(len(times), node.rank())
    shape = [to_dim(1)] * (rank - node.rank()) + list(node.shape())
    times = [to_dim(1)] * (rank - len(times)) + times
    return _spread(node, shape, [[many, each] for many, each in zip(times, shape, strict=True)], new=0)


@converts("aten.repeat_interleave.self_int")
def repeat_interleave(node: Node) -> Result:
    """Each element several times along an axis; without an axis, of the flattened tensor."""
    axis = node.axis() if node.has("dim") else None
    times = node.dim("repeats")
    if times.constant_value is not None:
        return op.repeat(node.tensor("self"), times.constant_value, axis)
    shape = list(node.shape()) if axis is not None else [product(node.shape())]
    pairs = [[each, times if at == (axis or 0) else to_dim(1)] for at, each in enumerate(shape)]
    return _spread(node, shape, pairs, new=1)


def _spread(node: Node, shape: list[Dim], pairs: list[list[Dim]], *, new: int) -> Expr:
    """The tensor of a shape with each dimension as a pair of itself and a number of repeats, at index `new` of it."""
    split = [pair[1 - new] if at != new else to_dim(1) for pair in pairs for at in (0, 1)]
    spread = op.broadcast_to(op.reshape(node.tensor("self"), split), [each for pair in pairs for each in pair])
    return op.reshape(spread, [first * second for first, second in pairs])


@converts("aten.repeat_interleave.Tensor")
def indices_repeated(node: Node) -> Result:
    """The index of each element as often as the element says."""
    times = node.tensor("repeats", i64)
    ends = op.cumsum(times, 0)
    (count,) = node.out_dims()
    length = op.tensor_to_shape(op.reshape(op.sum(times), [1]))
    node.graph.match(length, ShapeType([count]))
    return node.matched(op.bucketize(op.arange(0, count, 1, dtype=i64), ends, right=True), node.out_dtype())


@converts("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(node: Node) -> Result:
    """Vectors, or scalars, as coordinates of a grid."""
    vectors = [op.reshape(each, [1]) if each.ndim == 0 else each for each in node.tensors("tensors")]
    return list(op.meshgrid(vectors, node.text("indexing", "ij")))
