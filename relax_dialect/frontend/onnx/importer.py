"""A model as a module: parameters, the graph, and the results."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, i64

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import NeedsControlFlow, OnnxImportError, Refusal
from relax_dialect.frontend.onnx.graph import MALFORMED, Environment, GraphImporter, Problems
from relax_dialect.frontend.onnx.model import Model, check_model
from relax_dialect.frontend.onnx.parameters import GivenShapes, Parameters
from relax_dialect.frontend.onnx.survey import check_size, find_unsupported
from relax_dialect.frontend.onnx.tensor_lists import TensorList
from relax_dialect.frontend.onnx.values import Value
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.dims import constant


@dataclass
class Importer:
    """Imports one model."""

    model: Model
    dynamic: bool = False
    shapes: GivenShapes = ()
    seed: str | None = None

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
        function = bb.function(entry, params, result_names=[output.name for output in graph.output])
        try:
            with function as parameters:
                values = list(parameters)
                environment: Environment = dict(zip(params, map(Value, values), strict=True))
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
        return bb.finalize()

    def _with_seed(self, params: dict[str, TensorType]) -> dict[str, TensorType | PrimType]:
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
        return hints


def _result(value: Value, bb: BlockBuilder) -> Expr:
    """What a program gives for an output: a tensor, or a tuple of the items of a sequence whose length is known."""
    if isinstance(value, TensorList) and value.items is not None:
        return op.tuple(*(item.expr(bb) for item in value.items))
    return value.expr(bb)


class _Unsupported(Exception):
    """Nodes could not be imported."""
