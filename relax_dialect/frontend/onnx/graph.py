"""Importing a graph: its nodes in order, what their names stand for, and what could not be imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import NodeProto
from typing_extensions import override

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx import functions
from relax_dialect.frontend.onnx.attributes import attributes_of
from relax_dialect.frontend.onnx.errors import Refusal, UseFunction
from relax_dialect.frontend.onnx.evaluation import evaluate
from relax_dialect.frontend.onnx.functions import MODERN, modernized
from relax_dialect.frontend.onnx.model import DEFAULT_DOMAINS
from relax_dialect.frontend.onnx.node import MALFORMED, GraphScope, Node
from relax_dialect.frontend.onnx.registry import Result, find
from relax_dialect.frontend.onnx.values import Value


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
