"""`torch.compile(model, backend="xdsl_relax")`: graphs that PyTorch traces are imported, compiled and called natively.

PyTorch's AOTAutograd makes each graph functional and decomposes it, as for its own compiler. Sizes that it leaves open
are symbols of the module. A graph that cannot be imported runs in PyTorch, and a warning says why.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from lowering.compiler.build import build
from relax_dialect.frontend.torch import TorchImportError, from_exported_program
from relax_dialect.frontend.torch.importer import decomposition_table
from relax_dialect.frontend.torch.program import (
    ExportedProgram,
    GraphModule,
    Signature,
    is_symbolic,
    is_tensor,
    torch,
)
from vm_dialect import VirtualMachine

Call = Callable[..., Any]


class FallbackWarning(UserWarning):
    """A graph runs in PyTorch."""


@dataclass(frozen=True)
class Options:
    """What `torch.compile(..., options={...})` takes."""

    target: str | None = None
    """As of `build`."""
    fallback: bool = True
    """Whether a graph that cannot be compiled runs in PyTorch; `False` raises the reason."""
    freeze: bool = True
    """Whether parameters are weights of the program where no gradients are needed: they are packed when it is compiled.
    A parameter that is changed in place, as by `load_state_dict`, compiles the graph again with its new elements; not
    seen are changes through `Tensor.data`. `False` passes parameters at each call.
    """

    @staticmethod
    def of(given: Mapping[str, Any]) -> Options:
        """Options by name; `TypeError` for one that there is not."""
        if unknown := [name for name in given if name not in Options.__dataclass_fields__]:
            known = ", ".join(Options.__dataclass_fields__)
            raise TypeError(f"the backend xdsl_relax expected options among {known}, got {', '.join(unknown)}")
        return Options(**given)


def backend(graph: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any) -> Call:
    """The backend of `torch.compile`: what calls a traced graph, given as `torch.fx.GraphModule`."""
    chosen = Options.of(options or {})
    autograd = import_module("torch._functorch.aot_autograd")
    frozen = partial(_compile_graph, options=chosen, tensors=list(inputs) if chosen.freeze else [])
    plain = partial(_compile_graph, options=chosen, tensors=[])
    return autograd.aot_module_simplified(
        graph,
        inputs,
        fw_compiler=plain,
        bw_compiler=plain,
        inference_compiler=frozen,
        decompositions=decomposition_table(),
    )


def _compile_graph(graph: Any, fakes: Sequence[Any], *, options: Options, tensors: Sequence[Any]) -> Call:
    """What calls a functional graph with a list of arguments, which it may empty, and returns a list."""
    boxed = import_module("torch._functorch.aot_autograd").make_boxed_func
    weights = {at: tensors[at] for at in _static_inputs() if at < len(tensors) and is_tensor(tensors[at])}
    try:
        for each in fakes:
            if is_tensor(each) and each.device.type != "cpu":
                raise TorchImportError(f"a tensor is on the device {each.device}; the CPU is supported")
        with import_module("torch._subclasses.fake_tensor").unset_fake_temporarily():  # weights have elements
            compiled = _Compiled(graph, weights, options)
    except (TorchImportError, ValueError, TypeError, NotImplementedError) as error:
        if not options.fallback:
            raise
        warnings.warn(f"a graph runs in PyTorch: {error}", FallbackWarning, stacklevel=2)
        return boxed(graph.forward)
    return boxed(compiled)


def _static_inputs() -> Sequence[int]:
    """Which inputs are parameters and buffers of a module, as dynamo found."""
    metadata = torch()._guards.TracingContext.get().fw_metadata
    return () if metadata is None else metadata.static_input_indices


class _Compiled:
    """A graph as a native function."""

    def __init__(self, graph: Any, weights: Mapping[int, Any], options: Options) -> None:
        self._graph = graph
        self._weights = weights
        self._options = options
        self._versions: list[int] = []
        self._build()

    def _build(self) -> None:
        self._versions = [_version(weight) for weight in self._weights.values()]
        weights = self._weights
        nodes = list(self._graph.graph.nodes)
        inputs = [node for node in nodes if node.op == "placeholder"]
        outputs = next(node for node in nodes if node.op == "output").args[0]
        kind = import_module("torch.export.graph_signature")
        signature = SimpleNamespace(
            input_specs=[
                SimpleNamespace(
                    kind=kind.InputKind.PARAMETER if at in weights else kind.InputKind.USER_INPUT,
                    arg=SimpleNamespace(name=node.name),
                    target=node.name if at in weights else None,
                )
                for at, node in enumerate(inputs)
            ],
            output_specs=[
                SimpleNamespace(kind=kind.OutputKind.USER_OUTPUT, arg=SimpleNamespace(name=str(value)), target=None)
                for value in outputs
            ],
        )
        state = {inputs[at].name: weight for at, weight in weights.items()}
        module = from_exported_program(
            _Program(
                self._graph, cast("Signature", signature), state, {}, _ranges(inputs), SimpleNamespace(out_spec=None)
            ),
            decompose=False,
        )
        self._function = VirtualMachine(build(module, target=self._options.target))["main"]

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        if self._versions != [_version(weight) for weight in self._weights.values()]:
            self._build()
        given = [_argument(each) for at, each in enumerate(arguments) if at not in self._weights]
        result = self._function(*given)
        results = list(result) if self._results != 1 else [result]
        return [_result(each) for each in results]

    @property
    def _results(self) -> int:
        output = next(node for node in reversed(list(self._graph.graph.nodes)) if node.op == "output")
        return len(output.args[0])


def _version(tensor: Any) -> int:
    """How often a tensor was changed in place; those of the inference mode do not count."""
    return 0 if tensor.is_inference() else tensor._version


def _argument(value: Any) -> Any:
    if not is_tensor(value):
        return value
    return value.detach().resolve_conj().resolve_neg().contiguous()


def _result(value: Any) -> Any:
    return torch().from_dlpack(value) if hasattr(value, "__dlpack__") else value


@dataclass
class _Program:
    """A functional graph in the form of an exported program, whose weights are tensors of a module."""

    graph_module: GraphModule
    graph_signature: Signature
    state_dict: Mapping[str, Any]
    constants: Mapping[str, Any]
    range_constraints: Mapping[Any, Any]
    call_spec: Any

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """AOTAutograd has decomposed the graph."""
        return self


def _ranges(inputs: Sequence[Any]) -> Mapping[Any, Any]:
    """The intervals of all symbols of a graph."""
    for node in inputs:
        said = node.meta.get("val")
        sizes = list(said.shape) if is_tensor(said) else [said]
        for size in filter(is_symbolic, sizes):
            return size.node.shape_env.var_to_range
    return {}
