"""Importing a graph: its nodes in order, what their names stand for, and what could not be imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import GraphProto, NodeProto
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder import BlockBuilder, BuilderError
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx import functions
from relax_dialect.frontend.onnx.attributes import attributes_of
from relax_dialect.frontend.onnx.domains import DEFAULT_DOMAINS
from relax_dialect.frontend.onnx.errors import NeedsControlFlow, OnnxImportError, Refusal, UnsupportedNode, UseFunction
from relax_dialect.frontend.onnx.evaluation.evaluate import evaluate
from relax_dialect.frontend.onnx.legacy import MODERN, modernized
from relax_dialect.frontend.onnx.model import Model
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, find
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, symbol

Environment = dict[str, "Value | None"]
"""What names stand for; `None` for the outputs of nodes that could not be imported."""


MALFORMED = (
    Refusal,
    VerifyException,
    BuilderError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)
"""What comes of nodes that cannot be: attributes of the wrong kind, operands of the wrong shape or number."""


MAX_NODES = 1 << 16
"""So many nodes may come of functions and loops that are written out: bodies within bodies could give any number."""


MAX_DIMENSION = 1 << 60
"""No tensor has so many elements along a dimension."""


@dataclass
class Problems:
    """The nodes that could not be imported so far."""

    nodes: list[UnsupportedNode] = field(default_factory=list[UnsupportedNode])
    imported: int = 0
    """How many nodes of functions and inner graphs were imported."""

    def count(self, nodes: int = 1) -> None:
        """So many more of these; raises `OnnxImportError` if there are too many."""
        self.imported += nodes
        if self.imported > MAX_NODES:
            raise OnnxImportError(f"functions and loops of the model, written out, have more than {MAX_NODES} nodes")

    def add(self, node: NodeProto, reason: str, prefix: str = "") -> None:
        """Notes a node; `prefix` names those in whose functions it is."""
        domain = "" if node.domain in DEFAULT_DOMAINS else f"{node.domain}."
        name = node.name or next(iter(node.output), "")
        self.nodes.append(UnsupportedNode(prefix + name, domain + node.op_type, reason))


@dataclass
class GraphImporter:
    """Imports the nodes of one graph, or of the body of one function, into the block that is open."""

    model: Model
    bb: BlockBuilder
    opsets: Mapping[str, int]
    hints: Mapping[str, TensorType]
    problems: Problems
    environment: Environment
    in_dataflow: bool
    prefix: str = ""
    """What names of nodes begin with: the names of the nodes whose functions these are."""
    is_inner: bool = False
    """Whether this is no graph of its own, but the body of a node."""
    is_repeated: bool = False
    """Whether these nodes are in the body of a loop."""
    seed: Expr | None = None
    """The parameter that random numbers depend on, if the program has one: an `i64`."""

    def within(
        self,
        environment: Environment,
        *,
        hints: Mapping[str, TensorType] | None = None,
        opsets: Mapping[str, int] | None = None,
        prefix: str | None = None,
        is_repeated: bool = False,
    ) -> GraphImporter:
        """An importer of another graph at the same place."""
        return GraphImporter(
            self.model,
            self.bb,
            self.opsets if opsets is None else opsets,
            {} if hints is None else hints,
            self.problems,
            environment,
            self.in_dataflow,
            self.prefix if prefix is None else prefix,
            is_inner=True,
            is_repeated=self.is_repeated or is_repeated,
            seed=self.seed,
        )

    def run(self, nodes: Iterable[NodeProto]) -> None:
        """Imports nodes."""
        for node in nodes:
            if self.is_inner:
                self.problems.count()
            self._node(node)

    def initialize(self, graph: GraphProto, *, named: bool = False) -> None:
        """Makes the initializers known; `named` ones become weights of their names, which have to be unique."""
        for tensor in graph.initializer:
            name = tensor.name if named else None
            self.environment[tensor.name] = Value.of(self.model.array(tensor), name=name)
        if graph.sparse_initializer:
            raise Refusal("sparse initializers are not supported")

    def require_control_flow(self) -> None:
        """Called before a branch or loop is emitted: a dataflow region has none."""
        if self.in_dataflow:
            raise NeedsControlFlow

    def value(self, name: str) -> Value | None:
        """What a name stands for; `None` if it belongs to what could not be imported."""
        if name not in self.environment:
            raise Refusal(f"the name {name} is not defined before its use")
        return self.environment[name]

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

    def refined(self, value: Value, hint: TensorType | None) -> Value:
        """A value with the constant dimensions that the model says, where they could not be found; they are checked."""
        if value.known is not None or hint is None or hint.dims is None or len(hint.dims) != len(value.shape):
            return value
        said = [new if new is not None else old for old, new in zip(value.shape, hint.dims, strict=True)]
        if all(old is new or old.is_constant for old, new in zip(value.shape, said, strict=True)):
            return value
        return Value(self.bb.match_cast(value.expr(self.bb), TensorType(said, value.dtype)))

    def settled(self, value: Expr, hint: TensorType | None) -> Expr:
        """A tensor with symbols for the dimensions that are not known; what the model says of them is checked."""
        info = value.type
        if isinstance(info, TensorType) and any(_is_too_large(dim) for dim in info.dims or ()):
            raise Refusal(f"the result would have the type {info}")
        if not isinstance(info, TensorType) or info.known_dims is not None:
            return value
        said = None if hint is None else hint.dims
        rank = len(info.dims) if info.dims is not None else None if said is None else len(said)
        if rank is None:
            raise Refusal("the rank of the result is not known while importing")
        if said is None or len(said) != rank:
            said = (None,) * rank
        known = info.dims or (None,) * rank
        dims: list[Any] = []
        for dim, hinted in zip(known, said, strict=True):
            if dim is None and hinted is not None and hinted.is_constant:
                dim = hinted
            if dim is None:
                name = self.bb.fresh_symbol("d")
                self.bb.frame.taken.add(name)
                dim = symbol(name)
            dims.append(dim)
        return self.bb.match_cast(value, TensorType(dims, info.dtype))


def _is_too_large(dim: Dim | None) -> bool:
    """Whether a dimension is known to be no number of elements of any memory."""
    known = None if dim is None else dim.constant_value
    return known is not None and known >= MAX_DIMENSION
