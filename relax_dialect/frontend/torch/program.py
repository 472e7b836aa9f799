"""What is used of PyTorch's exported programs, as types: PyTorch itself need not be installed to check this code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol


class FxNode(Protocol):
    """A node of a graph (`torch.fx.Node`)."""

    name: str
    op: str
    """`placeholder`, `call_function`, `get_attr` or `output`."""

    target: Any
    """The operator that is called, or the name of an attribute."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    users: Iterable[FxNode]
    all_input_nodes: Sequence[FxNode]
    meta: Mapping[str, Any]
    """Under `val` the result as a tensor without elements; under `nn_module_stack` the modules around."""


class FxGraph(Protocol):
    """A graph, its nodes in order (`torch.fx.Graph`)."""

    nodes: Iterable[FxNode]


class GraphModule(Protocol):
    """A graph and the tensors and graphs that it names (`torch.fx.GraphModule`)."""

    graph: FxGraph


class Argument(Protocol):
    """What stands for an input or output of the graph."""

    name: str


class InputSpec(Protocol):
    """What an input of the graph is: of the user, or a tensor of the module."""

    kind: Any
    arg: Argument
    target: str | None


class OutputSpec(Protocol):
    """What an output of the graph is: for the user, or the new value of something."""

    kind: Any
    arg: Argument
    target: str | None


class Signature(Protocol):
    """The meaning of inputs and outputs (`torch.export.ExportGraphSignature`)."""

    input_specs: Sequence[InputSpec]
    output_specs: Sequence[OutputSpec]


class ExportedProgram(Protocol):
    """What `torch.export.export` gives."""

    graph_module: GraphModule
    graph_signature: Signature

    @property
    def call_spec(self) -> Any: ...
    @property
    def state_dict(self) -> Mapping[str, Any]: ...
    @property
    def constants(self) -> Mapping[str, Any]: ...
    @property
    def range_constraints(self) -> Mapping[Any, Any]: ...

    def run_decompositions(self, decomp_table: Any = ...) -> ExportedProgram: ...


def output_keys(program: ExportedProgram) -> list[str]:
    """The keys of the dictionary of tensors that a program returns; nothing if it returns something else."""
    returned = program.call_spec.out_spec
    if returned is None or not isinstance(returned.type, type) or not issubclass(returned.type, Mapping):
        return []
    keys: list[Any] = list(returned.context)
    flat = returned.num_leaves == len(keys) and all(isinstance(key, str) for key in keys)
    return keys if flat else []


def nodes_of(owner: GraphModule) -> Iterator[FxNode]:
    """The nodes of a graph, and of the graphs in it."""
    yield from owner.graph.nodes
    for inner in inner_graphs(owner):
        yield from nodes_of(inner)


def inner_graphs(owner: GraphModule) -> Iterator[GraphModule]:
    """The graphs that the nodes of a graph name."""
    for node in owner.graph.nodes:
        inner: Any = getattr(owner, node.target, None) if node.op == "get_attr" else None
        if hasattr(inner, "graph"):
            yield inner
