"""What can be said of a model before any of its nodes is imported: which are not supported, and how many it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from relax_dialect.frontend.onnx import graph as graphs
from relax_dialect.frontend.onnx.domains import DEFAULT_DOMAINS
from relax_dialect.frontend.onnx.functions import has_body, local_function
from relax_dialect.frontend.onnx.model import Model, opsets
from relax_dialect.frontend.onnx.registry import find


def find_unsupported(model: Model) -> graphs.Problems:
    """The nodes whose operators there is no way to import: of the graph, of those in it, and of functions it calls."""
    survey = _Survey(model.proto.functions)
    survey.look(model.proto.graph.node, model.opsets)
    return survey.problems


@dataclass
class _Survey:
    """One look at all nodes; at those of a function once."""

    functions: Sequence[FunctionProto]
    problems: graphs.Problems = field(default_factory=graphs.Problems)
    _seen: set[int] = field(default_factory=set[int])

    def look(self, nodes: Iterable[NodeProto], versions: Mapping[str, int]) -> None:
        """Notes what is not supported."""
        for node in nodes:
            domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
            version = versions.get(domain, 0)
            called = local_function(node, self.functions)
            if called is not None:
                self._look_into(called, versions)
            elif find(node.op_type, version, domain) is None and not has_body(node, version, self.functions):
                self.problems.add(node, "the operator is not supported")
            for graph in _graphs(node):
                self.look(graph.node, versions)

    def _look_into(self, called: FunctionProto, versions: Mapping[str, int]) -> None:
        if id(called) not in self._seen:
            self._seen.add(id(called))
            self.look(called.node, {**versions, **opsets(called.opset_import)})


def check_size(model: Model) -> None:
    """Raises `OnnxImportError` if the functions of a model, written out, have too many nodes.

    A function that calls itself has more than any number of them.
    """
    counts: dict[int, int] = {}

    def written_out(nodes: Iterable[NodeProto]) -> int:
        return sum(1 + body(node) + sum(written_out(graph.node) for graph in _graphs(node)) for node in nodes)

    def body(node: NodeProto) -> int:
        called = local_function(node, model.proto.functions)
        if called is None:
            return 0
        if id(called) not in counts:
            counts[id(called)] = graphs.MAX_NODES + 1
            counts[id(called)] = written_out(called.node)
        return counts[id(called)]

    graphs.Problems().count(sum(map(body, model.proto.graph.node)))


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH)
