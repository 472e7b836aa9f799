"""A node while it is imported, with the scope of its graph: operands, attributes with the defaults of the operator's
version, and what converters need.

`converts` says which function imports which operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol, Self, TypeAlias, cast, overload

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder import BlockBuilder, BuilderError, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.index import ONNX
from relax_dialect.frontend.onnx.model import DEFAULT_DOMAINS, Model
from relax_dialect.frontend.onnx.values import (
    Array,
    NeedsControlFlow,
    OnnxImportError,
    Refusal,
    UnknownRank,
    UnsupportedNode,
    Value,
    as_strings,
    element_type,
)
from relax_dialect.loading import LazyTable, names_in
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, constant, symbol, to_dim

MAX_RANK = 64
"""Tensors of more dimensions are refused: a list of axes could be of any length."""


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
class GraphScope(ABC):
    """What is known about a graph where its nodes are imported: values by name, and what the model says about them."""

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
    turns: tuple[tuple[str, Dim | Value], ...] = ()
    """The loops in whose bodies these nodes are, from outside in: their names, and the number of the iteration."""
    kernels: dict[object, str] = field(default_factory=dict[object, str])
    """PrimFuncs of the module that are called again, by what they compute."""
    seed: Expr | None = None
    """The parameter that random numbers depend on, if the program has one: an `i64`."""

    def within(
        self,
        environment: Environment,
        *,
        hints: Mapping[str, TensorType] | None = None,
        opsets: Mapping[str, int] | None = None,
        prefix: str | None = None,
        turn: tuple[str, Dim | Value] | None = None,
    ) -> Self:
        """The scope of another graph at the same place."""
        return replace(
            self,
            opsets=self.opsets if opsets is None else opsets,
            hints={} if hints is None else hints,
            environment=environment,
            prefix=self.prefix if prefix is None else prefix,
            is_inner=True,
            turns=self.turns if turn is None else (*self.turns, turn),
        )

    @abstractmethod
    def run(self, nodes: Iterable[NodeProto], results: Iterable[str]) -> None:
        """Imports the nodes of a graph, of which these are the results."""

    def initialize(self, graph: GraphProto, *, named: bool = False) -> None:
        """Makes the initializers known; `named` ones become weights of their names, which have to be unique."""
        for tensor in graph.initializer:
            name = tensor.name if named else None
            array = self.model.array(tensor)
            self.environment[tensor.name] = as_strings(array, self.bb) or Value.of(array, name=name)
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
            raise UnknownRank("the rank of the result is not known while importing")
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


@dataclass(frozen=True)
class Node:
    """One node of a graph, and the scope of its graph."""

    graph: GraphScope
    op_type: str
    version: int
    """Of the operator set."""

    inputs: Sequence[Value | None]
    """The operands; `None` for optional ones that are absent."""

    attributes: Mapping[str, Any]
    """The attributes, those with defaults always."""

    outputs: Sequence[str]
    """The names of the outputs; empty for those that nobody wants."""

    @property
    def bb(self) -> BlockBuilder:
        """The builder."""
        return self.graph.bb

    # Operands

    def has(self, index: int) -> bool:
        """Whether an operand is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        """An operand; `Refusal` if it is absent."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise Refusal(f"operand #{index} is missing")
        return found

    def __getitem__(self, index: int) -> Expr:
        """An operand as a value of the program."""
        return self.value(index).expr(self.bb)

    def optional(self, index: int) -> Expr | None:
        """An operand as a value of the program, or `None` if it is absent."""
        return self[index] if self.has(index) else None

    def dtype(self, index: int = 0) -> Attribute:
        """The element type of an operand."""
        return self.value(index).dtype

    def shape(self, index: int = 0) -> tuple[Dim, ...]:
        """The dimensions of an operand."""
        return self.value(index).shape

    def rank(self, index: int = 0) -> int:
        """The rank of an operand."""
        return len(self.shape(index))

    def known(self, index: int) -> Array | None:
        """The elements of an operand, if they are known while importing."""
        return self.value(index).elements if self.has(index) else None

    def stored(self, index: int) -> Array | None:
        """The elements of an operand of any size, if they are numbers in the file; to pack them otherwise, not to
        compute with them.
        """
        found = self.value(index).known if self.has(index) else None
        return None if found is None or found.dtype == object else found

    def dims(self, index: int) -> tuple[Dim, ...] | None:
        """The elements of an operand as dimensions, if they are known."""
        found = self.known(index)
        return None if found is None else tuple(to_dim(_whole(each)) for each in found.reshape(-1).tolist())

    def ints(self, index: int) -> tuple[int, ...] | None:
        """The elements of an operand as integers, if they are known and none is symbolic."""
        found = self.known(index)
        if found is None or found.dtype == object:
            return None
        return tuple(int(each) for each in found.reshape(-1).tolist())

    def floats(self, index: int) -> tuple[float, ...] | None:
        """The elements of an operand as floats, if they are known and none is symbolic."""
        found = self.numbers(index)
        return None if found is None else tuple(map(float, found))

    def numbers(self, index: int) -> tuple[float, ...] | None:
        """The elements of an operand as Python's numbers, if they are known and none is symbolic."""
        found = self.known(index)
        return None if found is None or found.dtype == object else tuple(found.reshape(-1).tolist())

    def length(self, index: int) -> int:
        """The number of elements of an operand that is a list of axes or dimensions; `Refusal` if it is not known."""
        shape = self.shape(index)
        count = 1 if not shape else shape[0].constant_value
        if count is None or len(shape) > 1:
            raise Refusal(f"the length of operand #{index} is not known while importing")
        if count > MAX_RANK:
            raise Refusal(f"operand #{index} has {count} elements, but at most {MAX_RANK} dimensions are supported")
        return count

    def require_list(self, index: int, what: str) -> None:
        """Fails unless an operand has rank 1."""
        if self.rank(index) != 1:
            raise Refusal(f"expected {what} to have rank 1, got rank {self.rank(index)}")

    # Attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or a default if it is absent."""
        found = self.attributes.get(name)
        return default if found is None else found

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.attribute(name, default))

    def number(self, name: str, default: float = 0.0) -> float:
        """A floating-point attribute."""
        return float(self.attribute(name, default))

    def integers(self, name: str) -> tuple[int, ...] | None:
        """An attribute that is a list of integers, or `None` if it is absent."""
        found = self.attributes.get(name)
        return None if found is None else tuple(int(each) for each in found)

    def strings(self, name: str) -> tuple[str, ...]:
        """An attribute that is a list of strings; empty if it is absent."""
        found = self.attributes.get(name) or ()
        return tuple(each.decode() if isinstance(each, bytes) else str(each) for each in found)

    def text(self, name: str, default: str = "") -> str:
        """A textual attribute."""
        found = self.attribute(name, default)
        return found.decode() if isinstance(found, bytes) else str(found)

    def axis(self, name: str = "axis", default: int = 0, rank: int | None = None) -> int:
        """An axis counted from the front; `Refusal` if it is out of range."""
        return from_front(self.integer(name, default), self.rank() if rank is None else rank)

    def element_type(self, name: str) -> Attribute | None:
        """An attribute that names an element type, or `None` if it is absent."""
        found = self.attributes.get(name)
        return None if not found else element_type(int(found))

    # The program

    def const(self, value: Any, dtype: Attribute) -> Expr:
        """A constant scalar or array of a dtype."""
        return self.bb.const(np.asarray(value), dtype)

    def like(self, value: float, index: int = 0) -> Expr:
        """A constant scalar of an operand's dtype."""
        return self.const(value, self.dtype(index))

    def hint(self, output: int = 0) -> TensorType | None:
        """What the model says of an output."""
        name = self.outputs[output] if output < len(self.outputs) else ""
        return self.graph.hints.get(name)

    def hinted_dims(self, rank: int, output: int = 0) -> tuple[Dim | None, ...]:
        """The dimensions that the model says an output has."""
        info = self.hint(output)
        if info is None or info.dims is None or len(info.dims) != rank:
            return (None,) * rank
        return tuple(info.dims)

    def run_time_dims(self, tensor: Expr, hints: Sequence[Dim | None] | None = None) -> tuple[Dim, ...]:
        """The elements of an integer tensor of rank 1 as dimensions: symbols, unless hints say what they are, which is
        then checked. If nothing else says how many there are, they are as many as the hints.
        """
        wide = tensor if str(tensor.dtype) == "i64" else op.astype(tensor, "i64")
        length = wide.shape[0].constant_value if wide.shape and wide.shape[0] is not None else None
        if length is None and hints is not None and wide.ndim == 1:
            length = len(hints)
            wide = self.bb.match_cast(wide, TensorType([length], wide.dtype))
        if length is None or length > MAX_RANK:
            raise Refusal("the length of a shape is not known while importing, or too large")
        given = hints if hints is not None and len(hints) == length else (None,) * length
        dims = [symbol(self.fresh()) if dim is None or not dim.is_constant else dim for dim in given]
        self.bb.match_cast(op.tensor_to_shape(wide), ShapeType(dims))
        return tuple(dims)

    def named(self, dims: Sequence[Dim], hints: Sequence[Dim | None] | None = None) -> tuple[Dim, ...]:
        """Dimensions with symbols for those that are expressions, as a kernel has to be able to solve them."""
        if all(dim.is_constant or dim.as_symbol is not None for dim in dims):
            return tuple(dims)
        return self.run_time_dims(op.shape_to_tensor(dims), hints)

    def fresh(self) -> str:
        """A symbol that is not used yet."""
        name = self.bb.fresh_symbol("d")
        self.bb.frame.taken.add(name)
        return name

    @overload
    def te(self, function: Callable[[te.Tensor], te.Tensor], x: Expr, /, *, name: str | None = None) -> Expr: ...
    @overload
    def te(
        self, function: Callable[[te.Tensor, te.Tensor], te.Tensor], x: Expr, y: Expr, /, *, name: str | None = None
    ) -> Expr: ...
    @overload
    def te(self, function: Callable[..., te.Tensor], *arguments: Expr, name: str | None = None) -> Expr: ...
    def te(self, function: Callable[..., te.Tensor], *arguments: Expr, name: str | None = None) -> Expr:
        """The result of a kernel that `function` describes."""
        return self.te_all(lambda *tensors: [function(*tensors)], *arguments, name=name or function.__name__)[0]

    def te_all(
        self, function: Callable[..., Sequence[te.Tensor]], *arguments: Expr, name: str | None = None
    ) -> tuple[Expr, ...]:
        """The results of a kernel that `function` describes."""
        hint = name if name is not None and name.isidentifier() else None
        made = self.bb.emit_te(function, *arguments, name_hint=hint)
        return (made,) if isinstance(made, Expr) else made


def from_front(axis: int, rank: int) -> int:
    """An axis counted from the front; `Refusal` if it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise Refusal(f"the axis {axis} is not within rank {rank}")
    return axis % rank if rank else 0


def fixed(dims: Sequence[Dim], what: str) -> tuple[int, ...]:
    """Dimensions as integers; `Refusal` if one is symbolic."""
    found = [dim.constant_value for dim in dims]
    if any(each is None for each in found):
        raise Refusal(f"{what} {', '.join(map(str, dims))} is not constant")
    return tuple(each for each in found if each is not None)


def one() -> Dim:
    """The dimension 1."""
    return constant(1)


def _whole(element: Any) -> Any:
    return element if isinstance(element, Dim) else int(element)


class Parameter(Protocol):
    """An attribute in the description of an operator."""

    name: str
    default_value: AttributeProto


class Schema(Protocol):
    """The description of an operator, as far as it is used here; the onnx package types it in part only."""

    attributes: Mapping[str, Parameter]
    since_version: int
    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int) -> bytes: ...

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: Sequence[bytes]
    ) -> bytes: ...


def attributes_of(node: NodeProto, domain: str, version: int, model: Model) -> dict[str, Any]:
    """Attributes by name: numbers, bytes, lists, graphs, and arrays for tensors. Raises `Refusal`."""
    found = dict(defaults(node.op_type, version, domain))
    for each in node.attribute:
        if each.ref_attr_name:
            raise Refusal(f"the attribute {each.name} refers to {each.ref_attr_name}, but the node is in no function")
        found[each.name] = _value(each, model)
    return found


def _value(attribute: AttributeProto, model: Model) -> Any:
    if attribute.type == AttributeProto.TENSOR:
        return model.array(attribute.t)
    if attribute.type in (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS):
        raise Refusal(f"the attribute {attribute.name} is a sparse tensor, which is not supported")
    try:
        return onnx.helper.get_attribute_value(attribute)
    except ValueError as error:
        raise Refusal(f"the attribute {attribute.name} is malformed: {error}") from None


@cache
def schema_of(name: str, version: int, domain: str) -> Schema | None:
    """What the onnx package knows of an operator in a version, or `None`."""
    try:
        return cast("Schema", onnx.defs.get_schema(name, version, domain))
    except onnx.defs.SchemaError:
        return None


@cache
def defaults(name: str, version: int, domain: str) -> dict[str, Any]:
    """The default attributes of an operator."""
    schema = schema_of(name, version, domain)
    if schema is None:
        return {}
    return {key: onnx.helper.get_attribute_value(value) for key, value in default_attributes(schema).items()}


def default_attributes(schema: Schema) -> dict[str, AttributeProto]:
    """The attributes of an operator that have defaults, with those."""
    found = {each.name: each.default_value for each in schema.attributes.values()}
    return {name: value for name, value in found.items() if value.type}


Result: TypeAlias = "Expr | Value | Sequence[Expr | Value | None]"
"""What a node computes: its output, or its outputs in order."""

Converter: TypeAlias = "Callable[[Node], Result]"

CONVERTERS = LazyTable[dict[int, Converter]]("relax_dialect.frontend.onnx", names_in(ONNX, ""))
"""By operator, `Relu` or `com.microsoft.Gelu`, then by version."""


def converts(*names: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators of a domain, from a version of its operator set on."""

    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS.enter(
                _key(domain, name), converter.__module__, lambda known: {**(known or {}), since: converter}
            )
        return converter

    return register


def find(name: str, version: int, domain: str = "") -> Converter | None:
    """The converter of an operator in a version, or `None`."""
    known = CONVERTERS.get(_key(domain, name), {})
    since = max((each for each in known if each <= version), default=None)
    return None if since is None else known[since]


def _key(domain: str, name: str) -> str:
    return f"{domain}.{name}" if domain else name
