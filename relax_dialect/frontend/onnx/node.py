"""A node while it is imported: its operands, its attributes with their defaults, and what converters need besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from xdsl.ir import Attribute

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.dtypes import element_type
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.values import Array, Value
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, constant, symbol, to_dim

if TYPE_CHECKING:
    from relax_dialect.frontend.onnx.graph import GraphImporter


MAX_RANK = 64
"""Tensors of more dimensions are refused: a list of axes could be of any length."""


@dataclass(frozen=True)
class Node:
    """One node of a graph, and the graph's importer."""

    graph: GraphImporter
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
        """The elements of an integer tensor of rank 1 and constant length as dimensions: symbols, unless the model says
        what they are, which is then checked.
        """
        wide = tensor if str(tensor.dtype) == "i64" else op.astype(tensor, "i64")
        length = wide.shape[0].constant_value if wide.shape and wide.shape[0] is not None else None
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
