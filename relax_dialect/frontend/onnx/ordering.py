"""The order of nodes: the standard wants each after those whose outputs it uses, ONNX Runtime takes any order."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from onnx import GraphProto, ModelProto, NodeProto


def sorted_model(model: ModelProto) -> ModelProto:
    """The model with its nodes in an order in which they can be computed, if there is one.

    The model itself if they are in order already. Whether nodes use each other in circles is for others to say.
    """
    if _is_sorted(model.graph):
        return model
    copied = ModelProto()
    copied.CopyFrom(model)
    _sort(copied.graph)
    return copied


def _is_sorted(graph: GraphProto) -> bool:
    """Whether no node uses an output of itself or of a later one."""
    later: set[str] = set()
    for node in reversed(graph.node):
        later.update(filter(None, node.output))
        if not later.isdisjoint(_used(node)):
            return False
    return all(_is_sorted(inner) for node in graph.node for inner in _graphs(node))


def _sort(graph: GraphProto) -> None:
    nodes = list(graph.node)
    for inner in (inner for node in nodes for inner in _graphs(node)):
        _sort(inner)
    makers = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    before = {number: {makers[name] for name in _used(node) if name in makers} for number, node in enumerate(nodes)}
    try:
        order = [nodes[number] for number in TopologicalSorter(before).static_order()]
    except CycleError:
        return
    del graph.node[:]
    graph.node.extend(order)


def _used(node: NodeProto) -> Iterator[str]:
    """The names that a node uses, also in its inner graphs."""
    yield from filter(None, node.input)
    for inner in _graphs(node):
        own = {value.name for value in (*inner.input, *inner.initializer)}
        own.update(name for each in inner.node for name in each.output)
        yield from (name for each in inner.node for name in _used(each) if name not in own)
        yield from (output.name for output in inner.output if output.name not in own)


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.HasField("g"))
