"""Sorting."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Converter, Result, converts
from tir_dialect import te
from tir_dialect.dims import to_dim
from tir_dialect.dtypes import is_float


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
    """The element that is at place `k`, counted from 1, when they are in order, and where it is."""
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
