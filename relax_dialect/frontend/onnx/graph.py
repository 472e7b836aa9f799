"""Importing a graph: its nodes in order, what their names stand for, and what could not be imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from onnx import NodeProto
from typing_extensions import override

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx import functions
from relax_dialect.frontend.onnx.attributes import attributes_of
from relax_dialect.frontend.onnx.errors import Refusal, UseFunction
from relax_dialect.frontend.onnx.evaluation import evaluate
from relax_dialect.frontend.onnx.functions import MODERN, modernized
from relax_dialect.frontend.onnx.model import DEFAULT_DOMAINS
from relax_dialect.frontend.onnx.node import MALFORMED, GraphScope, Node
from relax_dialect.frontend.onnx.registry import Result, find
from relax_dialect.frontend.onnx.values import Strings, Value

_MOVES = frozenset(
    {"Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice"}
    | {"Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"}
)
"""Operators of strings that look at none of them."""


def _moved(graph: GraphImporter, proto: NodeProto, operands: Sequence[Value | None]) -> Sequence[Value | None]:
    """The outputs of a node that moves strings: what it does to their places."""
    if proto.op_type not in _MOVES:
        raise Refusal("operators of strings are not supported, but those that move or encode them")
    lists = [each.vocabulary for each in operands if isinstance(each, Strings)]
    names = tuple(dict.fromkeys(name for each in lists for name in each))
    positions = [_positions(each, names, graph) if isinstance(each, Strings) else each for each in operands]
    made = graph.outputs(proto, positions)
    return [None if each is None else Strings(each.expr(graph.bb), names) for each in made]


def _positions(value: Strings, names: tuple[str, ...], graph: GraphImporter) -> Value:
    """The indices of strings in a longer list."""
    if names[: len(value.vocabulary)] == value.vocabulary:
        return Value(value.at)
    table = np.array([names.index(each) for each in value.vocabulary], np.int64)
    return Value(op.take(graph.bb.const(table), value.at, 0))


class GraphImporter(GraphScope):
    """Imports the nodes of one graph, or of the body of one function, into the block that is open."""

    @override
    def run(self, nodes: Iterable[NodeProto]) -> None:
        for node in nodes:
            if self.is_inner:
                self.problems.count()
            self._node(node)

    def _node(self, proto: NodeProto) -> None:
        try:
            operands = [self.value(name) if name else None for name in proto.input]
            given = [name for name in proto.input if name]
            if any(self.environment[name] is None for name in given):
                self._define(proto, [None] * len(proto.output))
                return
            with self.bb.at(self.prefix + (proto.name or next(iter(proto.output), proto.op_type))):
                self._define(proto, self.outputs(proto, operands))
        except MALFORMED as problem:
            self.problems.add(proto, str(problem) or type(problem).__name__, self.prefix)
            self._define(proto, [None] * len(proto.output))

    def _define(self, proto: NodeProto, values: Sequence[Value | None]) -> None:
        for name, value in zip(proto.output, values, strict=False):
            if name:
                self.environment[name] = value

    def outputs(self, proto: NodeProto, operands: Sequence[Value | None]) -> Sequence[Value | None]:
        """The outputs of a node, computed now or by the program."""
        domain = "" if proto.domain in DEFAULT_DOMAINS else proto.domain
        version = self.opsets.get(domain)
        if version is None:
            raise Refusal(f"the version of the domain {domain or 'ai.onnx'} is not given")
        attributes = attributes_of(proto, domain, version, self.model)
        node = Node(self, proto.op_type, version, operands, attributes, tuple(proto.output))
        if functions.is_local(proto, self.model.proto.functions):
            return functions.expand(self, proto, node)
        if not domain and any(isinstance(each, Strings) for each in operands):
            return _moved(self, proto, operands)
        made = None if domain else self._evaluated(node)
        if made is not None:
            return made
        converter = find(proto.op_type, version, domain)
        if converter is not None:
            try:
                return self._settle(proto, converter(node if domain or version >= MODERN else modernized(node)))
            except UseFunction:
                pass
        return functions.expand(self, proto, node)

    def _evaluated(self, node: Node) -> list[Value | None] | None:
        """The outputs, if they can be computed while importing."""
        if any(value is not None and value.elements is None for value in node.inputs) or node.version < MODERN:
            return None
        arrays = [None if value is None else value.elements for value in node.inputs]
        dtypes = [None if value is None else value.dtype for value in node.inputs]
        made = evaluate(node.op_type, node.attributes, arrays, dtypes)
        return None if made is None else [Value.of(known, dtype) for known, dtype in made]

    def _settle(self, proto: NodeProto, result: Result) -> list[Value | None]:
        """Results as values whose rank is known, and whose dimensions have names."""
        several = [result] if isinstance(result, Expr | Value) else list(result)
        names = [*proto.output, *[""] * len(several)]
        return [
            Value(self.settled(each, self.hints.get(name))) if isinstance(each, Expr) else each
            for each, name in zip(several, names, strict=False)
        ]
