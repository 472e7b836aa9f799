"""A model as a module: what is not supported, parameters, the graph, and the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import NeedsControlFlow, OnnxImportError, Refusal
from relax_dialect.frontend.onnx.functions import has_body, local_function
from relax_dialect.frontend.onnx.graph import GraphImporter
from relax_dialect.frontend.onnx.model import DEFAULT_DOMAINS, Model, check_model, opsets
from relax_dialect.frontend.onnx.node import MALFORMED, MAX_NODES, Environment, Problems
from relax_dialect.frontend.onnx.parameters import GivenShapes, Parameters, is_sequence, ranks_of_use
from relax_dialect.frontend.onnx.registry import find
from relax_dialect.frontend.onnx.values import ClassMap, Strings, TensorList, Value
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import PrimType, TensorType
from relax_dialect.symbols import find_function
from tir_dialect.dims import constant


@dataclass
class Importer:
    """Imports one model."""

    model: Model
    dynamic: bool = False
    shapes: GivenShapes = ()
    seed: str | None = None
    strings: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    """By output, the strings for whose places it stands."""

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
        params = self._with_seed(Parameters(graph, self.dynamic, self.shapes).types())
        names = [output.name for output in graph.output]
        is_tuple = len(names) == 1 and is_sequence(graph.output[0])  # its items are the results, if they are known
        function = bb.function(entry, params, result_names=None if is_tuple else names)
        try:
            with function as parameters:
                values = list(parameters)
                lists = {info.name for info in graph.input if is_sequence(info)}
                environment: Environment = {
                    name: TensorList.of_stack(value) if name in lists else Value(value)
                    for name, value in zip(params, values, strict=True)
                }
                importer = GraphImporter(
                    self.model, bb, self.model.opsets, self._hints(), problems, environment, in_dataflow
                )
                if self.seed is not None:
                    importer.seed = values[-1]
                importer.initialize(graph, named=True)
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
        importer.run(graph.node)
        if importer.problems.nodes:
            raise _Unsupported
        values = [importer.value(output.name) for output in graph.output]
        for output, value in zip(graph.output, values, strict=True):
            if isinstance(value, Strings | ClassMap):
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


STRINGS = "onnx.strings"
"""Attribute of a function: for results that stand for strings, and for columns of maps, what these are."""


def _result(value: Value, bb: BlockBuilder) -> Expr:
    """What a program gives for an output: a tensor, or a tuple of the items of a sequence whose length is known; for
    strings their places in a list.
    """
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
            counts[id(called)] = MAX_NODES + 1
            counts[id(called)] = written_out(called.node)
        return counts[id(called)]

    Problems().count(sum(map(body, model.proto.graph.node)))


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH)
