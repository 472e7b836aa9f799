"""The types of a model's inputs: from what the model says, what whoever imports it says, and what its nodes ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import TypeAlias

from onnx import GraphProto, TensorShapeProto, ValueInfoProto

from relax_dialect.frontend.onnx.dtypes import element_type
from relax_dialect.frontend.onnx.dynamic import fixed_dimensions
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.ranks import ranks_of_use
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, is_symbol_name, symbol

UNKNOWN = -1
"""What some exporters write for a dimension that they do not know."""

MAX_INPUT = 1 << 40
"""No input has so many elements along a dimension."""

GivenShape: TypeAlias = "Sequence[int | str | None]"
"""A number or the name of a symbol for each dimension; `None` for what the model says, or a symbol."""

GivenShapes: TypeAlias = "Mapping[str, GivenShape] | Sequence[GivenShape | None]"
"""Shapes of inputs, by name or in their order."""


@dataclass
class Parameters:
    """The inputs of a graph that have no initializer, and their types."""

    graph: GraphProto
    dynamic: bool = False
    """Whether every dimension of an input that the graph leaves open is a symbol."""
    given: GivenShapes = ()
    """What whoever imports the model says of the shapes."""
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """Symbols by `dim_param`."""

    def types(self) -> dict[str, TensorType]:
        """The types by name; raises `Refusal`."""
        with_elements = {tensor.name for tensor in self.graph.initializer}
        inputs = [each for each in self.graph.input if each.name not in with_elements]
        fixed = fixed_dimensions(self.graph.node) if self.dynamic else {}
        given = self._given(inputs)
        unknown = [each.name for each in inputs if self._rank(each, given.get(each.name)) is None]
        if unknown:
            raise Refusal(_no_rank(unknown))
        return {each.name: self._type(each, given.get(each.name), fixed.get(each.name, frozenset())) for each in inputs}

    def _given(self, inputs: Sequence[ValueInfoProto]) -> dict[str, GivenShape]:
        """The shapes that are given, by name."""
        names = [each.name for each in inputs]
        if not isinstance(self.given, Mapping):
            return {name: shape for name, shape in zip(names, self.given, strict=False) if shape is not None}
        for name in self.given:
            if name not in names:
                raise Refusal(f"a shape is given for {name}, but the inputs are {', '.join(names)}")
        return dict(self.given)

    def _rank(self, info: ValueInfoProto, given: GivenShape | None) -> int | None:
        """How many dimensions an input has."""
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") != "tensor_type" or tensor.HasField("shape"):
            return len(tensor.shape.dim)
        return len(given) if given is not None else self._ranks_of_use.get(info.name)

    @cached_property
    def _ranks_of_use(self) -> dict[str, int]:
        return ranks_of_use(self.graph)

    def _type(self, info: ValueInfoProto, given: GivenShape | None, fixed: frozenset[int] | None) -> TensorType:
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            raise Refusal(
                f"the input {info.name} is a {(kind or 'value').removesuffix('_type')}; tensors are supported"
            )
        rank = self._rank(info, given) or 0
        said = [*info.type.tensor_type.shape.dim] or [TensorShapeProto.Dimension()] * rank
        if given is not None and len(given) != rank:
            raise Refusal(f"the input {info.name} has rank {rank}, but a shape of rank {len(given)} is given")
        dims = [
            self._dim(dim, info.name, at, fixed is None or at in fixed or at - rank in fixed)
            if given is None or (wanted := given[at]) is None
            else self._wanted(wanted, info.name, at)
            for at, dim in enumerate(said)
        ]
        return TensorType(dims, element_type(info.type.tensor_type.elem_type))

    def _dim(self, dim: TensorShapeProto.Dimension, name: str, at: int, fixed: bool) -> Dim:
        if dim.HasField("dim_value") and dim.dim_value != UNKNOWN:
            known = self._number(dim.dim_value, name, at)
            if not self.dynamic or fixed:
                return known
        # Some exporters write "?" for every dimension that they do not know; that is no name.
        named = any(letter.isalnum() for letter in dim.dim_param)
        return self._symbol(dim.dim_param if named else f"{name}_{at}")

    def _wanted(self, dim: int | str, name: str, at: int) -> Dim:
        return self._symbol(dim) if isinstance(dim, str) else self._number(index(dim), name, at)

    def _number(self, value: int, name: str, at: int) -> Dim:
        if not 0 <= value < MAX_INPUT:
            raise Refusal(f"dimension {at} of the input {name} is {value}")
        return constant(value)

    def _symbol(self, key: str) -> Dim:
        if key not in self._names:
            self._names[key] = _unused(_symbol_name(key), self._names.values())
        return symbol(self._names[key])


def _no_rank(names: Sequence[str]) -> str:
    """What is missing, and how to say it."""
    inputs = f"the input {names[0]} is" if len(names) == 1 else f"the inputs {', '.join(names)} are"
    return (
        f"the rank of {inputs} not known, and the nodes that use it take any: give a shape with "
        f"import_model(..., shapes={{{names[0]!r}: ['n', 4]}}) or --shape '{names[0]}=[n, 4]'"
    )


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
