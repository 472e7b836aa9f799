"""Tensors under other shapes, in another order, and padded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.sorting import scalar_as_vector
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum, mod, to_dim


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
    """Dimensions moved to other places."""
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
