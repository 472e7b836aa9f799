"""A node while it is imported: its arguments by name, what PyTorch says of its results, element types, and what
converters need.

`converts` says which function imports which operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import f32, f64, i1, i16, i64
from xdsl.ir import Attribute

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.index import TORCH
from relax_dialect.frontend.torch.program import (
    GETITEM,
    FxNode,
    GraphModule,
    Problems,
    Refusal,
    is_symbolic,
    is_tensor,
    name_of,
    torch,
)
from relax_dialect.frontend.torch.symbols import Numbers, dim_of, dims_of
from relax_dialect.loading import LazyTable, names_in
from relax_dialect.struct_info.types import StructInfo, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.dtypes import ElementType, is_bool, is_float, is_unsigned, lookup, numpy_dtype, parse_dtype

_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def is_complex(value: Any) -> bool:
    """Whether a value of PyTorch is a complex number, or a tensor of them."""
    return isinstance(value, complex) or (isinstance(value, torch().Tensor) and value.is_complex())


def element_type(dtype: Any) -> ElementType:
    """The element type that is a `torch.dtype`, of complex numbers that of their parts; `Refusal` if there is none."""
    name = str(dtype).removeprefix("torch.")
    try:
        return parse_dtype(_PARTS.get(name, name))
    except ValueError:
        raise Refusal(f"elements of type {name} are not supported") from None


def to_array(tensor: Any) -> Any:
    """A tensor as an array on its memory; it is copied if it is not on the CPU, or not in order.

    Complex numbers have their two parts as last dimension.
    """
    dtype = numpy_dtype(element_type(tensor.dtype))
    if tensor.layout is not torch().strided:
        raise Refusal(f"tensors of layout {str(tensor.layout).removeprefix('torch.')} are not supported")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    plain = torch().view_as_real(plain) if plain.is_complex() else plain
    if dtype.type.__module__ == "ml_dtypes":  # NumPy has no such dtype of its own
        return plain.view(torch().int16 if dtype.itemsize == 2 else torch().uint8).numpy().view(dtype)
    return plain.numpy()


class Weight(IntEnum):
    """How much an operand has to say: the dtype of a number only counts if no tensor is of its category or above."""

    NUMBER = 0
    SCALAR_TENSOR = 1
    TENSOR = 2


def promoted(operands: Iterable[Any]) -> Attribute:
    """The dtype in which tensors and numbers are combined."""
    kinds: dict[Weight, Attribute] = {}
    for operand in operands:
        weight, dtype = _described(operand)
        kinds[weight] = _common(kinds[weight], dtype) if weight in kinds else dtype
    found: Attribute | None = None
    for _, dtype in sorted(kinds.items()):
        found = dtype if found is None else _outranked(dtype, found)
    return i64 if found is None else found


def _described(operand: Any) -> tuple[Weight, Attribute]:
    if isinstance(operand, Expr) and operand.dtype is not None:
        return (Weight.TENSOR if operand.ndim else Weight.SCALAR_TENSOR), operand.dtype
    if isinstance(operand, bool | torch().SymBool):
        return Weight.NUMBER, i1
    return Weight.NUMBER, i64 if isinstance(operand, int | torch().SymInt) else f32


def _outranked(higher: Attribute, lower: Attribute) -> Attribute:
    """The common dtype where `higher` decides, unless `lower` is of a category above."""
    if is_float(higher):
        return higher
    return _common(higher, lower) if is_bool(higher) or is_float(lower) else higher


def _common(one: Attribute, other: Attribute) -> Attribute:
    """The common dtype of operands of equal weight."""
    if one == other or is_bool(other):
        return one
    if is_bool(one):
        return other
    if is_float(one) != is_float(other):
        return one if is_float(one) else other
    wide, narrow = (one, other) if _bits(one) >= _bits(other) else (other, one)
    if is_float(one):
        return f32 if _bits(one) == _bits(other) else wide
    if _bits(wide) > _bits(narrow) and not is_unsigned(wide):
        return wide
    if is_unsigned(wide) == is_unsigned(narrow):
        return wide
    return i16 if _bits(wide) == 8 else i64


def _bits(dtype: Attribute) -> int:
    return lookup(dtype).bits


@dataclass
class GraphScope(ABC):
    """What is known about a graph where its nodes are imported."""

    bb: BlockBuilder
    owner: GraphModule
    """The graph, and what it names."""

    problems: Problems
    bounds: Mapping[str, tuple[int, int | None]]
    """What is known about symbols."""

    environment: dict[str, Any] = field(default_factory=dict[str, Any])
    """What nodes stand for: tensors, numbers, lists of these, graphs."""

    floats: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """The symbols that stand for floating-point numbers which are data."""

    seed: Expr | None = None
    """What random numbers are a function of; `None` where a program draws none, and in graphs that are lifted."""

    lifted: bool = False
    """Whether a graph of scalars is applied to tensors, so that shapes are not those that PyTorch says."""

    streams: Iterator[int] = field(default_factory=count)
    """The streams of random numbers that have not been drawn from."""

    def random_stream(self) -> tuple[Expr, int]:
        """The seed, and a stream that nobody else draws from."""
        if self.seed is None:
            raise Refusal("random numbers in functions of scores are not supported: draw them outside, and pass them")
        return self.seed, next(self.streams)

    @abstractmethod
    def within(
        self, owner: GraphModule, arguments: Sequence[Any], *, lifted: bool = False, seed: Expr | None = None
    ) -> GraphScope:
        """The scope of an inner graph, applied to arguments; `lifted` if these are tensors where it has scalars.

        Its random numbers are a function of `seed`, else of this scope's; graphs that are lifted draw none.
        """

    @abstractmethod
    def run(self) -> list[Any]:
        """Imports all nodes; gives what the graph returns."""

    def match(self, value: Expr, info: StructInfo) -> Expr:
        """A value of a type that is checked, with the symbols that are new in it bound."""
        return self.bb.match_cast(value, info, bounds=self.bounds)

    def tensor(self, value: Any, dtype: Attribute | None = None) -> Expr:
        """A value as a tensor, of a dtype if one is given: numbers become scalars, also those that depend on sizes."""
        if isinstance(value, Expr):
            return value if dtype is None or value.dtype == dtype else op.astype(value, dtype)
        if is_symbolic(value):
            made = Numbers(self.bb, self.floats).scalar(value)
            return made if dtype is None or made.dtype == dtype else op.astype(made, dtype)
        if isinstance(value, bool | int | float):
            kind = dtype or (None if isinstance(value, bool) else i64 if isinstance(value, int) else f64)
            return self.bb.const(np.asarray(value), kind)
        raise Refusal(f"expected a tensor or a number, got {type(value).__name__}")

    def dimension(self, dim: Dim, dtype: Attribute) -> Expr:
        """A dimension as a scalar of a dtype."""
        if dim.constant_value is not None:
            return self.tensor(dim.constant_value, dtype)
        return self.tensor(Numbers(self.bb, self.floats).size(dim), dtype)


@dataclass(frozen=True)
class Node:
    """One node of a graph, and the scope of its graph."""

    graph: GraphScope
    fx: FxNode
    operator: str
    """With its overload: `aten.add.Tensor`."""

    arguments: Mapping[str, Any]
    """By the names of the operator's schema, with its defaults; tensors are values of the program."""

    @property
    def bb(self) -> BlockBuilder:
        """The builder."""
        return self.graph.bb

    @property
    def name(self) -> str:
        """The operator without namespace and overload: `add`."""
        return self.operator.split(".")[1]

    # Arguments

    def value(self, name: str) -> Any:
        """An argument as it is: a tensor, a number, a list, or `None`; `None` as well where the overload has none."""
        return self.arguments.get(name)

    def has(self, name: str) -> bool:
        """Whether an argument is there, and not `None`."""
        return self.arguments.get(name) is not None

    def tensor(self, name: str, dtype: Attribute | None = None) -> Expr:
        """An argument as a tensor, of a dtype if one is given; numbers become scalars."""
        value = self.value(name)
        if value is None:
            raise Refusal(f"the argument {name} is missing")
        return self.graph.tensor(value, dtype)

    def optional(self, name: str, dtype: Attribute | None = None) -> Expr | None:
        """An argument as a tensor, or `None` if it is absent."""
        return self.tensor(name, dtype) if self.has(name) else None

    def tensors(self, name: str, dtype: Attribute | None = None) -> list[Expr]:
        """An argument that is a list of tensors."""
        return [self.graph.tensor(each, dtype) for each in self.value(name)]

    def shape(self, name: str = "self") -> tuple[Dim, ...]:
        """The dimensions of a tensor."""
        info = self.tensor(name).type
        if not isinstance(info, TensorType) or info.known_dims is None:
            raise Refusal(f"the shape of the argument {name} is not known")
        return info.known_dims

    def rank(self, name: str = "self") -> int:
        """The rank of a tensor."""
        return len(self.shape(name))

    def dtype(self, name: str = "self") -> Attribute:
        """The element type of a tensor."""
        found = self.tensor(name).dtype
        if found is None:
            raise Refusal(f"the element type of the argument {name} is not known")
        return found

    def number(self, name: str, default: float = 0.0) -> float:
        """A number that is known while importing; `Refusal` if it depends on sizes."""
        return float(self.exact_number(name, default))

    def exact_number(self, name: str, default: float = 0.0) -> float:
        """A number that is known while importing, an integer if it was one; `Refusal` if it depends on sizes."""
        found = self.arguments.get(name)
        if isinstance(found, Expr) or is_symbolic(found):
            raise Refusal(f"the argument {name} depends on sizes or data; a constant is expected")
        return default if found is None else int(found) if isinstance(found, int) else float(found)

    def integer(self, name: str, default: int = 0) -> int:
        """An integer that is known while importing; `Refusal` if it depends on sizes."""
        found = self.arguments.get(name)
        return default if found is None else _fixed(found, name)

    def integers(self, name: str) -> list[int]:
        """A list of integers that are known while importing; empty if it is absent."""
        found = self.arguments.get(name)
        if isinstance(found, int):
            return [found]
        return [] if found is None else [_fixed(each, name) for each in found]

    def flag(self, name: str) -> bool:
        """A truth value."""
        return bool(self.arguments.get(name))

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        found = self.arguments.get(name)
        return default if found is None else str(found)

    def dim(self, name: str, default: int = 0) -> Dim:
        """A size."""
        found = self.arguments.get(name)
        return dim_of(default if found is None else found)

    def dims(self, name: str) -> list[Dim]:
        """Sizes."""
        return dims_of(self.value(name))

    def axis(self, name: str = "dim", of: str = "self", *, new: int = 0) -> int:
        """An axis of a tensor, counted from the front; `new` axes are added to it."""
        return self.integer(name) % max(self.rank(of) + new, 1)

    def axes(self, name: str = "dim", of: str = "self") -> list[int]:
        """Axes of a tensor, counted from the front; all if none is given."""
        rank = self.rank(of)
        return [axis % max(rank, 1) for axis in self.integers(name)] or list(range(rank))

    # Results

    @property
    def results(self) -> list[Any]:
        """What PyTorch says of the results: tensors without elements, or numbers."""
        found = self.fx.meta.get("val")
        return list(cast("Sequence[Any]", found)) if isinstance(found, list | tuple) else [found]

    def out_dtype(self, index: int = 0) -> Attribute:
        """The element type of a result."""
        return element_type(self._tensor_result(index).dtype)

    def out_dims(self, index: int = 0) -> list[Dim]:
        """The dimensions of a result."""
        return dims_of(self._tensor_result(index).shape)

    def _tensor_result(self, index: int) -> Any:
        if not is_tensor(self.results[index]):
            raise Refusal(f"result {index} is no tensor")
        return self.results[index]

    def wants(self, index: int) -> bool:
        """Whether result `index` of several is used."""
        return any(user.args[1] == index for user in self.fx.users if name_of(user.target) == GETITEM)

    # The program

    def const(self, value: Any, dtype: Attribute) -> Expr:
        """A constant scalar or array of a dtype."""
        return self.bb.const(np.asarray(value), dtype)

    def like(self, value: float, x: Expr) -> Expr:
        """A constant scalar of the dtype of a tensor."""
        assert x.dtype is not None
        return self.const(value, x.dtype)

    def te(self, function: Callable[..., te.Tensor], *arguments: Expr, name: str | None = None) -> Expr:
        """The result of a kernel that `function` describes."""
        made = self.bb.emit_te(function, *arguments, name_hint=name or function.__name__)
        if not isinstance(made, Expr):
            raise TypeError("expected a kernel with one result")
        return made

    def matched(self, x: Expr, dtype: Attribute) -> Expr:
        """A tensor in a dtype."""
        return x if x.dtype == dtype else op.astype(x, dtype)


def _fixed(value: Any, name: str) -> int:
    if not isinstance(value, int):
        raise Refusal(f"the argument {name} depends on sizes or data; a constant is expected")
    return value


Result: TypeAlias = "Expr | Sequence[Expr | None] | None"
"""What a node computes: a tensor, several in order, or nothing."""

Converter: TypeAlias = "Callable[[Node], Result]"

CONVERTERS = LazyTable[Converter]("relax_dialect.frontend.torch", names_in(TORCH, ""))
"""By the name of the operator with its overload: `aten.add.Tensor`."""


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Makes a function the converter of operators, which are named with their overloads: `aten.add.Tensor`.

    What is registered is not decomposed. A later converter replaces an earlier one.
    """

    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS.enter(name, converter.__module__, lambda _: converter)
        return converter

    return register


def find(name: str) -> Converter | None:
    """The converter of an operator, or `None`."""
    return CONVERTERS.get(name)
