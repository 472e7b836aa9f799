"""Sequences of tensors, and optional values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import dim_at_most
from relax_dialect.frontend.onnx.node import Node, Result, converts, from_front
from relax_dialect.frontend.onnx.values import Absent, Perhaps, Refusal, TensorList, Value, like
from relax_dialect.inference import DEFAULT_PROVER
from tir_dialect.dims import Dim, constant, floordiv, mod

MAX_PARTS = 1 << 12
"""A tensor is cut into at most so many parts of which the last is smaller."""


def _list(node: Node) -> TensorList:
    found = node.value(0)
    if not isinstance(found, TensorList):
        raise Refusal("operand #0 expected a sequence, got a tensor")
    return found


@converts("SequenceEmpty")
def empty(node: Node) -> Result:
    """No items."""
    return TensorList([], dtype=node.element_type("dtype"))


@converts("SequenceConstruct")
def construct(node: Node) -> Result:
    """The operands."""
    return TensorList([node.value(index) for index in range(len(node.inputs))])


@converts("SequenceLength")
def length(node: Node) -> Result:
    """The number of items."""
    made = np.empty((), object)
    made[()] = _list(node).length
    return Value.of(made, i64)


@converts("SequenceAt")
def at(node: Node) -> Result:
    """One item; a negative position counts from the end."""
    items, position = _list(node).items, node.ints(1)
    if items is not None and position is not None:
        return items[from_front(position[0], len(items))]
    index = node[1] if node.rank(1) == 0 else op.reshape(node[1], [])
    return op.take(node[0], index, 0)


@converts("SequenceInsert")
def insert(node: Node) -> Result:
    """One more item before a place, or at the end."""
    known, position, new = _list(node), node.ints(2), node.value(1)
    if known.items is not None and (not node.has(2) or position is not None):
        items = list(known.items)
        count = len(items) + 1
        items.insert(count - 1 if position is None else from_front(position[0] + (position[0] < 0), count), new)
        return TensorList(items)
    added = op.expand_dims(node[1], [0])
    if not node.has(2):
        return TensorList.of_stack(op.concat([node[0], added], 0))
    before, after = _around(node, 2, 0)
    return TensorList.of_stack(op.concat([before, added, after], 0))


@converts("SequenceErase")
def erase(node: Node) -> Result:
    """One item fewer: that at a place, or the last one."""
    known, position = _list(node), node.ints(1)
    if known.items is not None and (not node.has(1) or position is not None):
        items = list(known.items)
        del items[from_front(-1 if position is None else position[0], len(items))]
        return TensorList(items, dtype=known.dtype if not items else None)
    if not node.has(1):
        return TensorList.of_stack(op.strided_slice(node[0], [0], [0], [known.length - 1]))
    return TensorList.of_stack(op.concat(list(_around(node, 1, 1)), 0))


def _around(node: Node, index: int, gap: int) -> tuple[Expr, Expr]:
    """The items before an index that is data, and those from `gap` after it on."""
    whole, count = node[0], _list(node).length
    position = op.astype(op.reshape(node[index], [1]), i64)
    following = op.add(position, op.shape_to_tensor([count]))
    (at,) = node.run_time_dims(op.where(op.less(position, node.const(0, i64)), following, position))
    return op.strided_slice(whole, [0], [0], [at]), op.strided_slice(whole, [0], [at + gap], [count])


@converts("SplitToSequence")
def split(node: Node) -> Result:
    """Parts along an axis: of one position, of a size, or of given sizes."""
    axis = node.axis()
    size = node.dims(1) if node.has(1) else (constant(1),)
    if size is None and node.rank(1) == 1:
        size = node.run_time_dims(node[1])
    if size is None:
        raise Refusal("the size of the parts, and so their number, is not known while importing")
    if not node.has(1) or node.rank(1) == 0:
        total = node.shape()[axis]
        if DEFAULT_PROVER.equal(mod(total, size[0]), 0):
            keeps = node.has(1) or bool(node.integer("keepdims", 1))
            return TensorList.of_stack(_parts(node, axis, size[0], keeps=keeps))
        size = _sizes(total, size[0])
    positions = [sum(size[1:at], size[0]) for at in range(1, len(size))]
    if not positions:
        return TensorList([node.value(0)])
    return TensorList([Value(part) for part in op.split(node[0], indices=positions, axis=axis)])


def _sizes(total: Dim, size: Dim) -> Sequence[Dim]:
    """Equal sizes, and what is left."""
    whole, step = total.constant_value, size.constant_value
    if whole is None or not step or whole > step * MAX_PARTS:
        raise Refusal(f"the number of parts of {size} out of {total} is not known while importing, or too large")
    return [constant(min(step, whole - at)) for at in range(0, whole, step)]


def _parts(node: Node, axis: int, size: Dim, *, keeps: bool) -> Expr:
    """Parts of equal size as slices along a first axis."""
    shape = node.shape()
    count = floordiv(shape[axis], size)
    inner = [size] if keeps else []
    cut = op.reshape(node[0], [*shape[:axis], count, *inner, *shape[axis + 1 :]])
    rest = [each for each in range(cut.ndim or 0) if each != axis]
    return op.permute_dims(cut, [axis, *rest])


@converts("ConcatFromSequence")
def concat(node: Node) -> Result:
    """All items one after the other, or along a new axis."""
    known, is_new = _list(node), bool(node.integer("new_axis"))
    if known.items and not is_new:
        parts = [item.expr(node.bb) for item in known.items]
        return op.concat(parts, from_front(node.integer("axis"), parts[0].ndim or 0))
    stack = node[0]
    rank = stack.ndim or 0
    axis = from_front(node.integer("axis"), rank if is_new else rank - 1)
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    moved = stack if axis == 0 else op.permute_dims(stack, order)
    if is_new:
        return moved
    dims = [dim for dim in moved.shape or () if dim is not None]
    return op.reshape(moved, [*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :]])


@converts("Optional")
def optional(node: Node) -> Result:
    """The value, or that there is none."""
    return node.value(0) if node.has(0) else Absent()


@converts("OptionalGetElement")
def get_element(node: Node) -> Result:
    """The value, which is there; an error while running if it is not."""
    found = node.value(0)
    if not isinstance(found, Perhaps):
        return found
    (missing,) = node.run_time_dims(op.reshape(op.astype(op.logical_not(found.there), i64), [1]))
    message = "'OptionalGetElement': expected a value, got an optional without one"
    return like(found.value, dim_at_most(node.bb, found.value.expr(node.bb), missing, constant(0), message))


@converts("OptionalHasElement")
def has_element(node: Node) -> Result:
    """Whether the value is there."""
    if node.has(0) and isinstance(found := node.value(0), Perhaps):
        return found.there
    return Value.of(np.array(node.has(0) and not isinstance(node.value(0), Absent)))
