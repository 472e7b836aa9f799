"""A model as a module: parameters, the graph, and the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import onnx
from onnx import GraphProto, ValueInfoProto
from xdsl.dialects.builtin import ModuleOp

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.dtypes import element_type
from relax_dialect.frontend.onnx.dynamic import fixed_dimensions
from relax_dialect.frontend.onnx.errors import NeedsControlFlow, OnnxImportError, Refusal
from relax_dialect.frontend.onnx.graph import MALFORMED, Environment, GraphImporter, Problems
from relax_dialect.frontend.onnx.model import Model, check_model
from relax_dialect.frontend.onnx.survey import check_size, find_unsupported
from relax_dialect.frontend.onnx.tensor_lists import TensorList
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.dims.atoms import is_symbol_name

UNKNOWN = -1
"""What some exporters write for a dimension that they do not know."""


@dataclass
class Importer:
    """Imports one model."""

    model: Model
    dynamic: bool = False
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """Symbols by `dim_param`."""

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

    def _fixed(self) -> dict[str, frozenset[int] | None]:
        """The dimensions of inputs that stay constants when all others become symbols; `None` stands for all."""
        return fixed_dimensions(self.model.proto.graph.node) if self.dynamic else {}

    # The function

    def _build(self, entry: str, *, in_dataflow: bool) -> ModuleOp:
        bb, graph, problems = BlockBuilder(), self.model.proto.graph, Problems()
        self._names.clear()
        params = self._parameters(graph)
        names = _identifiers(params)
        function = bb.function(entry, {names[name]: info for name, info in params.items()})
        try:
            with function as values:
                environment: Environment = dict(zip(params, map(Value, values), strict=True))
                importer = GraphImporter(
                    self.model, bb, self.model.opsets, self._hints(), problems, environment, in_dataflow
                )
                importer.initialize(graph, named=True)
                results = self._in_dataflow(importer) if in_dataflow else self._results(importer)
                bb.emit_func_output(results[0] if len(results) == 1 else results)
        except _Unsupported:
            raise OnnxImportError.unsupported(problems.nodes) from None
        return bb.finalize()

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
        return [_result(value, importer.bb) for value in values if value is not None]

    # Types

    def _parameters(self, graph: GraphProto) -> dict[str, StructInfo]:
        given = {tensor.name for tensor in graph.initializer}
        fixed = self._fixed()
        return {
            each.name: self._type(each, fixed.get(each.name, frozenset()))
            for each in graph.input
            if each.name not in given
        }

    def _type(self, info: ValueInfoProto, fixed: frozenset[int] | None) -> TensorType:
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            raise Refusal(
                f"the input {info.name} is a {(kind or 'value').removesuffix('_type')}; tensors are supported"
            )
        tensor = info.type.tensor_type
        if not tensor.HasField("shape"):
            raise Refusal(f"the rank of the input {info.name} is not known")
        rank = len(tensor.shape.dim)
        dims = [
            self._dim(dim, info.name, at, fixed is None or at in fixed or at - rank in fixed)
            for at, dim in enumerate(tensor.shape.dim)
        ]
        return TensorType(dims, element_type(tensor.elem_type))

    def _dim(self, dim: onnx.TensorShapeProto.Dimension, name: str, at: int, fixed: bool) -> Dim:
        if dim.HasField("dim_value") and dim.dim_value != UNKNOWN:
            if not 0 <= dim.dim_value < 1 << 40:
                raise Refusal(f"dimension {at} of the input {name} is {dim.dim_value}")
            if not self.dynamic or fixed:
                return constant(dim.dim_value)
        # Some exporters write "?" for every dimension that they do not know; that is no name.
        named = any(letter.isalnum() for letter in dim.dim_param)
        key = dim.dim_param if named else f"{name}_{at}"
        if key not in self._names:
            self._names[key] = _unused(_symbol_name(key), self._names.values())
        return symbol(self._names[key])

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
        return hints


def _result(value: Value, bb: BlockBuilder) -> Expr:
    """What a program gives for an output: a tensor, or a tuple of the items of a sequence whose length is known."""
    if isinstance(value, TensorList) and value.items is not None:
        return op.tuple(*(item.expr(bb) for item in value.items))
    return value.expr(bb)


class _Unsupported(Exception):
    """Nodes could not be imported."""


def _identifiers(names: Iterable[str]) -> dict[str, str]:
    """Names of parameters as text has them."""
    found: dict[str, str] = {}
    for name in names:
        found[name] = _unused(_symbol_name(name), found.values())
    return found


def _symbol_name(name: str) -> str:
    clean = re.sub(r"\W", "_", name, flags=re.ASCII)
    return clean if is_symbol_name(clean) else f"n_{clean}"


def _unused(name: str, taken: Iterable[str]) -> str:
    used = set(taken)
    return name if name not in used else next(made for made in _numbered(name) if made not in used)


def _numbered(name: str) -> Iterator[str]:
    index = 1
    while True:
        yield f"{name}_{index}"
        index += 1
