"""Scan: a graph over the slices of tensors along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto
from xdsl.dialects.builtin import f32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.control_flow import MAX_UNROLLED, run_body, scan_types, tensor_type
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.node import Node, from_front
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, symbol, to_dim


@converts("Scan", since=9)
def scan(node: Node) -> Result:
    """A graph over the slices of tensors along an axis."""
    return Scan.of(node).results()


@converts("Scan")
def scan_batched(node: Node) -> Result:
    """Before version 9: for each item of a batch by itself."""
    return batched(node)


@dataclass(frozen=True)
class Scan:
    """What a node says: states, and tensors whose slices are seen one after the other."""

    node: Node
    body: GraphProto
    states: Sequence[Expr]
    inputs: Sequence[Expr]
    axes: Sequence[int]
    reverse: Sequence[bool]
    output_axes: Sequence[int]
    output_reverse: Sequence[bool]
    iterations: Expr | None = None
    """How many iterations count, an `i64` of rank 0: later ones leave the states as they are, and give zeros."""

    @staticmethod
    def of(node: Node) -> Scan:
        """The scan that a node describes."""
        body: GraphProto = node.attribute("body")
        count, values = node.integer("num_scan_inputs"), [node[index] for index in range(len(node.inputs))]
        states, inputs = values[: len(values) - count], values[len(values) - count :]
        outputs = len(body.output) - len(states)
        given = node.integers("scan_input_axes") or (0,) * count
        axes = [from_front(axis, each.ndim or 0) for axis, each in zip(given, inputs, strict=True)]
        return Scan(
            node,
            body,
            states,
            inputs,
            axes,
            [bool(each) for each in node.integers("scan_input_directions") or (0,) * count],
            node.integers("scan_output_axes") or (0,) * outputs,
            [bool(each) for each in node.integers("scan_output_directions") or (0,) * outputs],
        )

    @property
    def length(self) -> Dim:
        """The number of iterations."""
        shape = self.inputs[0].shape if self.inputs else None
        if not shape or shape[self.axes[0]] is None:
            raise Refusal("the number of iterations is not known while importing")
        length = shape[self.axes[0]]
        assert length is not None
        return length

    def results(self) -> list[Expr]:
        """The last states, and what the iterations gave."""
        known = self.length.constant_value
        if known is not None and 0 < known <= MAX_UNROLLED:
            states, gathered = self._unrolled(known)
        else:
            states, gathered = self._loop()
        turned = [
            op.flip(each, 0) if reverse else each for each, reverse in zip(gathered, self.output_reverse, strict=True)
        ]
        return [
            *states,
            *(
                _moved(each, from_front(axis, each.ndim or 0))
                for each, axis in zip(turned, self.output_axes, strict=True)
            ),
        ]

    def _slice(self, index: int, at: Dim | int) -> Expr:
        """What iteration `at` sees of an input."""
        x, axis = self.inputs[index], self.axes[index]
        position = self.length - 1 - at if self.reverse[index] else at
        return op.squeeze(op.strided_slice(x, [axis], [position], [position + 1], assume_inbound=True), [axis])

    def _body(self, states: Sequence[Expr], at: Dim | int) -> tuple[list[Expr], list[Expr]]:
        slices = [self._slice(index, at) for index in range(len(self.inputs))]
        made = [
            each.expr(self.node.bb)
            for each in run_body(self.node, self.body, [*map(Value, states), *map(Value, slices)], to_dim(at))
        ]
        after, row = made[: len(states)], made[len(states) :]
        if self.iterations is None:
            return after, row
        here = op.reshape(op.shape_to_tensor([to_dim(at)]), [])
        counts = op.less(here, self.iterations)
        after = [op.where(counts, new, old) for new, old in zip(after, states, strict=True)]
        return after, [op.where(counts, each, self.node.const(0, tensor_type(each).dtype or f32)) for each in row]

    def _unrolled(self, count: int) -> tuple[Sequence[Expr], list[Expr]]:
        states, rows = self.states, list[list[Expr]]()
        for trip in range(count):
            states, row = self._body(states, trip)
            rows.append(row)
        return states, [op.stack(list(column), 0) for column in zip(*rows, strict=True)]

    def _loop(self) -> tuple[Sequence[Expr], list[Expr]]:
        node, bb, length = self.node, self.node.bb, self.length
        node.graph.require_control_flow()
        slices = [_without(each, axis) for each, axis in zip(self.inputs, self.axes, strict=True)]
        types = scan_types(node, self.body, [*map(tensor_type, self.states), *slices])[len(self.states) :]
        starts = [op.full([length, *(each.known_dims or ())], bb.const(0, each.dtype)) for each in types]
        if length.constant_value == 0:
            return self.states, starts
        values = dict(
            zip((f"v{at}" for at in range(len(self.states) + len(starts))), [*self.states, *starts], strict=True)
        )
        counter = node.fresh()
        with bb.for_(0, length, values, symbol=counter) as loop:
            _, *carried = loop
            at = symbol(counter)
            states, row = self._body(carried[: len(self.states)], at)
            gathered = [
                op.slice_scatter(old, op.expand_dims(new, [0]), at, at + 1)
                for old, new in zip(carried[len(self.states) :], row, strict=True)
            ]
            bb.yield_(*states, *gathered)
        return loop.results[: len(self.states)], list(loop.results[len(self.states) :])


def _moved(x: Expr, axis: int) -> Expr:
    """The first dimension at another position."""
    if axis == 0:
        return x
    rest = list(range(1, x.ndim or 0))
    return op.permute_dims(x, [*rest[:axis], 0, *rest[axis:]])


def _without(value: Expr, axis: int) -> TensorType:
    """The type of a slice."""
    info = tensor_type(value)
    dims = info.dims or ()
    return info.with_shape([*dims[:axis], *dims[axis + 1 :]])


def batched(node: Node) -> list[Expr]:
    """The scan of version 8: each item of a batch by itself, up to a length of its own."""
    values = [node[index] for index in range(1, len(node.inputs))]
    batch = (values[0].shape or (None,))[0]
    if batch is None:
        raise Refusal("the size of the batch is not known while importing")
    size = batch.constant_value
    if size is not None and 1 <= size <= MAX_UNROLLED:
        items = [_item(node, values, at).results() for at in range(size)]
        return [op.stack(list(each), 0) for each in zip(*items, strict=True)]
    return _items_in_loop(node, values, batch)


def _item(node: Node, values: Sequence[Expr], at: Dim | int) -> Scan:
    """The scan of an item of the batch."""
    body: GraphProto = node.attribute("body")
    count = node.integer("num_scan_inputs")
    own = [op.squeeze(op.strided_slice(each, [0], [at], [at + 1], assume_inbound=True), [0]) for each in values]
    states, inputs = own[: len(own) - count], own[len(own) - count :]
    outputs = len(body.output) - len(states)
    reverse = [bool(each) for each in node.integers("directions") or (0,) * count]
    iterations = None
    if node.has(0):
        iterations = op.reshape(op.strided_slice(node[0], [0], [at], [at + 1], assume_inbound=True), [])
        iterations = op.astype(iterations, i64)
        inputs = [
            node.te(_reversed, each, iterations) if turned else each
            for each, turned in zip(inputs, reverse, strict=True)
        ]
        reverse = [False] * count
    turned = replace(node, graph=replace(node.graph, turns=(*node.graph.turns, ("item", to_dim(at)))))
    return Scan(turned, body, states, inputs, (0,) * count, reverse, (0,) * outputs, (False,) * outputs, iterations)


def _reversed(x: te.Tensor, length: te.Tensor) -> te.Tensor:
    """The first so many slices in the other order."""

    def element(*i: te.Expr) -> te.Expr:
        end = te.cast(length[()], "index")
        return x[(te.select(i[0] < end, end - 1 - i[0], i[0]), *i[1:])]

    return te.compute(x.shape, element, name="reversed")


def _items_in_loop(node: Node, values: Sequence[Expr], batch: Dim) -> list[Expr]:
    """The results of every item of a batch of any size."""
    node.graph.require_control_flow()
    body: GraphProto = node.attribute("body")
    bb, count = node.bb, node.integer("num_scan_inputs")
    states = [_without(each, 0) for each in values[: len(values) - count]]
    inputs = [_without(each, 0) for each in values[len(values) - count :]]
    length = (inputs[0].dims or (None,))[0]
    types = scan_types(node, body, [*states, *(each.with_shape((each.dims or ())[1:]) for each in inputs)])
    rows = [each.with_shape([length, *(each.known_dims or ())]) for each in types[len(states) :]]
    starts = [op.full([batch, *(each.known_dims or ())], bb.const(0, each.dtype or f32)) for each in (*states, *rows)]
    counter = node.fresh()
    with bb.for_(0, batch, {f"v{at}": each for at, each in enumerate(starts)}, symbol=counter) as loop:
        _, *carried = loop
        at = symbol(counter)
        made = _item(node, values, at).results()
        bb.yield_(
            *(
                op.slice_scatter(old, op.expand_dims(new, [0]), at, at + 1)
                for old, new in zip(carried, made, strict=True)
            )
        )
    return list(loop.results)
