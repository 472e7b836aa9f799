"""An exported program as a module: parameters, weights, the graph, and the results.

A tensor may have two names, such as a buffer that the model also keeps as an attribute of something else. PyTorch lifts
the second one as a constant. It cannot decompose a program that changes one of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder import BlockBuilder, BuilderError, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.complex_numbers import NO_COMPLEX, Complex, Converted, has_complex, separated, stacked
from relax_dialect.frontend.torch.complex_numbers import convert as convert_complex
from relax_dialect.frontend.torch.complex_numbers import is_supported as is_complex_supported
from relax_dialect.frontend.torch.guards import Guards, guarded, size_guards, without_marks
from relax_dialect.frontend.torch.layers import is_projected, layer_decompositions
from relax_dialect.frontend.torch.node import CONVERTERS, GraphScope, Node, element_type, find, is_complex, to_array
from relax_dialect.frontend.torch.program import (
    GETITEM,
    NO_CONVERTER,
    ExportedProgram,
    FxNode,
    GraphModule,
    InputSpec,
    Problems,
    Refusal,
    TorchImportError,
    inner_graphs,
    is_node,
    is_random,
    is_symbolic,
    is_tensor,
    location_of,
    name_of,
    nodes_of,
    output_keys,
    torch,
)
from relax_dialect.frontend.torch.symbols import bounds_of, dim_of, dims_of, symbols_in
from relax_dialect.struct_info.types import PrimType, StructInfo, TensorType
from tir_dialect.weights import MOST_IN_TEXT

MALFORMED = (
    Refusal,
    VerifyException,
    BuilderError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What comes of arguments that a converter, or an op, does not take."""


class Failed:
    """Stands for the results of nodes that could not be imported."""


class GraphImporter(GraphScope):
    """Imports the nodes of one graph into the block that is open."""

    @override
    def within(
        self, owner: GraphModule, arguments: Sequence[Any], *, lifted: bool = False, seed: Expr | None = None
    ) -> GraphImporter:
        inner = GraphImporter(self.bb, owner, self.problems, self.bounds, floats=self.floats, lifted=lifted)
        inner.seed = None if lifted else self.seed if seed is None else seed
        inner.streams = self.streams
        inputs = [node for node in owner.graph.nodes if node.op == "placeholder"]
        inner.environment = {node.name: value for node, value in zip(inputs, arguments, strict=True)}
        return inner

    @override
    def run(self) -> list[Any]:
        for node in self.owner.graph.nodes:
            if node.op == "output":
                returned = self.resolved(node.args[0])
                return cast("list[Any]", returned) if isinstance(returned, list) else [returned]
            if node.name not in self.environment:
                self.environment[node.name] = self._node(node)
        return []

    def resolved(self, argument: Any) -> Any:
        """An argument of a node with what other nodes stand for."""
        if is_node(argument):
            return self.environment[argument.name]
        if isinstance(argument, list | tuple):
            return [self.resolved(each) for each in cast("Sequence[Any]", argument)]
        return argument

    # Nodes

    def _node(self, node: FxNode) -> Any:
        name = node.target if node.op == "get_attr" else name_of(node.target)
        arguments = self.resolved([*node.args, *node.kwargs.values()])
        if _has_failed(arguments):
            return Failed()
        try:
            with self.bb.at(location_of(node)):
                return self._attribute(node.target) if node.op == "get_attr" else self._call(node, name)
        except MALFORMED as problem:
            self.problems.add(name, str(problem) or type(problem).__name__, node)
            return Failed()

    def _attribute(self, path: str) -> Any:
        found: Any = self.owner
        for part in path.split("."):
            found = getattr(found, part)
        if not is_tensor(found):
            return found
        return separated(self.bb.const(to_array(found))) if is_complex(found) else self.bb.const(to_array(found))

    def _call(self, node: FxNode, name: str) -> Any:
        if name == GETITEM:
            found = self.resolved(node.args[0])[node.args[1]]
            if found is None and is_tensor(node.meta.get("val")) and node.users:
                raise Refusal(f"result {node.args[1]} of {node.args[0]} is not supported")
            return found
        converter, said = find(name), node.meta.get("val")
        if converter is None and is_number(said):
            return said
        arguments = self._arguments(node)
        if has_complex([*arguments.values()], said):
            return self.settled(convert_complex(Node(self, node, name, arguments)), said)
        if converter is None:
            raise Refusal(NO_CONVERTER)
        made = converter(Node(self, node, name, arguments))
        return said if made is None else self.settled(made, said)

    def _arguments(self, node: FxNode) -> dict[str, Any]:
        """Arguments by name, with defaults; those of functions without schema by their positions."""
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            return {str(at): self.resolved(each) for at, each in enumerate(node.args)} | dict(node.kwargs)
        given = {each.name: each.default_value for each in schema.arguments if each.has_default_value()}
        given |= {each.name: value for each, value in zip(schema.arguments, node.args, strict=False)}
        return {name: self.resolved(value) for name, value in (given | dict(node.kwargs)).items()}

    # Results

    def settled(self, result: Converted, said: Any) -> Any:
        """Results with the shapes that PyTorch says; symbols that are new are bound."""
        if result is None or isinstance(result, Expr | Complex):
            return self._like(result, said)
        several = cast("Sequence[Any]", said) if isinstance(said, list | tuple) else [said]
        return [self._like(each, of) for each, of in zip(result, several, strict=False)]

    def _like(self, value: Expr | Complex | None, said: Any) -> Any:
        if isinstance(value, Complex):
            return Complex(self._like(value.real, said), self._like(value.imag, said))
        if value is None or not is_tensor(said) or not isinstance(value.type, TensorType):
            return value
        dtype, dims = element_type(said.dtype), dims_of(said.shape)
        if value.dtype != dtype:
            raise Refusal(f"the converter makes elements of type {value.dtype} where PyTorch has {dtype}")
        if self.lifted or (value.type.known_dims is not None and list(value.type.known_dims) == dims):
            return value
        return self.match(value, TensorType(dims, dtype))

    def output(self, value: Any) -> Expr:
        """A result of the program: sizes are prim values."""
        if value is None:
            return op.null()
        if isinstance(value, Complex):
            return stacked(value)
        if isinstance(value, int) or (is_symbolic(value) and not is_float_number(value)):
            return self.bb.prim(value if isinstance(value, int) else dim_of(value))
        return self.tensor(value)


def is_number(said: Any) -> bool:
    """Whether the result of a node is a number, which says itself how it depends on sizes."""
    return is_symbolic(said) or isinstance(said, bool | int | float)


def is_float_number(value: Any) -> bool:
    """Whether a symbolic number is a floating-point one."""
    return type(value).__name__ == "SymFloat"


def _has_failed(arguments: Iterable[Any]) -> bool:
    return any(
        isinstance(each, Failed) or (isinstance(each, list) and _has_failed(cast("list[Any]", each)))
        for each in arguments
    )


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
