"""Shapes: what is read from them, and tensors under other ones; padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.formulas import filled, surrounded
from relax_dialect.frontend.edge_cases import distinct_axes, indices_within
from relax_dialect.frontend.onnx.node import Node, Result, converts, from_front
from relax_dialect.frontend.onnx.values import Refusal, Value
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, broadcast, ceildiv, constant, floordiv, product, symbol, total
from tir_dialect.te.nodes import IterKind


def objects(dims: Sequence[Dim]) -> np.ndarray:
    """Dimensions as an array that is known while importing."""
    made = np.empty(len(dims), object)
    made[:] = list(dims)
    return made


@converts("Shape")
def shape(node: Node) -> Result:
    """The dimensions, or a range of them."""
    dims = node.shape()
    start, end = node.integer("start"), node.attributes.get("end")
    return Value.of(objects(dims[slice(start, end)]), node.bb.const(np.int64(0)).dtype)


@converts("Size")
def size(node: Node) -> Result:
    """The number of elements."""
    made = np.empty((), object)
    made[()] = product(node.shape())
    return Value.of(made, node.bb.const(np.int64(0)).dtype)


@converts("Reshape")
def reshape(node: Node) -> Result:
    """The elements under another shape: 0 keeps a dimension, -1 is what is left."""
    node.require_list(1, "the shape")
    wanted, allow_zero = node.dims(1), bool(node.integer("allowzero"))
    old = node.shape()
    if wanted is not None:
        dims = reshaped(old, wanted, allow_zero)
        # `Refusal` that says where the shape comes from if it has another number of elements for all sizes.
        origin = "a constant of the model" if node.ints(1) is not None else "computed from sizes"
        count, wanted = product(old), product(dims)
        if DEFAULT_PROVER.equal(count, wanted) is False:
            before, after = (f"[{', '.join(map(str, shape))}]" for shape in (old, dims))
            raise Refusal(
                f"cannot reshape {before}, {count} elements, to {after}, {wanted} elements; that shape is {origin}"
            )
        return op.reshape(node[0], dims)
    rank = node.shape(1)[0].constant_value
    hint = node.hint()
    if rank is None:
        rank = None if hint is None or hint.dims is None else len(hint.dims)
    if rank is None:
        raise Refusal("the rank of the result is not known while importing")
    dims = node.run_time_dims(_resolved(node, old, allow_zero), node.hinted_dims(rank))
    return op.reshape(node[0], dims)


def reshaped(old: Sequence[Dim], wanted: Sequence[Dim], allow_zero: bool = False) -> list[Dim]:
    """The shape that `wanted` stands for; `Refusal` if there is none."""
    dims = list(wanted)
    if not allow_zero:
        for at, dim in enumerate(dims):
            if dim.constant_value == 0:
                if at >= len(old):
                    raise Refusal(f"dimension {at} is to be kept, but the rank is {len(old)}")
                dims[at] = old[at]
    open_at = [at for at, dim in enumerate(dims) if dim.constant_value == -1]
    if len(open_at) > 1:
        raise Refusal("more than one dimension is -1")
    if open_at:
        rest = [dim for at, dim in enumerate(dims) if at not in open_at]
        left, right = _without_common(list(old), rest)
        total = product(right)
        if total.constant_value == 0:
            raise Refusal("a dimension is -1 where another one is 0")
        dims[open_at[0]] = DEFAULT_PROVER.simplify(floordiv(product(left), total))
    return dims


def _without_common(left: list[Dim], right: list[Dim]) -> tuple[list[Dim], list[Dim]]:
    """Two lists of factors without those that are in both."""
    kept: list[Dim] = []
    for dim in right:
        if dim in left and dim.constant_value != 0:
            left.remove(dim)
        else:
            kept.append(dim)
    return left, kept


def _resolved(node: Node, old: Sequence[Dim], allow_zero: bool) -> Expr:
    """The shape that a tensor of dimensions stands for, as a tensor."""

    def resolve(target: te.Tensor, *, dims: tuple[Dim, ...]) -> te.Tensor:
        count = target.shape[0]

        def kept(i: te.Expr) -> te.Expr:
            value = te.cast(target[i], "i64")
            if allow_zero:
                return value
            for at, dim in enumerate(dims):
                here = te.cast(te.cast(dim, "index"), "i64")
                value = te.select(te.cast(i, "i64") == at, te.select(target[i] == 0, here, value), value)
            return value

        filled = te.compute((count,), lambda *i: kept(i[0]), name="filled")
        r = te.reduce_axis(count, "r")
        known = te.compute((), lambda: te.prod(te.select(filled[r] == -1, 1, filled[r]), r), name="known_part")
        total = te.cast(te.cast(product(dims), "index"), "i64")
        rest = te.compute((), lambda: te.truncdiv(total, te.maximum(known[()], 1)), name="rest")
        return te.compute((count,), lambda *i: te.select(filled[i] == -1, rest[()], filled[i]), name="resolved")

    return node.te(lambda target: resolve(target, dims=tuple(old)), node[1], name="resolve_shape")


@converts("Flatten")
def flatten(node: Node) -> Result:
    """A matrix: the dimensions before an axis and those from it on."""
    dims = node.shape()
    axis = node.integer("axis", 1)
    axis = axis + len(dims) if axis < 0 else axis
    if not 0 <= axis <= len(dims):
        raise Refusal(f"the axis {axis} is not within rank {len(dims)}")
    return op.reshape(node[0], [product(dims[:axis]), product(dims[axis:])])


@converts("Transpose")
def transpose(node: Node) -> Result:
    """The dimensions in another order."""
    return op.permute_dims(node[0], node.integers("perm"))


def axes_of(node: Node, index: int = 1) -> tuple[int, ...] | None:
    """Axes from an attribute or an operand; `None` if there are none. `Refusal` if they are not known."""
    if node.has(index):
        found = node.ints(index)
        if found is None:
            raise Refusal("axes that are not known while importing are not supported")
        return found
    return node.integers("axes")


@converts("Squeeze")
def squeeze(node: Node) -> Result:
    """Without dimensions of 1: those of the axes, or all.

    Which symbolic dimensions are 1 is told by the rank of the result, if the model says it or its nodes ask for one. If
    not, these have to be more than 1, which is checked.
    """
    if node.has(1) and node.ints(1) is None:
        return _to_hinted_shape(node, -node.length(1))
    axes, dims = axes_of(node), node.shape()
    if axes is not None:
        return op.squeeze(node[0], axes)
    ones = [at for at, dim in enumerate(dims) if dim.constant_value == 1]
    open_ = [at for at, dim in enumerate(dims) if not dim.is_constant]
    hint = node.hint()
    said = None if hint is None or hint.dims is None else tuple(hint.dims)
    missing = -1 if said is None else len(dims) - len(ones) - len(said)
    if not open_ or missing == 0:
        return op.squeeze(node[0], ones)
    if said is None or not 0 < missing <= len(open_):
        return op.squeeze(_of_several(node), ones)
    chosen = [
        more
        for more in combinations(open_, missing)
        if all(
            b is None or not a.is_constant or not b.is_constant or a == b
            for a, b in zip([dim for at, dim in enumerate(dims) if at not in (*ones, *more)], said, strict=True)
        )
    ]
    if len(chosen) != 1:
        raise Refusal(
            f"the model says that the result has rank {len(said)}, which one of several dimensions of 1 could give: "
            "say which they are with import_model(..., shapes=)"
        )
    wanted = TensorType([constant(1) if at in chosen[0] else dim for at, dim in enumerate(dims)], node.dtype())
    return op.squeeze(node.bb.match_cast(node[0], wanted), [*ones, *chosen[0]])


def _of_several(node: Node) -> Expr:
    """The operand, whose symbolic dimensions are checked to be more than 1: the rank of the result is a constant."""
    dims = [dim if dim.is_constant else symbol(node.fresh()) for dim in node.shape()]
    bounds: dict[str, tuple[int, int | None]] = {name: (2, None) for dim in dims for name in dim.symbols}
    return node.bb.match_cast(node[0], TensorType(dims, node.dtype()), bounds=bounds)


@converts("Unsqueeze")
def unsqueeze(node: Node) -> Result:
    """With new dimensions of 1."""
    if node.has(1) and node.ints(1) is None:
        return _to_hinted_shape(node, node.length(1))
    axes = axes_of(node) or ()
    rank = node.rank() + len(axes)
    return op.expand_dims(node[0], [from_front(axis, rank) for axis in axes])


def _to_hinted_shape(node: Node, added: int) -> Expr:
    """A squeeze or unsqueeze whose axes are data: the other dimensions stay in order."""
    old, rank = node.shape(), node.rank() + added
    longer = max(rank, len(old))

    def shape_of(axes: te.Tensor) -> te.Tensor:
        r = te.reduce_axis(axes.shape[0], "r")
        found = te.compute(
            (longer,),
            lambda *i: te.max(te.cast(te.floormod(axes[r], longer) == te.cast(i[0], axes.dtype), "i64"), r),
            name="found",
        )
        marks = te.compute((longer,), lambda *i: te.maximum(found[i], te.const(0, "i64")), name="marks")
        sizes = te.compute((len(old),), lambda *i: element_of(old, i[0]), name="sizes")
        body = _with_ones if added > 0 else without_marked
        return te.extern([((rank,), "i64")], [marks, sizes], body, name="shape_with_axes")[0]

    axes = distinct_axes(node.bb, node[1], longer, f"'{node.op_type}'")
    return op.reshape(node[0], node.run_time_dims(node.te(shape_of, axes), node.hinted_dims(rank)))


def _with_ones(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
    """The sizes in order, and 1 at the positions that are marked."""
    marks, sizes = ins
    position = b.alloc((), "i64", "position")
    b.store(position, (), 0)
    with b.for_range(0, marks.shape[0], "i") as i:
        with b.if_(marks[i] == 0):
            b.store(outs[0], i, sizes[te.cast(position[()], "index")])
            b.store(position, (), position[()] + 1)
        with b.else_():
            b.store(outs[0], i, 1)


def without_marked(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
    """The sizes that are not marked."""
    marks, sizes = ins
    position = b.alloc((), "i64", "position")
    b.store(position, (), 0)
    with b.for_range(0, marks.shape[0], "i") as i, b.if_(marks[i] == 0):
        b.store(outs[0], te.cast(position[()], "index"), sizes[i])
        b.store(position, (), position[()] + 1)


def element_of(dims: Sequence[Dim], at: te.Expr) -> te.Expr:
    """The dimension at a position that is known at run time."""
    value: te.Expr = te.const(1, "i64")
    for position, dim in enumerate(dims):
        value = te.select(te.cast(at, "i64") == position, te.cast(te.cast(dim, "index"), "i64"), value)
    return value


@converts("Expand")
def expand(node: Node) -> Result:
    """Broadcast to a shape and with it."""
    node.require_list(1, "the shape")
    wanted, old = node.dims(1), node.shape()
    if wanted is None:
        count = node.length(1)
        rank = max(count, len(old))
        full = node.te(lambda wanted: _expanded_shape(wanted, old, rank), node[1], name="expanded_shape")
        own = [constant(1)] * (rank - len(old)) + list(old)
        hints = [
            dim if dim.is_constant and dim.constant_value != 1 else hint
            for dim, hint in zip(own, node.hinted_dims(rank), strict=True)
        ]
        return op.broadcast_to(node[0], node.run_time_dims(full, hints))
    if all(dim.constant_value == 1 for dim in wanted) and len(wanted) <= len(old):
        return node.value(0)
    rank = max(len(wanted), len(old))
    padded = [[constant(1)] * (rank - len(each)) + list(each) for each in (old, wanted)]
    return op.broadcast_to(node[0], [joined(a, b) for a, b in zip(*padded, strict=True)])


def _expanded_shape(wanted: te.Tensor, old: Sequence[Dim], rank: int) -> te.Tensor:
    """The shape of a tensor that is broadcast to a shape and with it, from the tensor of that shape."""
    count = wanted.shape[0].constant_value or 0
    dims = [constant(1)] * (rank - len(old)) + list(old)

    def element(i: te.Expr) -> te.Expr:
        own = element_of(dims, i)
        given = te.cast(wanted[te.maximum(i - (rank - count), 0)], "i64") if count else own
        given = te.select(te.cast(i, "i64") < rank - count, te.const(1, "i64"), given)
        return te.select(given == 1, own, given)

    return te.compute((rank,), element, name="expanded_shape")


def joined(a: Dim, b: Dim) -> Dim:
    """The dimension of two that are broadcast to each other."""
    if a is b or b.constant_value == 1:
        return a
    if a.constant_value == 1:
        return b
    if a.is_constant:
        return a
    if b.is_constant:
        return b
    return broadcast(a, b)


def spatial(shape: Sequence[Dim]) -> list[tuple[IterKind, Dim, str]]:
    """The axes of a block over all of `shape`, independent of each other."""
    return [("spatial", extent, f"i{axis}") for axis, extent in enumerate(shape)]


@converts("Concat")
def concat(node: Node) -> Result:
    """Tensors one after the other."""
    parts = [node[index] for index in range(len(node.inputs))]
    return parts[0] if len(parts) == 1 else op.concat(parts, node.axis())


@converts("Split")
def split(node: Node) -> Result:
    """Parts of given sizes, or as equal as can be."""
    axis = node.axis()
    length, count = node.shape()[axis], len(node.outputs)
    given = node.integers("split")
    if given is not None:
        sizes = [constant(size) for size in given]
    elif node.has(1):
        known = node.dims(1)
        sizes = node.run_time_dims(node[1], [None] * count) if known is None else known
    else:
        parts = node.integer("num_outputs", count) or count
        if parts != count:
            raise Refusal(f"the tensor is cut into {parts} parts, but the node has {count} outputs")
        size = ceildiv(length, parts)
        rest = length - size * (parts - 1)
        sizes = [size] * (parts - 1) + [rest]
    rest = length - total(sizes)
    if rest.constant_value or any((size.constant_value or 0) < 0 for size in sizes):
        raise Refusal(f"a dimension of {length} is cut into parts of {', '.join(map(str, sizes))}")
    positions = [total(sizes[:at]) for at in range(1, len(sizes))]
    if not positions:
        return node.value(0)
    parts = list(op.split(node[0], indices=positions, axis=axis))
    if not rest.is_constant:
        shape = [sizes[-1] if at == axis else dim for at, dim in enumerate(node.shape())]
        parts[-1] = node.bb.match_cast(parts[-1], TensorType(shape, node.dtype()))
    return parts


@converts("Tile")
def tile(node: Node) -> Result:
    """The tensor repeated along each dimension."""
    repeats = node.ints(1)
    if repeats is not None:
        return op.tile(node[0], repeats)
    known = node.dims(1)
    shape = node.shape()
    factors = node.run_time_dims(node[1], [None] * len(shape)) if known is None else known
    if len(factors) != len(shape):
        raise Refusal(f"expected {len(shape)} repeats, got {len(factors)}")
    wide = node.named([dim * factor for dim, factor in zip(shape, factors, strict=True)])
    return node.te(
        lambda x: te.compute(
            wide, lambda *i: x[tuple(te.floormod(at, dim) for at, dim in zip(i, shape, strict=True))], name="tile"
        ),
        node[0],
    )


def full_pads(pads: te.Tensor, axes: te.Tensor, rank: int) -> te.Tensor:
    """Widths before and after every dimension, from those before and then those after some axes."""
    count = axes.shape[0]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        given, named = ins
        with b.for_range(0, 2 * rank, "i") as i:
            b.store(outs[0], i, 0)
        with b.for_range(0, count, "i") as i:
            position = b.let(te.cast(te.floormod(te.cast(named[i], "i64"), rank), "index"), "position")
            b.store(outs[0], position, te.cast(given[i], "i64"))
            b.store(outs[0], position + rank, te.cast(given[i + count], "i64"))

    return te.extern([((2 * rank,), "i64")], [pads, axes], body, name="full_pads")[0]


def ends_and_shape(pads: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    """The position in the result after the last element of the data, by dimension, and then the result's shape.

    Data that ends before the result begins is not there.
    """
    rank = len(shape)

    def number(i: te.Expr) -> te.Expr:
        end = element_of([*shape, *shape], i) + te.cast(pads[i], "i64")
        return te.if_then_else(i < rank, te.maximum(end, 0), end + te.cast(pads[i - rank], "i64"))

    return te.compute((2 * rank,), number, name="padded_shape")


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@converts("Pad")
def pad(node: Node) -> Result:
    """More elements around, or fewer where a number is negative."""
    mode = node.text("mode", "constant")
    if mode not in _MODES:
        raise Refusal(f"the mode {mode} does not exist")
    widths, value = _widths(node), _value(node)
    if widths is None or value is None or (min(widths, default=0) < 0 and mode != "constant"):
        return _at_run_time(node, mode)
    return op.nn.pad(node[0], widths, _MODES[mode], value)


def _widths(node: Node) -> list[int] | None:
    """Two numbers for each dimension, before and after; `None` if they are data."""
    given = node.ints(1) if node.version >= 11 else node.integers("pads")
    axes: tuple[int, ...] | None = tuple(range(node.rank()))
    if node.has(3):
        axes = node.ints(3)
    if given is None or axes is None:
        return None
    widths, count = [0] * (2 * node.rank()), len(axes)
    if len(given) != 2 * count:
        raise Refusal(f"expected {2 * count} pads, got {len(given)}")
    for at, axis in enumerate(axes):
        position = from_front(axis, node.rank())
        widths[2 * position], widths[2 * position + 1] = given[at], given[at + count]
    return widths


def _value(node: Node) -> float | None:
    """The element that is added; `None` if it is data."""
    if node.version < 11:
        return node.number("value")
    if not node.has(2):
        return 0.0
    found = node.numbers(2)
    return None if found is None else found[0]


def _at_run_time(node: Node, mode: str) -> Expr:
    """Padding whose widths or value are data, or which takes elements away before it repeats others."""
    widths = _widths(node)
    if widths is None:
        ends, shape = _read(node)
    else:
        before, after = widths[::2], widths[1::2]
        ends = tuple(own + width for own, width in zip(node.shape(), before, strict=True))
        padded = [end + width for end, width in zip(ends, after, strict=True)]
        shape = node.named(padded, node.hinted_dims(node.rank()))

    def fill(x: te.Tensor, value: te.Tensor) -> te.Tensor:
        return filled(x, shape, _before(x, ends), value[()])

    def surround(x: te.Tensor) -> te.Tensor:
        return surrounded(x, shape, _before(x, ends), _MODES[mode], provable=True)

    if mode != "constant":
        return node.te(surround, node[0], name="pad")
    value = node[2] if node.has(2) and node.version >= 11 else node.like(0)
    return node.te(fill, node[0], value if value.ndim == 0 else op.reshape(value, []), name="pad")


def _before(x: te.Tensor, ends: Sequence[Dim]) -> list[Dim]:
    """How many elements are before data that ends at some positions."""
    return [end - own for end, own in zip(ends, x.shape, strict=True)]


def _read(node: Node) -> tuple[Sequence[Dim], Sequence[Dim]]:
    """Where the data ends in the result, and the result's shape, of widths that are data."""
    shape, rank = node.shape(), node.rank()
    pads = node[1]
    if node.has(3):
        axes = indices_within(node.bb, node[3], [constant(rank)], "'Pad' axes", "the rank")
        pads = node.te(lambda pads, axes: full_pads(pads, axes, rank), pads, axes, name="full_pads")
    numbers = node.te(lambda pads: ends_and_shape(pads, shape), pads, name="padded_shape")
    dims = node.run_time_dims(numbers, (*(None,) * rank, *node.hinted_dims(rank)))
    return dims[:rank], dims[rank:]
