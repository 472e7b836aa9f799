"""An exported program as a module: parameters, weights, the graph, and the results.

A tensor may have two names, such as a buffer that the model also keeps as an attribute of something else. PyTorch lifts
the second one as a constant. It cannot decompose a program that changes one of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ModuleOp, i64

from relax_dialect.builder import BlockBuilder
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.complex_numbers import NO_COMPLEX, has_complex, separated
from relax_dialect.frontend.torch.complex_numbers import is_supported as is_complex_supported
from relax_dialect.frontend.torch.dtypes import element_type, is_complex, to_array
from relax_dialect.frontend.torch.graph import MALFORMED, GraphImporter, is_number
from relax_dialect.frontend.torch.guards import Guards, guarded, size_guards, without_marks
from relax_dialect.frontend.torch.layers import layer_decompositions
from relax_dialect.frontend.torch.program import (
    GETITEM,
    NO_CONVERTER,
    ExportedProgram,
    FxNode,
    InputSpec,
    Problems,
    Refusal,
    TorchImportError,
    inner_graphs,
    is_random,
    is_symbolic,
    is_tensor,
    name_of,
    nodes_of,
    output_keys,
    torch,
)
from relax_dialect.frontend.torch.recurrent import is_projected
from relax_dialect.frontend.torch.registry import CONVERTERS
from relax_dialect.frontend.torch.symbols import bounds_of, dim_of, dims_of, symbols_in
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.weights import MOST_IN_TEXT


def without_aliases(program: ExportedProgram) -> ExportedProgram:
    """The program with each of its tensors named once; itself if there are no two names of one."""
    # The inputs of the graph that are the same tensor as an earlier one, with the name of that.
    first, same = dict[Hashable, str](), dict[str, str]()
    for spec in program.graph_signature.input_specs:
        found = program.state_dict.get(spec.target or "", program.constants.get(spec.target or ""))
        if spec.kind.name not in ("BUFFER", "CONSTANT_TENSOR") or not is_tensor(found) or not found.numel():
            continue
        key = found.data_ptr(), tuple(found.shape), tuple(found.stride()), found.dtype
        if first.setdefault(key, spec.arg.name) != spec.arg.name:
            same[spec.arg.name] = first[key]
    if not same:
        return program
    library, values = torch(), dict[Any, Any]()
    source, graph = program.graph_module.graph, torch().fx.Graph()
    inputs = {node.name: node for node in source.nodes if node.op == "placeholder"}
    for node in source.nodes:
        if node.name in same:
            values[node] = values[inputs[same[node.name]]]
        elif node.op == "output":
            graph.output(library.fx.map_arg(node.args[0], values.__getitem__)).meta = dict(node.meta)
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    signature = program.graph_signature
    kept = [spec for spec in signature.input_specs if spec.arg.name not in same]
    whole: Any = program
    return library.export.ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=library.export.ExportGraphSignature(kept, signature.output_specs),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=whole.module_call_graph,
        example_inputs=whole.example_inputs,
        constants=program.constants,
        verifiers=whole.verifiers,
    )


def decomposition_table() -> Any:
    """PyTorch's decompositions of the operators that have no converter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own deprecations
        table = torch().export.default_decompositions()
        for operator in list(table.keys()):
            if name_of(operator) in CONVERTERS:
                table.pop(operator)
        table.update(layer_decompositions())
        return table


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """A program without mutation, whose operators are those of the registry and what PyTorch makes of others."""
    table = decomposition_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return without_aliases(program).run_decompositions(table)


@dataclass
class Importer:
    """Imports one program."""

    program: ExportedProgram
    seed: int | None = None
    """What random numbers are made of; `None` makes it a parameter of programs that draw some."""

    conditions: Sequence[str] = ()
    """What PyTorch says of the sizes that the program is for."""

    def module(self, entry: str) -> ModuleOp:
        """The module; raises `TorchImportError`."""
        problems = Problems()
        graph = self.program.graph_module
        nodes = list(nodes_of(graph))
        for node in nodes:
            if node.op == "call_function" and (reason := _why_unsupported(node)) is not None:
                problems.add(name_of(node.target), reason, node)
        if problems.found:
            raise TorchImportError.unsupported(problems.operators())
        try:
            return self._build(entry, nodes)
        except MALFORMED as problem:
            raise TorchImportError(f"the program cannot be imported: {problem}") from problem

    # The function

    def _build(self, entry: str, nodes: Sequence[FxNode]) -> ModuleOp:
        """The module; `nodes` are also those of inner graphs."""
        bb, problems = BlockBuilder(), Problems()
        # The symbols in dimensions that are left out if they are 1.
        found = set[str]()
        for node in nodes:
            if node.op != "call_function" or not name_of(node.target).startswith("aten.squeeze"):
                continue
            shape = node.args[0].meta["val"].shape
            axes = node.args[1] if len(node.args) > 1 else range(len(shape))
            found |= symbols_in([shape[axis] for axis in ([axes] if isinstance(axes, int) else axes) if shape])
        # The symbols for how many boxes are kept, of which torchvision says that they are at least 2.
        kept = [node.meta["val"] for node in nodes if name_of(node.target) == "torchvision.nms.default"]
        bounds = bounds_of(
            self.program.range_constraints, found, {symbol for each in kept for symbol in symbols_in(each.shape)}
        )
        bounds |= {name: (bounds[name][0], None) for name in _selected(nodes) if name in bounds}
        bounds = without_marks(bounds, self._guards)
        importer = GraphImporter(bb, self.program.graph_module, problems, bounds)
        params = self._parameters(nodes)
        try:
            with bb.function(entry, params, bounds=bounds, result_names=self._result_names()) as values:
                importer.environment |= zip(params, values, strict=True)
                for node in self._placeholders():
                    said = node.meta.get("val")
                    if is_complex(said) and node.name in params:
                        importer.environment[node.name] = separated(importer.environment[node.name])
                    elif is_symbolic(said):  # a size, whose symbol the parameter's type binds
                        importer.environment[node.name] = said
                importer.seed = importer.environment.get(SEED) if self.seed is None else bb.prim(self.seed)
                loops = any(map(is_projected, nodes))
                flat = not loops and not any(inner_graphs(self.program.graph_module))
                results = self._in_dataflow(importer) if flat else self._results(importer)
                bb.emit_func_output(results[0] if len(results) == 1 else results)
        except _Unsupported:
            raise TorchImportError.unsupported(problems.operators()) from None
        return bb.finalize()

    def _in_dataflow(self, importer: GraphImporter) -> list[Expr]:
        bb = importer.bb
        with bb.dataflow():
            return [bb.emit_output(value) for value in self._results(importer)]

    def _results(self, importer: GraphImporter) -> list[Expr]:
        """The outputs for the user, then the new values of what the program changes."""
        for node, spec in self._inputs():
            if node.name not in importer.environment:
                importer.environment[node.name] = self._constant(node, spec, importer.bb)
        values = importer.run()
        if importer.problems.found:
            raise _Unsupported
        specs = self.program.graph_signature.output_specs
        wanted = [at for at in range(len(values)) if specs[at].kind.name != "TOKEN"]
        ordered = sorted(wanted, key=lambda at: specs[at].kind.name != "USER_OUTPUT")
        return guarded(importer.bb, [importer.output(values[at]) for at in ordered], self._guards)

    @cached_property
    def _guards(self) -> Guards:
        return size_guards(self.program, self.conditions)

    def _result_names(self) -> list[str] | None:
        """The keys of the dictionary that the model returns, then the tensors that change, called as the parameters
        with their values before; `None` if it returns something else.
        """
        specs = [spec for spec in self.program.graph_signature.output_specs if spec.kind.name != "TOKEN"]
        before = {spec.target: node.name for node, spec in self._inputs() if spec.target is not None}
        changed = [spec.target or "" for spec in specs if spec.kind.name != "USER_OUTPUT"]
        changed = [before.get(each, each) for each in changed]
        keys = output_keys(self.program)
        return None if len(keys) + len(changed) != len(specs) else [*keys, *changed] or None

    # Inputs

    def _inputs(self) -> Iterator[tuple[FxNode, InputSpec]]:
        """The inputs of the graph, and what they are."""
        return zip(self._placeholders(), self.program.graph_signature.input_specs, strict=True)

    def _placeholders(self) -> list[FxNode]:
        return [node for node in self.program.graph_module.graph.nodes if node.op == "placeholder"]

    @cached_property
    def _changed(self) -> set[str | None]:
        """The tensors of the module that the program changes."""
        kinds = ("BUFFER_MUTATION", "PARAMETER_MUTATION")
        return {spec.target for spec in self.program.graph_signature.output_specs if spec.kind.name in kinds}

    def _parameters(self, nodes: Sequence[FxNode]) -> dict[str, StructInfo]:
        """What the user gives, then the seed of programs that draw random numbers, then tensors that change."""
        given, changed = dict[str, StructInfo](), dict[str, StructInfo]()
        for node, spec in self._inputs():
            if spec.kind.name == "USER_INPUT" and (info := _type_of(node)) is not None:
                given[node.name] = info
            elif spec.kind.name in ("BUFFER", "PARAMETER") and spec.target in self._changed:
                changed[node.name] = _tensor_type(node.meta["val"])
        if self.seed is None and any(map(is_random, nodes)):
            if SEED in given:
                raise Refusal(f"the program draws random numbers and has an input {SEED}: give a seed to the import")
            given[SEED] = PrimType(i64)
        return given | changed

    def _constant(self, node: FxNode, spec: InputSpec, bb: BlockBuilder) -> Any:
        """An input that is known: a tensor of the module, or a value for which the program was specialised."""
        if spec.kind.name == "TOKEN":
            return None
        if spec.kind.name == "USER_INPUT":
            return getattr(spec.arg, "value", None)
        name = spec.target or ""
        found = self.program.state_dict.get(name, self.program.constants.get(name))
        if not is_tensor(found):
            raise Refusal(f"the input {node.name} is a {spec.kind.name.lower()}; tensors are supported")
        if not list(node.users):
            return None
        array = to_array(found)
        made = bb.const(array, name=name if array.size > MOST_IN_TEXT else None)
        return separated(made) if is_complex(found) else made


SEED = "seed"
"""The name of the parameter that random numbers are made of."""


class _Unsupported(Exception):
    """Nodes could not be imported."""


def _why_unsupported(node: FxNode) -> str | None:
    """Why the operator of a node cannot be imported, or `None` if there is a converter of it."""
    name = name_of(node.target)
    said = [node.meta.get("val"), *(each.meta.get("val") for each in node.all_input_nodes)]
    if name == GETITEM or is_number(said[0]):
        return None
    if any(has_complex(None, each) for each in said):
        return None if is_complex_supported(name.split(".")[1]) else NO_COMPLEX
    return None if name in CONVERTERS else NO_CONVERTER


def _selected(nodes: Sequence[FxNode]) -> set[str]:
    """The numbers of elements that masks of other shapes select: PyTorch bounds them by those of the tensor alone."""
    found = set[str]()
    for node in nodes:
        if node.op == "call_function" and name_of(node.target) == "aten.masked_select.default":
            x, mask = (each.meta["val"] for each in node.args)
            if x.shape != mask.shape:
                found |= symbols_in(node.meta["val"].shape)
    return found


def _type_of(node: FxNode) -> StructInfo | None:
    """The type of what the user gives; `None` for values for which the program was specialised."""
    said = node.meta.get("val")
    if is_tensor(said):
        return _tensor_type(said)
    if is_symbolic(said):
        return PrimType(value=dim_of(said))
    return None


def _tensor_type(said: Any) -> TensorType:
    """The type of a tensor; the last dimension of a complex one has the two parts."""
    dims = dims_of(said.shape)
    return TensorType([*dims, 2] if is_complex(said) else dims, element_type(said.dtype))
