"""What is used of PyTorch: its exported programs, as types, the package itself, loaded when it is needed; and what
can be wrong with a program.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from os import PathLike, fspath
from typing import Any, BinaryIO, Protocol


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


NO_CONVERTER = "there is no converter"
MOST_NODES = 3
"""So many nodes of an operator are named; the others are counted."""


@dataclass(frozen=True)
class UnsupportedOperator:
    """An operator that cannot be imported, with the nodes that have it for the same reason."""

    name: str
    """As PyTorch writes it, with its overload: `aten.add.Tensor`."""

    nodes: tuple[str, ...]
    reason: str
    source: str = ""
    """The line of the model that the first of the nodes comes of: `File "m.py", line 7, in forward: return x[0]`."""

    arguments: tuple[str, ...] = ()
    """The names of the operator's arguments."""

    def __str__(self) -> str:
        named = ", ".join(self.nodes[:MOST_NODES])
        more = f" and {len(self.nodes) - MOST_NODES} more" if len(self.nodes) > MOST_NODES else ""
        source = f"\n    {self.source}" if self.source else ""
        return f"{self.name} ({named}{more}): {self.reason}{source}"

    @property
    def way_out(self) -> str:
        """How to give the importer a converter of this operator."""
        arguments = ", ".join(f'node.value("{name}")' for name in self.arguments)
        return f"""\
A converter is a function of the node; register it before the import (docs/howto/torch.md):
  @relax_dialect.frontend.torch.converts("{self.name}")
  def convert(node):
      return ...  # made of {arguments or "node.arguments"} by relax_dialect.builder.op
or give the program a decomposition (ExportedProgram.run_decompositions)."""


@dataclass
class Problems:
    """The nodes that could not be imported so far, by operator and reason."""

    found: dict[tuple[str, str], UnsupportedOperator] = field(
        default_factory=dict[tuple[str, str], UnsupportedOperator]
    )

    def add(self, operator: str, reason: str, node: FxNode) -> None:
        """Notes a node."""
        key = operator, reason
        if key not in self.found:
            schema = getattr(node.target, "_schema", None)
            arguments = () if schema is None else tuple(each.name for each in schema.arguments)
            self.found[key] = UnsupportedOperator(operator, (), reason, source_of(node), arguments)
        self.found[key] = replace(self.found[key], nodes=(*self.found[key].nodes, location_of(node)))

    def operators(self) -> list[UnsupportedOperator]:
        """The operators of these nodes."""
        return list(self.found.values())


def location_of(node: FxNode) -> str:
    """The name of a node after that of the module around it: `layers.0.attention/linear_3`."""
    stack = node.meta.get("nn_module_stack")
    path = next(reversed(stack.values()))[0] if stack else ""
    return f"{path}/{node.name}" if path and not path.startswith("_") else node.name


def source_of(node: FxNode) -> str:
    """The innermost line of Python that a node comes of, as PyTorch noted it; empty if it did not."""
    trace = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    frames = [at for at, line in enumerate(trace) if line.startswith('File "')]
    return ": ".join(line for line in trace[frames[-1] : frames[-1] + 2] if line) if frames else ""


class TorchImportError(ImportError):
    """A program that cannot be imported; `operators` are those that are not supported, all that were found."""

    def __init__(self, message: str, operators: Sequence[UnsupportedOperator] = ()):
        super().__init__(message)
        self.operators = tuple(operators)

    @classmethod
    def unsupported(cls, operators: Sequence[UnsupportedOperator]) -> TorchImportError:
        """The error that lists operators, those with most nodes first."""
        ordered = sorted(operators, key=lambda each: -len(each.nodes))
        what = "an operator that is" if len(ordered) == 1 else f"{len(ordered)} operators that are"
        ways = [each.way_out for each in ordered if each.reason == NO_CONVERTER][:1]
        lines = [f"the program has {what} not supported:", *(f"  {each}" for each in ordered), *ways]
        return cls("\n".join(lines), ordered)


class Refusal(Exception):
    """Why the node at hand cannot be imported; the importer adds which one it is."""


GETITEM = "_operator.getitem"
"""What takes one of several results."""


@cache
def torch() -> Any:
    """The package; `ModuleNotFoundError` if it is not installed."""
    return import_module("torch")


def load_program(path: str | PathLike[str] | BinaryIO) -> ExportedProgram:
    """The program in a `.pt2` file; `TorchImportError` if there is none, or PyTorch cannot read it."""
    library = torch()
    try:
        with warnings.catch_warnings(), _without_log("torch.export"):
            warnings.simplefilter("ignore")  # of what PyTorch does with its own file
            return library.export.load(fspath(path) if isinstance(path, str | PathLike) else path)
    except Exception as error:  # archives, pickles and schemas that are wrong are of many kinds, none of them listed
        raise TorchImportError(f"the file cannot be read: {error}") from error


@contextmanager
def _without_log(name: str) -> Generator[None]:
    """Keeps a module from logging, with its traceback, an error that it then raises."""
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def is_symbolic(value: Any) -> bool:
    """Whether a value is a number that depends on sizes."""
    library = torch()
    return isinstance(value, library.SymInt | library.SymFloat | library.SymBool)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, maybe without elements."""
    return isinstance(value, torch().Tensor)


def is_node(value: Any) -> bool:
    """Whether a value is a node of a graph."""
    return isinstance(value, torch().fx.Node)


def is_random(node: FxNode) -> bool:
    """Whether a node draws random numbers; dropout does so in training only."""
    if torch().Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    names = [each.name for each in node.target._schema.arguments]
    given = {name: value for name, value in zip(names, node.args, strict=False)} | dict(node.kwargs)
    only_in_training = {"dropout_p", "train", "training"} & set(names)
    return not only_in_training or any(given.get(name) for name in only_in_training)


def name_of(target: Any) -> str:
    """How an operator is called: `aten.add.Tensor`, or a function by its module, such as `_operator.mul`."""
    if hasattr(target, "overloads") or hasattr(target, "_schema"):
        return str(target)
    module = getattr(target, "__module__", None)
    return f"{module}.{target.__name__}" if module is not None and hasattr(target, "__name__") else str(target)
