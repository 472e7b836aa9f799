"""Scan: a graph over the slices of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import GraphProto

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.control_flow import MAX_UNROLLED
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node, from_front
from relax_dialect.frontend.onnx.subgraphs import run_body, scan_types
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, symbol


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
        place = self.length - 1 - at if self.reverse[index] else at
        return op.squeeze(op.strided_slice(x, [axis], [place], [place + 1], assume_inbound=True), [axis])

    def _body(self, states: Sequence[Expr], at: Dim | int) -> tuple[list[Expr], list[Expr]]:
        slices = [self._slice(index, at) for index in range(len(self.inputs))]
        made = [
            each.expr(self.node.bb)
            for each in run_body(self.node, self.body, [*map(Value, states), *map(Value, slices)])
        ]
        return made[: len(states)], made[len(states) :]

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
        types = scan_types(node, self.body, [*map(_tensor, self.states), *slices])[len(self.states) :]
        starts = [op.full([length, *(each.known_dims or ())], bb.const(0, each.dtype)) for each in types]
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
    """The first dimension at another place."""
    if axis == 0:
        return x
    rest = list(range(1, x.ndim or 0))
    return op.permute_dims(x, [*rest[:axis], 0, *rest[axis:]])


def _tensor(value: Expr) -> TensorType:
    info = value.type
    if not isinstance(info, TensorType):
        raise Refusal("a loop carries something that is no tensor")
    return info


def _without(value: Expr, axis: int) -> TensorType:
    """The type of a slice."""
    info = _tensor(value)
    dims = info.dims or ()
    return info.with_shape([*dims[:axis], *dims[axis + 1 :]])


def batched(node: Node) -> list[Expr]:
    """The scan of version 8: each item of a batch by itself."""
    if node.has(0):
        raise Refusal("sequences of different lengths are not supported")
    body: GraphProto = node.attribute("body")
    count, values = node.integer("num_scan_inputs"), [node[index] for index in range(1, len(node.inputs))]
    batch = (values[0].shape or (None,))[0]
    size = None if batch is None else batch.constant_value
    if size is None or size > MAX_UNROLLED or size < 1:
        raise Refusal("the size of the batch is not known while importing, or large")
    directions = [bool(each) for each in node.integers("directions") or (0,) * count]
    outputs = len(body.output) - (len(values) - count)
    items: list[list[Expr]] = []
    for at in range(size):
        own = [op.squeeze(op.strided_slice(each, [0], [at], [at + 1]), [0]) for each in values]
        split = len(own) - count
        items.append(
            Scan(
                node, body, own[:split], own[split:], (0,) * count, directions, (0,) * outputs, (False,) * outputs
            ).results()
        )
    return [op.stack(list(each), 0) for each in zip(*items, strict=True)]
