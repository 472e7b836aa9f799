"""From the arguments of the whole to those of each worker, and from the results of workers to those of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp

from lowering.distributed.lower_distributed import GLOBAL_TYPE, MESH
from lowering.distributed.split_stages import ARGUMENTS
from relax_dialect.interpreter.runtime_values import Array, Shape, Value, is_tuple
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import find_function
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.sharding import ShardingAttr, coordinates, tile_bounds
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim, MatchError, match


@dataclass(frozen=True)
class Distribution:
    """How the arguments and results of a function that `lower-distributed` has made are shared."""

    name: str
    mesh: Mapping[str, int]
    """How many workers there are along each axis."""
    type: FuncType
    """The type of the function of the whole."""

    @staticmethod
    def of(module: ModuleOp, entry: str) -> Distribution:
        """That of a function; `KeyError` if there is none, `ValueError` if it is not the function of a worker."""
        func = find_function(module, entry)
        if not isinstance(func, FuncOp):
            raise KeyError(f"no relax function {entry} in the module")
        mesh, whole = func.attributes.get(MESH), func.attributes.get(GLOBAL_TYPE)
        if not isinstance(mesh, ShardingAttr) or not isinstance(whole, FuncType):
            raise ValueError(f"@{entry} is not the function of a worker: use the pass lower-distributed")
        sizes = {axis.name: axis.size.constant_value or 0 for axis in mesh.mesh}
        return Distribution(entry, sizes, whole)

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return prod(self.mesh.values())

    def arguments(self, whole: Sequence[Value], rank: int) -> list[Value]:
        """The arguments of one worker, for those of the whole; `ValueError` if they do not fit the types.

        Tiles of tensors are copied, so that they are contiguous.
        """
        if len(whole) != len(self.type.params):
            raise ValueError(f"@{self.name} expected {len(self.type.params)} arguments, got {len(whole)}")
        at, symbols = coordinates(self.mesh, rank), self._symbols(whole)
        numbers = [number for name, size in self.mesh.items() for number in (size, at[name])]
        workers = Shape([*numbers, *(symbols[name] for name in self.type.symbol_names)])
        return [workers, *(self._tile(*pair, at) for pair in zip(whole, self.type.params, strict=True))]

    def _symbols(self, whole: Sequence[Value]) -> Mapping[str, int]:
        facts = [fact for value, info in zip(whole, self.type.params, strict=True) for fact in _facts(value, info)]
        try:
            return match([dim for dim, _ in facts], [number for _, number in facts])
        except MatchError as error:
            raise ValueError(f"@{self.name}: {error}") from error

    def _tile(self, value: Value, info: StructInfo, at: Mapping[str, int]) -> Value:
        if isinstance(info, TupleType) and is_tuple(value):
            return tuple(self._tile(*pair, at) for pair in zip(value, info.fields, strict=True))
        if not isinstance(info, TensorType) or info.sharding is None or not info.sharding.shards:
            return value
        index: list[slice] = [slice(None)] * np.ndim(value)
        for dim, axis in info.sharding.shards.items():
            index[dim] = slice(*tile_bounds(np.shape(value)[dim], self.mesh[axis.name], at[axis.name]))
        return np.ascontiguousarray(value[tuple(index)])

    @property
    def shares_result(self) -> bool:
        """Whether workers have tiles of the result, or of a field of it."""
        return _is_shared(self.type.ret)

    def whole(self, results: Sequence[Value]) -> Value:
        """The result of the whole, for those of all workers by rank."""
        return self._joined(results, self.type.ret)

    def _joined(self, values: Sequence[Value], info: StructInfo) -> Value:
        if isinstance(info, TupleType):
            return tuple(self._joined([value[at] for value in values], field) for at, field in enumerate(info.fields))
        shards = {} if not isinstance(info, TensorType) or info.sharding is None else info.sharding.shards
        if not shards:
            return values[0]
        dims = {axis.name: dim for dim, axis in shards.items()}
        by_coordinates = dict(zip(product(*map(range, self.mesh.values())), values, strict=True))

        def join(coordinates: tuple[int, ...], axes: Sequence[str]) -> Array:
            """All tiles of the workers whose coordinates begin so."""
            if not axes:
                return by_coordinates[coordinates]
            name, *rest = axes
            if name not in dims:
                return join((*coordinates, 0), rest)
            return np.concatenate([join((*coordinates, index), rest) for index in range(self.mesh[name])], dims[name])

        return join((), list(self.mesh))


@dataclass(frozen=True)
class Stage:
    """Which arguments of the whole a stage has that `split-stages` has made."""

    distribution: Distribution
    used: Sequence[int]

    @staticmethod
    def of(module: ModuleOp, name: str) -> Stage:
        """That of a function; `KeyError` if there is none, `ValueError` if it is not a stage."""
        distribution, func = Distribution.of(module, name), find_function(module, name)
        numbers = func.attributes.get(ARGUMENTS) if func is not None else None
        if not isinstance(numbers, DenseArrayBase):
            raise ValueError(f"@{name} is not a stage: use the pass split-stages")
        return Stage(distribution, [int(each) for each in numbers.iter_values()])

    def arguments(self, whole: Sequence[Value], rank: int) -> list[Value]:
        """The arguments of the stage on a worker, for those of the whole."""
        workers, *values = self.distribution.arguments(whole, rank)
        return [workers, *(values[at] for at in self.used)]


def _is_shared(info: StructInfo) -> bool:
    if isinstance(info, TupleType):
        return any(map(_is_shared, info.fields))
    return isinstance(info, TensorType) and info.sharding is not None and bool(info.sharding.shards)


def _facts(value: Any, info: StructInfo) -> Iterator[tuple[Dim, int]]:
    """The dimensions of a type, and what they are for a value."""
    if isinstance(info, TupleType) and is_tuple(value):
        for pair in zip(value, info.fields, strict=True):
            yield from _facts(*pair)
    elif isinstance(info, TensorType | ShapeType) and info.dims is not None:
        sizes = np.shape(value) if isinstance(info, TensorType) else tuple(value)
        if len(sizes) != len(info.dims):
            raise ValueError(f"expected {len(info.dims)} dimensions, got {len(sizes)}")
        yield from ((dim, size) for dim, size in zip(info.dims, sizes, strict=True) if dim is not None)
    elif isinstance(info, PrimType) and info.value is not None:
        yield info.value, value
