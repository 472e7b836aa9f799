"""A model as a module: what is not supported, parameters, the nodes of the graph in order, and the results.

A program has strings of a model as their positions in a list, if it only compares them with strings of the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto
from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx import functions
from relax_dialect.frontend.onnx.control_flow import continued
from relax_dialect.frontend.onnx.evaluation import evaluate
from relax_dialect.frontend.onnx.functions import MODERN, has_body, local_function, modernized
from relax_dialect.frontend.onnx.model import DEFAULT_DOMAINS, Model, check_model, opsets
from relax_dialect.frontend.onnx.node import (
    MALFORMED,
    MAX_NODES,
    Environment,
    GraphScope,
    Node,
    Problems,
    attributes_of,
    find,
    schema_of,
)
from relax_dialect.frontend.onnx.parameters import GivenShapes, Parameters, is_sequence, ranks_of_use
from relax_dialect.frontend.onnx.strings import as_texts, codes, joined, known_positions, result, texts_of
from relax_dialect.frontend.onnx.values import (
    COMPUTED,
    OTHER,
    ClassMap,
    NeedsControlFlow,
    OnnxImportError,
    Refusal,
    Strings,
    TensorList,
    Texts,
    UnknownRank,
    UseFunction,
    Value,
)
from relax_dialect.ops.structure import STRINGS
from relax_dialect.scope import find_function
from relax_dialect.struct_info.types import ObjectType, PrimType, StructInfo, TensorType
from tir_dialect.dims import constant
from tir_dialect.dtypes import dtype_name

_KEYS = frozenset({"cats_strings", "classes_strings", "keys_strings", "pool_strings"})
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


@dataclass(frozen=True)
class StringInputs:
    """The inputs of strings that nodes look at or move; others are objects that only pass through."""

    names: frozenset[str]
    are_positions: bool
    """Whether a program has their positions in a list that the model gives: all are only compared with strings of the
    model. Else it has the strings.
    """


def string_inputs(graph: GraphProto) -> StringInputs:
    """How a program has the inputs of strings."""
    users: dict[str, list[NodeProto]] = {}
    for node in _nodes(graph.node):
        for name in node.input:
            users.setdefault(name, []).append(node)
    constants = {each.name for each in graph.initializer}
    constants |= {name for node in _nodes(graph.node) if node.op_type == "Constant" for name in node.output}
    results = {each.name for each in graph.output}

    def looked_at(name: str) -> Iterator[bool]:
        """For each node that looks at a string, or moves it, whether its position in a list is enough."""
        pending, seen = [(name, False)], set[str]()
        while pending:
            each, is_moved = pending.pop()
            if each in seen:
                continue
            seen.add(each)
            if is_moved and each in results:
                yield False
            for node in users.get(each, ()):
                is_compared = node.op_type == "Equal" and any(name in constants for name in node.input)
                if node.op_type in _UNSEEN:
                    pending += [(output, is_moved) for output in node.output]
                elif node.op_type in _MOVES or node.op_type == "Cast":
                    yield True
                    pending += [(output, True) for output in node.output]
                else:
                    yield node.op_type in _ENCODERS or is_compared

    found = {
        info.name: [*looked_at(info.name)]
        for info in graph.input
        if info.type.tensor_type.elem_type == TensorProto.STRING and info.name not in constants
    }
    return StringInputs(
        frozenset(name for name, uses in found.items() if uses), all(use for uses in found.values() for use in uses)
    )


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g.node)


_MOVES = frozenset(
    {
        "ArrayFeatureExtractor",
        "Compress",
        "Concat",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Reshape",
        "Slice",
    }
    | {"Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"}
)
"""Operators of strings that look at none of them."""

_COMPUTERS = frozenset({"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "Tokenizer"})
"""Operators that compute with strings."""

_ENCODERS = frozenset({"CategoryMapper", "LabelEncoder", "OneHotEncoder", "TfIdfVectorizer"})
"""Operators that make other things of strings."""


def _moved(graph: GraphImporter, proto: NodeProto, operands: Sequence[Value | None]) -> Sequence[Value | None]:
    """The outputs of a node that moves or compares strings: what it does to their positions."""
    if proto.op_type == "Cast" and any(each.name == "to" and each.i == TensorProto.STRING for each in proto.attribute):
        return operands
    if proto.op_type not in _MOVES and proto.op_type != "Equal":
        raise Refusal(COMPUTED)
    if any(isinstance(each, Texts) for each in operands):
        return _moved_texts(graph, proto, operands)
    lists = [each.vocabulary for each in operands if isinstance(each, Strings)]
    names = tuple(dict.fromkeys(name for each in lists for name in each))
    positions = [_positions(each, names, graph) if isinstance(each, Strings) else each for each in operands]
    made = graph.outputs(proto, positions)
    if proto.op_type == "Equal":
        return made
    return [None if each is None else Strings(each.expr(graph.bb), names) for each in made]


def _moved_texts(graph: GraphImporter, proto: NodeProto, operands: Sequence[Value | None]) -> Sequence[Value | None]:
    """The same for strings that only the program knows: what it does to their indices."""
    bb = graph.bb
    texts = [as_texts(bb, each) for each in operands if isinstance(each, Strings)]
    if proto.op_type == "Equal":
        return graph.outputs(proto, [Value(each) for each in codes(bb, texts)])
    indices, array = joined(bb, texts)
    moved = iter(indices)
    made = graph.outputs(proto, [Value(next(moved)) if isinstance(each, Strings) else each for each in operands])
    return [None if each is None else Texts(each.expr(bb), array) for each in made]


def _positions(value: Strings, names: tuple[str, ...], graph: GraphImporter) -> Value:
    """The indices of strings in a longer list."""
    if names[: len(value.vocabulary)] == value.vocabulary:
        return Value(value.at)
    table = np.array([names.index(each) for each in value.vocabulary], np.int64)
    return Value(op.take(graph.bb.const(table), value.at, 0))


def _described(proto: NodeProto, operands: Sequence[Value | None]) -> str:
    """The inputs of a node by name, with their types: `; its inputs are x: f32[n, 3] and w: f32[4, 2]`."""
    described: list[str] = []
    for name, operand in zip(proto.input, operands, strict=False):
        if operand is None:
            continue
        try:
            described.append(f"{name}: {dtype_name(operand.dtype)}[{', '.join(map(str, operand.shape))}]")
        except Refusal:  # no tensor of known shape
            return ""
    what = "input is" if len(described) == 1 else "inputs are"
    return f"; its {what} {' and '.join(described)}" if described else ""


class GraphImporter(GraphScope):
    """Imports the nodes of one graph, or of the body of one function, into the block that is open."""

    @override
    def run(self, nodes: Iterable[NodeProto], results: Iterable[str]) -> None:
        rest, wanted = deque(nodes), frozenset(results)
        while rest:
            node = rest.popleft()
            if self.is_inner:
                self.problems.count()
            if self._node(node, rest, wanted):
                return

    def _node(self, proto: NodeProto, rest: Iterable[NodeProto], wanted: AbstractSet[str]) -> bool:
        """Imports a node, and says whether the rest have been imported with it."""
        operands: Sequence[Value | None] = ()
        try:
            operands = [self.value(name) if name else None for name in proto.input]
            given = [name for name in proto.input if name]
            if any(self.environment[name] is None for name in given):
                self._define(proto, [None] * len(proto.output))
                return False
            with self.bb.at(self.prefix + (proto.name or next(iter(proto.output), proto.op_type))):
                try:
                    self._define(proto, self.outputs(proto, operands))
                except UnknownRank:
                    if proto.op_type != "If" or proto.domain not in DEFAULT_DOMAINS:
                        raise
                    self._continued(proto, operands, rest, wanted)
                    return True
        except MALFORMED as problem:
            reason = str(problem) or type(problem).__name__
            if isinstance(problem, VerifyException):  # of an operator, which does not know what the model calls things
                reason += _described(proto, operands)
            self.problems.add(proto, reason, self.prefix)
            self._define(proto, [None] * len(proto.output))
        return False

    def _continued(
        self, proto: NodeProto, operands: Sequence[Value | None], rest: Iterable[NodeProto], wanted: AbstractSet[str]
    ) -> None:
        """Imports a branch whose outputs have several ranks, and in it the nodes that use them; others before it."""
        names, users, others, needed = dict.fromkeys(proto.output), list[NodeProto](), list[NodeProto](), {*wanted}
        for node in rest:
            read = [name for each in _nodes([node]) for name in each.input]
            if any(name in names for name in read):
                users.append(node)
                names |= dict.fromkeys(node.output)
                needed.update(read)
            else:
                others.append(node)
        self.run(others, needed)
        version = self.opsets[""]
        attributes = attributes_of(proto, "", version, self.model)
        node = Node(self, proto.op_type, version, operands, attributes, tuple(proto.output))
        made = [name for name in names if name in wanted]
        for name, value in zip(made, continued(node, users, made), strict=True):
            try:
                self.environment[name] = Value(self.settled(value, self.hints.get(name)))
            except UnknownRank:
                self.environment[name] = Value(value)  # a result of the program has the rank that it has

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
        if proto.op_type in _ENCODERS:
            known = [
                known_positions(self.bb, each, compared_strings(self.model.proto)) if isinstance(each, Texts) else each
                for each in operands
            ]
            node = replace(node, inputs=known)
        elif proto.op_type not in _COMPUTERS and any(isinstance(each, Strings) for each in operands):
            return _moved(self, proto, operands)
        made = None if domain else self._evaluated(node)
        if made is not None:
            return made
        converter = find(proto.op_type, version, domain)
        if converter is not None:
            try:
                # Results as values whose rank is known, and whose dimensions have names.
                result = converter(node if domain or version >= MODERN else modernized(node))
                several = [result] if isinstance(result, Expr | Value) else list(result)
                names = [*proto.output, *[""] * len(several)]
                return [
                    Value(self.settled(each, self.hints.get(name))) if isinstance(each, Expr) else each
                    for each, name in zip(several, names, strict=False)
                ]
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


@dataclass
class Importer:
    """Imports one model."""

    model: Model
    dynamic: bool = False
    shapes: GivenShapes = ()
    seed: str | None = None
    strings: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    """By input or output, the strings for whose positions it stands."""

    def module(self, entry: str) -> ModuleOp:
        """The module; raises `OnnxImportError`."""
        try:
            problems = find_unsupported(self.model)
            if problems.nodes:
                raise OnnxImportError.unsupported(problems.nodes)
            check_model(self.model)
            check_size(self.model)
            try:
                return self._build(entry, in_dataflow=True)
            except NeedsControlFlow:
                return self._build(entry, in_dataflow=False)
        except MALFORMED as problem:
            raise OnnxImportError(f"the model cannot be imported: {problem}") from problem
        except RecursionError as error:
            raise OnnxImportError("the model cannot be imported: its graphs are nested too deeply") from error

    # The function

    def _build(self, entry: str, *, in_dataflow: bool) -> ModuleOp:
        bb, graph, problems = BlockBuilder(), self.model.proto.graph, Problems()
        seen = string_inputs(graph)
        encoded = seen.names if seen.are_positions else frozenset[str]()
        params = self._with_seed(Parameters(graph, self.dynamic, self.shapes, seen.names).types())
        texts = {name: params[name] for name in seen.names - encoded}
        params |= dict.fromkeys(texts, ObjectType())
        known = compared_strings(self.model.proto) if encoded else ()
        self.strings = {name: ArrayAttr([StringAttr(each) for each in known]) for name in params if name in encoded}
        names = [output.name for output in graph.output]
        is_tuple = len(names) == 1 and is_sequence(graph.output[0])  # its items are the results, if they are known
        function = bb.function(entry, params, result_names=None if is_tuple else names)
        try:
            with function as parameters:
                values = list(parameters)
                lists = {info.name for info in graph.input if is_sequence(info)}
                environment: Environment = {
                    name: TensorList.of_stack(value)
                    if name in lists
                    else Strings(value, (*known, OTHER))
                    if name in encoded
                    else Value(value)
                    for name, value in zip(params, values, strict=True)
                }
                importer = GraphImporter(
                    self.model, bb, self.model.opsets, self._hints(), problems, environment, in_dataflow
                )
                if self.seed is not None:
                    importer.seed = values[-1]
                importer.initialize(graph, named=True)
                for name, array in zip(params, values, strict=True):
                    if name in texts:
                        kind = texts[name]
                        assert isinstance(kind, TensorType)  # that of positions
                        environment[name] = texts_of(importer, array, kind.dims or ())
                results = self._in_dataflow(importer) if in_dataflow else self._results(importer)
                bb.emit_func_output(results[0] if len(results) == 1 else results)
        except _Unsupported:
            raise OnnxImportError.unsupported(problems.nodes) from None
        module = bb.finalize()
        func = find_function(module, entry)
        if self.strings and func is not None:
            func.attributes[STRINGS] = DictionaryAttr(self.strings)
        return module

    def _with_seed(self, params: Mapping[str, StructInfo]) -> dict[str, StructInfo]:
        """The parameters, and behind them the seed of random numbers if there is to be one."""
        if self.seed is None:
            return {**params}
        if self.seed in params:
            raise Refusal(f"the model has an input {self.seed}; give the seed another name")
        return {**params, self.seed: PrimType(i64)}

    def _in_dataflow(self, importer: GraphImporter) -> list[Expr]:
        bb = importer.bb
        with bb.dataflow():
            return [bb.emit_output(value) for value in self._results(importer)]

    def _results(self, importer: GraphImporter) -> list[Expr]:
        graph = self.model.proto.graph
        importer.run(graph.node, [output.name for output in graph.output])
        if importer.problems.nodes:
            raise _Unsupported
        values = [importer.value(output.name) for output in graph.output]
        for output, value in zip(graph.output, values, strict=True):
            if isinstance(value, Strings) and OTHER in value.vocabulary:
                raise Refusal(
                    f"{output.name} would be strings of an input, of which a program only has the positions of "
                    "those that the model names"
                )
            if isinstance(value, Strings | ClassMap) and not isinstance(value, Texts):
                names = value.vocabulary if isinstance(value, Strings) else value.labels
                self.strings[output.name] = ArrayAttr([StringAttr(name) for name in names])
        return [_result(value, importer.bb) for value in values if value is not None]

    def _hints(self) -> dict[str, TensorType]:
        """What the model says of its tensors: constant dimensions, and ranks."""
        proto = self.model.proto
        hints: dict[str, TensorType] = {}
        for info in (*proto.graph.value_info, *proto.graph.output):
            tensor = info.type.tensor_type
            if info.type.WhichOneof("value") == "tensor_type" and tensor.HasField("shape"):
                dims = [
                    constant(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None
                    for dim in tensor.shape.dim
                ]
                hints[info.name] = TensorType([None] * len(dims) if self.dynamic else dims, None)
        squeezed = [node.output[0] for node in proto.graph.node if node.op_type == "Squeeze" and len(node.input) == 1]
        if any(name not in hints for name in squeezed):
            ranks = ranks_of_use(proto.graph)
            hints = {name: TensorType([None] * ranks[name], None) for name in squeezed if name in ranks} | hints
        return hints


def _result(value: Value, bb: BlockBuilder) -> Expr:
    """What a program gives for an output: a tensor, or a tuple of the items of a sequence whose length is known; for
    strings their array, or their indices in a list that is known.
    """
    if isinstance(value, Texts):
        return result(bb, value)
    if isinstance(value, Strings):
        return value.at
    if isinstance(value, TensorList) and value.items is not None:
        return op.tuple(*(item.expr(bb) for item in value.items))
    return value.expr(bb)


class _Unsupported(Exception):
    """Nodes could not be imported."""


def find_unsupported(model: Model) -> Problems:
    """The nodes whose operators there is no way to import: of the graph, of those in it, and of functions it calls."""
    survey = _Survey(model.proto.functions)
    survey.look(model.proto.graph.node, model.opsets)
    return survey.problems


def _why(node: NodeProto, domain: str, version: int) -> str:
    """Why there is no way to import a node, and what can be done."""
    if node.op_type in _COMPUTERS:
        return COMPUTED
    if not domain and schema_of(node.op_type, version, "") is None:
        return (
            f"ONNX has no such operator in version {version}; exporters leave what they cannot convert: write it in "
            "other operators, or register a converter (xdsl_relax.extend.onnx_converter)"
        )
    converter = f"xdsl_relax.extend.onnx_converter({node.op_type!r}, domain={domain!r})"
    return f"the operator is not supported{f': register a converter ({converter})' if domain else ''}"


@dataclass
class _Survey:
    """One look at all nodes; at those of a function once."""

    functions: Sequence[FunctionProto]
    problems: Problems = field(default_factory=Problems)
    _seen: set[int] = field(default_factory=set[int])

    def look(self, nodes: Iterable[NodeProto], versions: Mapping[str, int]) -> None:
        """Notes what is not supported."""
        for node in nodes:
            domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
            version = versions.get(domain, 0)
            called = local_function(node, self.functions)
            if called is not None:
                if id(called) not in self._seen:
                    self._seen.add(id(called))
                    self.look(called.node, {**versions, **opsets(called.opset_import)})
            elif find(node.op_type, version, domain) is None and not has_body(node, version, self.functions):
                self.problems.add(node, _why(node, domain, version))
            for graph in _graphs(node):
                self.look(graph.node, versions)


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
            counts[id(called)] = MAX_NODES + 1
            counts[id(called)] = written_out(called.node)
        return counts[id(called)]

    Problems().count(sum(map(body, model.proto.graph.node)))


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH)
