"""`torch.compile(model, backend="xdsl_relax")`: graphs that PyTorch traces are imported, compiled and called natively.

PyTorch's AOTAutograd makes each graph functional and decomposes it, as for its own compiler. Sizes that it leaves open
are symbols of the module. A graph that cannot be imported runs in PyTorch, and a warning says why.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
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
    is_random,
    is_symbolic,
    is_tensor,
    nodes_of,
    torch,
)
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

Call = Callable[..., Any]


class FallbackWarning(UserWarning):
    """A graph runs in PyTorch."""


@dataclass(frozen=True)
class Options:
    """What `torch.compile(..., options={...})` takes."""

    target: Target | str | None = None
    """As of `build`."""
    fallback: bool = True
    """Whether a graph that cannot be compiled runs in PyTorch; `False` raises the reason."""
    freeze: bool = True
    """Whether parameters are weights of the program where no gradients are needed: they are packed when it is compiled.
    A graph that is called with other parameters, or after they were changed in place, as by `load_state_dict`, is
    compiled again with their elements; not seen are changes of the elements of `Tensor.data`. Tensors that change again
    and again are passed at each call, as all are with `False`.
    """

    @staticmethod
    def of(given: Mapping[str, Any]) -> Options:
        """Options by name; `TypeError` or `ValueError` for one that there is not, or that cannot have its value."""
        known = Options.__dataclass_fields__
        if unknown := [name for name in given if name not in known]:
            raise TypeError(
                f"the backend xdsl_relax expected options among {', '.join(known)}, got {', '.join(unknown)}"
            )
        for name in ("fallback", "freeze"):
            if not isinstance(given.get(name, True), bool):
                raise TypeError(f"the option {name} of the backend xdsl_relax is True or False, got {given[name]!r}")
        target = given.get("target")
        if isinstance(target, str):
            Target.parse(target)  # what is wrong with it is said even where graphs may run in PyTorch
        elif target is not None and not isinstance(target, Target):
            raise TypeError(f"the option target of the backend xdsl_relax is a text or a Target, got {target!r}")
        return Options(**given)


def backend(
    graph: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None, **_: Any
) -> Call:
    """The backend of `torch.compile`: what calls a traced graph, given as `torch.fx.GraphModule`."""
    chosen = Options.of(options or {})
    if mode not in (None, "default"):
        raise TypeError(f"the backend xdsl_relax has no modes, got mode={mode!r}: leave it out")
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
    try:
        for each in fakes:
            if is_tensor(each) and each.device.type != "cpu":
                raise TorchImportError(f"a tensor is on the device {each.device}; the CPU is supported")
        with import_module("torch._subclasses.fake_tensor").unset_fake_temporarily():  # weights have elements
            compiled = _Compiled(graph, _weights(tensors), options)
    except Exception as error:  # a fault of ours does not end a program that PyTorch can run: the warning names it
        if not options.fallback:
            raise
        reason = str(error) if isinstance(error, (TorchImportError, ValueError)) else f"{type(error).__name__}: {error}"
        warnings.warn(f"a graph runs in PyTorch: {reason}", FallbackWarning, stacklevel=2)
        return boxed(graph.forward)
    return boxed(compiled)


def _weights(tensors: Sequence[Any]) -> Mapping[int, Any]:
    """The parameters and buffers of a module that a graph reads and does not write, as dynamo found, by the positions
    of the inputs of the graph, before which are the tokens of its effects.
    """
    metadata = torch()._guards.TracingContext.get().fw_metadata
    if metadata is None:
        return {}
    tokens = len(metadata.tokens)
    found = {at: tensors[at - tokens] for at in metadata.static_input_indices if tokens <= at < len(tensors) + tokens}
    written = {at + tokens for at, info in enumerate(metadata.input_info) if info.mutates_data}
    return {at: tensor for at, tensor in found.items() if is_tensor(tensor) and at not in written}


MOST_PROGRAMS = 64
"""Of a graph that is called with other parameters: layers of one class share it. With more, parameters are passed."""
MOST_CHANGES = 2
"""How often a graph is compiled again for a tensor that is changed in place, before it is passed at each call."""


@dataclass(frozen=True)
class _Specialised:
    """A native function of a graph, into which some of its inputs are frozen."""

    function: Call
    weights: Mapping[int, Any]
    """Which they are. They are kept, so that no other tensor comes to lie where they are."""
    versions: Sequence[int]
    """How often they had been changed in place."""
    is_random: bool
    """Whether it takes a seed after its arguments."""


class _Compiled:
    """A graph as native functions, one for each set of parameters that it is called with."""

    def __init__(self, graph: Any, weights: Mapping[int, Any], options: Options) -> None:
        self._graph = graph
        self._options = options
        nodes = list(graph.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        outputs = next(node for node in nodes if node.op == "output").args[0]
        self._tokens = sum(_is_token(node) for node in self._inputs)
        self._names = [str(value) for value in outputs]
        self._convert = [_conversion(value) for value in outputs[self._tokens :]]
        self._frozen = tuple(weights)
        self._changes = Counter[int]()
        self._programs = dict[Hashable, _Specialised]()
        self._specialise(weights)

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        found = self._programs.get(_addresses(arguments, self._frozen))
        if found is None or found.versions != [_version(arguments[at]) for at in found.weights]:
            found = self._specialise(dict(enumerate(arguments)))
        taken = range(self._tokens, len(arguments))
        given = [_argument(arguments[at]) for at in taken if at not in found.weights]
        if found.is_random:
            given.append(int(torch().empty((), dtype=torch().int64).random_()))  # of PyTorch's generator
        result = found.function(*given)
        results = list(result) if len(self._convert) != 1 else [result]
        made = [convert(each) for convert, each in zip(self._convert, results, strict=True)]
        return [None] * self._tokens + made

    def _specialise(self, arguments: Mapping[int, Any]) -> _Specialised:
        """The function for these parameters, which is compiled."""
        key = _addresses(arguments, self._frozen)
        if (before := self._programs.get(key)) is not None:
            changed = zip(before.weights, before.versions, strict=True)
            self._changes.update(at for at, version in changed if _version(arguments[at]) != version)
        kept = tuple(at for at in self._frozen if self._changes[at] <= MOST_CHANGES)
        if len(self._programs) >= MOST_PROGRAMS and before is None:
            kept = ()
        if kept != self._frozen:
            self._programs, self._frozen = {}, kept
            key = _addresses(arguments, kept)
        weights = {at: arguments[at].detach() for at in kept}
        versions = [_version(weight) for weight in weights.values()]
        module = from_exported_program(self._program(weights), decompose=False)
        function = VirtualMachine(build(module, target=self._options.target))["main"]
        self._programs[key] = found = _Specialised(
            function, weights, versions, any(is_random(node) for node in nodes_of(self._graph))
        )
        return found

    def _program(self, weights: Mapping[int, Any]) -> ExportedProgram:
        kind = import_module("torch.export.graph_signature")

        def input_kind(at: int) -> Any:
            kinds = kind.InputKind
            return kinds.TOKEN if at < self._tokens else kinds.PARAMETER if at in weights else kinds.USER_INPUT

        signature = SimpleNamespace(
            input_specs=[
                SimpleNamespace(
                    kind=input_kind(at),
                    arg=SimpleNamespace(name=node.name),
                    target=node.name if at in weights else None,
                )
                for at, node in enumerate(self._inputs)
            ],
            output_specs=[
                SimpleNamespace(
                    kind=kind.OutputKind.TOKEN if at < self._tokens else kind.OutputKind.USER_OUTPUT,
                    arg=SimpleNamespace(name=name),
                    target=None,
                )
                for at, name in enumerate(self._names)
            ],
        )
        state = {self._inputs[at].name: weight for at, weight in weights.items()}
        ranges, called = _ranges(self._inputs), SimpleNamespace(out_spec=None)
        return _Program(self._graph, cast("Signature", signature), state, {}, ranges, called)


def _is_token(node: Any) -> bool:
    """Whether an input of a graph stands for the order of effects."""
    return "Token" in type(node.meta.get("desc")).__name__


def _addresses(arguments: Mapping[int, Any] | Sequence[Any], positions: Sequence[int]) -> Hashable:
    return tuple(arguments[at].data_ptr() for at in positions)


def _version(tensor: Any) -> int:
    """How often a tensor was changed in place; those of the inference mode do not count."""
    return 0 if tensor.is_inference() else tensor._version


def _argument(value: Any) -> Any:
    if not is_tensor(value):
        return value
    plain = value.detach().resolve_conj().resolve_neg()
    return (torch().view_as_real(plain) if plain.is_complex() else plain).contiguous()


def _conversion(node: Any) -> Callable[[Any], Any]:
    """What makes of a result what PyTorch has there: a tensor, complex if it is one, in its order of dimensions."""
    said: Any = getattr(node, "meta", {}).get("val")
    if not is_tensor(said):
        return lambda value: torch().from_dlpack(value) if hasattr(value, "__dlpack__") else value
    is_complex, order = said.is_complex(), _order(said)
    is_ordered, back = order == sorted(order), sorted(order, key=order.__getitem__)

    def convert(value: Any) -> Any:
        made = torch().from_dlpack(value)
        if is_complex:
            made = torch().view_as_complex(made)
        return made if is_ordered else made.permute(order).contiguous().permute(back)

    return convert


def _order(said: Any) -> list[int]:
    """The dimensions of a tensor by descending strides, of which those of one element have none."""
    sizes, strides = (
        [each.node.hint if is_symbolic(each) else each for each in x] for x in (said.shape, said.stride())
    )
    if any(each is None for each in (*sizes, *strides)) or 0 in strides:
        return []
    known = iter(sorted((at for at, size in enumerate(sizes) if size != 1), key=lambda at: -strides[at]))
    return [at if size == 1 else next(known) for at, size in enumerate(sizes)]


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
