"""Importing a graph: its nodes in order, what they stand for, and what could not be imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from typing_extensions import override
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder import BuilderError, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.complex_numbers import Complex, Converted, has_complex, separated, stacked
from relax_dialect.frontend.torch.complex_numbers import convert as convert_complex
from relax_dialect.frontend.torch.dtypes import element_type, is_complex, to_array
from relax_dialect.frontend.torch.node import GraphScope, Node
from relax_dialect.frontend.torch.program import (
    GETITEM,
    NO_CONVERTER,
    FxNode,
    GraphModule,
    Refusal,
    is_node,
    is_symbolic,
    is_tensor,
    location_of,
    name_of,
)
from relax_dialect.frontend.torch.registry import find
from relax_dialect.frontend.torch.symbols import dim_of, dims_of
from relax_dialect.struct_info.types import TensorType

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
        """Arguments by name, with defaults; those of functions without schema by their places."""
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
