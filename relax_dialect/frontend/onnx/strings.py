"""Strings that go into a model: the list in which a program has their positions, which are what the model compares them
with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

OTHER = "\0other"
"""Stands in a list for all strings that are not in it. No string of a model: it has a NUL."""

_KEYS = frozenset({"cats_strings", "classes_strings", "keys_strings"})
"""Attributes with strings that operands are compared with."""

_UNSEEN = frozenset({"Identity", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceConstruct"})
"""Operators that take any value, whatever it is."""


def compared_strings(model: ModelProto) -> tuple[str, ...]:
    """The strings that nodes of a model may compare theirs with, each once."""
    graphs = [model.graph]
    nodes = [*_nodes(model.graph.node), *(node for each in model.functions for node in _nodes(each.node))]
    tensors: list[TensorProto] = []
    found: dict[str, None] = {}
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name in _KEYS or (node.op_type == "Constant" and attribute.name.startswith("value_string")):
                found |= dict.fromkeys(map(_text, [*attribute.strings, *([attribute.s] if attribute.s else [])]))
            elif attribute.type == AttributeProto.TENSOR and attribute.name != "values_tensor":
                tensors.append(attribute.t)
            elif attribute.type == AttributeProto.GRAPH:
                graphs.append(attribute.g)
    for tensor in [*tensors, *(each for graph in graphs for each in graph.initializer)]:
        if tensor.data_type == TensorProto.STRING:
            found |= dict.fromkeys(map(_text, tensor.string_data))
    return tuple(found)


def encoded_inputs(graph: GraphProto) -> frozenset[str]:
    """The inputs of strings that nodes look at or move: a program has their positions, others are objects."""
    users: dict[str, list[NodeProto]] = {}
    for node in _nodes(graph.node):
        for name in node.input:
            users.setdefault(name, []).append(node)

    def is_looked_at(name: str) -> bool:
        pending, seen = [name], set[str]()
        while pending:
            each = pending.pop()
            if each in seen:
                continue
            seen.add(each)
            for node in users.get(each, ()):
                if node.op_type not in _UNSEEN:
                    return True
                pending += node.output
        return False

    return frozenset(
        info.name for info in graph.input if _is_strings(info.type.tensor_type.elem_type) and is_looked_at(info.name)
    )


def _is_strings(element: int) -> bool:
    return element == TensorProto.STRING


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g.node)
