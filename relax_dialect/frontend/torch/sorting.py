"""Sorting."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i32

from relax_dialect.builder import op
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect.dtypes import is_float


@converts("aten.sort.default", "aten.sort.stable")
def sort(node: Node) -> Result:
    """The elements in order along an axis, and where they were."""
    x, axis, descending = node.tensor("self"), node.axis(), node.flag("descending")
    if not node.wants(1):
        return [op.sort(x, axis, descending=descending), None]
    order = op.argsort(x, axis, descending=descending)
    return [op.gather_elements(x, order, axis), order]


@converts("aten.argsort.default", "aten.argsort.stable")
def argsort(node: Node) -> Result:
    """The places of the elements in order."""
    return op.argsort(node.tensor("self"), node.axis(), descending=node.flag("descending"))


@converts("aten.msort.default")
def msort(node: Node) -> Result:
    """The elements in order along the first axis."""
    return op.sort(node.tensor("self"), 0)


@converts("aten.topk.default")
def topk(node: Node) -> Result:
    """The greatest or least elements in order, and where they are."""
    return list(op.topk(node.tensor("self"), node.dim("k"), node.axis(), smallest=not node.flag("largest")))


@converts("aten.kthvalue.default")
def kthvalue(node: Node) -> Result:
    """The element that is at place `k`, counted from 1, when they are in order, and where it is."""
    return _at(node, node.integer("k") - 1)


@converts("aten.median.dim", "aten.median.default")
def median(node: Node) -> Result:
    """The middle element, of two the lesser, and along an axis also where it is."""
    if node.name == "median" and not node.has("dim"):
        x = op.flatten(node.tensor("self"))
        length = math.prod(_fixed(node, axis) for axis in range(node.rank()))
        ordered = op.sort(x, 0)
        found = op.squeeze(op.strided_slice(ordered, [0], [(length - 1) // 2], [(length - 1) // 2 + 1]), [0])
        if not is_float(node.dtype()):
            return found
        last = op.squeeze(op.strided_slice(ordered, [0], [length - 1], [length]), [0])
        return op.where(op.isnan(last), last, found)
    return _at(node, (_fixed(node, node.axis()) - 1) // 2, is_median=True)


def _fixed(node: Node, axis: int) -> int:
    length = node.shape()[axis].constant_value
    if length is None:
        raise Refusal("the middle of a dimension that is symbolic is not supported")
    return length


def _at(node: Node, place: int, is_median: bool = False) -> Result:
    """The element at a place in order along an axis, and where it was; a median is no number if an element is none."""
    x, axis, keep = node.tensor("self"), node.axis(), node.flag("keepdim")
    where = op.strided_slice(op.argsort(x, axis), [axis], [place], [place + 1])
    if is_median and is_float(node.dtype()):
        is_nan = op.astype(op.isnan(x), "i32")
        first = op.astype(op.argmax(is_nan, axis, keepdims=True), "i64")
        where = op.where(op.greater(op.max(is_nan, [axis], keepdims=True), node.const(0, i32)), first, where)
    found = op.gather_elements(x, where, axis)
    return [found, where] if keep else [op.squeeze(found, [axis]), op.squeeze(where, [axis])]
