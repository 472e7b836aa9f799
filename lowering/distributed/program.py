"""Sharded programs from Python: `ShardedProgram(module, {"x": 4})`, in a script that `mpiexec -n 4` starts.

Arguments of the whole become those of each worker, and results of workers those of the whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp

from lowering.compiler.build import Mode, build
from lowering.compiler.program_cache import ModuleDigest
from lowering.compiler.weight_files import attach_arrays, load_weights
from lowering.distributed.collectives import MergeCollectivesPass, OverlapCollectivesPass
from lowering.distributed.lower_distributed import GLOBAL_TYPE, MESH, CutConstantsPass, LowerDistributedPass
from lowering.distributed.propagate_sharding import PropagateShardingPass
from lowering.distributed.split_stages import ARGUMENTS, SplitStagesPass
from relax_dialect.interpreter.runtime_values import Array, Shape, Value, from_python, is_tensor, is_tuple, to_ffi
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import find_function
from relax_dialect.struct_info.sharding import ShardingAttr, coordinates, tile_bounds
from relax_dialect.struct_info.types import FuncType, PrimType, ShapeType, StructInfo, TensorType, TupleType
from tir_dialect.dims import Dim, MatchError, match
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

if TYPE_CHECKING:
    from vm_dialect.mpi import MPIGroup


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

    def arguments(self, whole: Sequence[Value], rank: int, own: Collection[int] = ()) -> list[Value]:
        """The arguments of one worker, for those of the whole; `ValueError` if they do not fit the types.

        Tiles of tensors are copied, so that they are contiguous. Arguments of the numbers `own` are not those of the
        whole, but what the worker has of them.
        """
        if len(whole) != len(self.type.params):
            raise ValueError(f"@{self.name} expected {len(self.type.params)} arguments, got {len(whole)}")
        at, symbols = coordinates(self.mesh, rank), self._symbols(whole, own)
        numbers = [number for name, size in self.mesh.items() for number in (size, at[name])]
        workers = Shape([*numbers, *(symbols[name] for name in self.type.symbol_names)])
        pairs = enumerate(zip(whole, self.type.params, strict=True))
        return [workers, *(value if number in own else self._tile(value, info, at) for number, (value, info) in pairs)]

    def _symbols(self, whole: Sequence[Value], own: Collection[int]) -> Mapping[str, int]:
        infos = [_without_tiles(info) if number in own else info for number, info in enumerate(self.type.params)]
        facts = [fact for pair in zip(whole, infos, strict=True) for fact in _facts(*pair)]
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
            unit = info.sharding.units[dim]
            index[dim] = slice(*tile_bounds(np.shape(value)[dim], self.mesh[axis.name], at[axis.name], unit))
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


def _without_tiles(info: StructInfo) -> StructInfo:
    """The type of what a worker has of a tensor, without the sizes of tiles."""
    if not isinstance(info, TensorType) or info.dims is None or info.sharding is None:
        return info
    dims = [None if at in info.sharding.shards else dim for at, dim in enumerate(info.dims)]
    return TensorType(dims, info.dtype, info.device)


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


def shard(module: ModuleOp, mesh: Mapping[str, int] | None = None) -> ModuleOp:
    """The program of a worker, for a program of which some tensors are annotated, which is left as it is.

    `mesh` gives axes other sizes than the program says.
    """
    local = module.clone()
    sizes = dict(mesh or {})
    passes = PropagateShardingPass(sizes), LowerDistributedPass(sizes), MergeCollectivesPass(), OverlapCollectivesPass()
    for each in passes:
        each.apply(Context(), local)
    return local


AXIS = "p"
"""The axis of a mesh along which workers have stages."""


@dataclass(frozen=True)
class ShardedFunction:
    """A function that all workers of a mesh call together.

    Every worker calls it with the arguments of the whole, of which it takes its tiles, and gets the result of the
    whole. `arguments` and `call_local` are for those that have their tiles already, as weights should.
    """

    distribution: Distribution
    group: MPIGroup
    compiled: Callable[..., Any]
    own: Collection[int] = ()
    """The numbers of arguments that a worker gives as its tiles, which the function may write."""

    def arguments(self, *whole: Any) -> list[Value]:
        """The arguments of this worker, for those of the whole."""
        return self.distribution.arguments(list(map(from_python, whole)), self.group.index, self.own)

    def call_local(self, arguments: Sequence[Value]) -> Value:
        """The worker's part of the result."""
        self.group.enter()
        return _result(self.compiled, arguments)

    def __call__(self, *whole: Any) -> Value:
        """The result of the whole, on every worker: tensors as NumPy arrays."""
        mine = self.call_local(self.arguments(*whole))
        if not self.distribution.shares_result:
            return mine
        return self.distribution.whole(self.group.comm.allgather(mine))


class ShardedProgram:
    """A program that all workers of a mesh run together; each has made the same object.

    It is called as its function `entry` is, a `ShardedFunction`; `program["other"]` is another one of its functions.
    """

    def __init__(
        self,
        module: ModuleOp,
        mesh: Mapping[str, int],
        entry: str = "main",
        *,
        mode: Mode = "native",
        opt_level: int = 3,
        timeout: float | None = None,
        check: bool = True,
        weights: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        target: Target | None = None,
        own: Sequence[str] = (),
    ):
        """`timeout` is how many seconds workers wait for each other; with `check` they compare what they exchange.
        `weights` are the constants that the module refers to by name, as arrays or in a file (.safetensors). A worker
        keeps its tiles, and of what is mapped from files, as weights of ONNX and GGUF are, too, it reads only these.
        `own` are patterns of parameters for which workers give their tiles instead of the whole, as of caches.

        `ModuleNotFoundError` without the extra `mpi`; `ValueError` if MPI has not started as many processes, or the
        mesh is not the program's; `RuntimeError` if workers have different programs or weights.
        """
        self._own = own
        self.group = start(mesh, timeout, check)
        self.group.agree(f"the program {ModuleDigest(module, sampled=True).digest.hex()}")
        module = module.clone()
        if isinstance(weights, Mapping):
            attach_arrays(module, weights)
        elif weights is not None:
            load_weights(module, os.fspath(weights), mapped=True)
        if weights is not None:
            self.group.agree(f"the weights {ModuleDigest(module, sampled=True).digest.hex()}")
        self.module = shard(module, mesh)
        CutConstantsPass(self.rank).apply(Context(), self.module)
        self.distribution = Distribution.of(self.module, entry)
        if dict(self.distribution.mesh) != dict(mesh):
            raise ValueError(f"the program is for the mesh {dict(self.distribution.mesh)}, got {dict(mesh)}")
        self._machine = VirtualMachine(build(self.module, target, mode=mode, opt_level=opt_level))
        self._entry = self._function(entry)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function of the program, which all workers call; `KeyError` if there is none.

        Of one whose tensors nobody shares it is the function itself: all workers do the same.
        """
        func = find_function(self.module, name)
        if func is None or MESH not in func.attributes:
            return self._machine[name]
        return self._function(name)

    def _function(self, name: str) -> ShardedFunction:
        distribution, func = Distribution.of(self.module, name), find_function(self.module, name)
        names = func.param_names[1:] if isinstance(func, FuncOp) else ()  # after that of the workers
        own = {at for at, param in enumerate(names) if any(fnmatchcase(param, pattern) for pattern in self._own)}
        return ShardedFunction(distribution, self.group, self._machine[name], own)

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return self.group.index

    def arguments(self, *whole: Any) -> list[Value]:
        """The arguments of this worker for the function `entry`, for those of the whole."""
        return self._entry.arguments(*whole)

    def call_local(self, arguments: Sequence[Value]) -> Value:
        """The worker's part of the result of the function `entry`."""
        return self._entry.call_local(arguments)

    def __call__(self, *whole: Any) -> Value:
        """The result of the whole of the function `entry`, on every worker: tensors as NumPy arrays."""
        return self._entry(*whole)


class PipelinedProgram:
    """A function whose stages run on different workers; each has made the same object, and keeps its stage only.

    `module` has ops with stages (`lowering.distributed.plans.assign_stages`), as many as there are processes.
    """

    def __init__(
        self,
        module: ModuleOp,
        stages: int,
        entry: str = "main",
        *,
        mode: Mode = "native",
        opt_level: int = 3,
        timeout: float | None = None,
        check: bool = True,
    ):
        """As for `ShardedProgram`; `ValueError` if the program has another number of stages."""
        self.group = start({AXIS: stages}, timeout, check)
        self.group.agree(f"the program {ModuleDigest(module, sampled=True).digest.hex()}")
        self.stages = stages
        module = module.clone()
        SplitStagesPass(AXIS).apply(Context(), module)
        names = [f"{entry}_stage{index}" for index in range(stages + 1)]
        found = [name for name in names if find_function(module, name) is not None]
        if len(found) != stages:
            raise ValueError(f"expected @{entry} to have {stages} stages, as many as workers")
        own = found[self.group.index]
        for name in found:
            if name != own and (other := find_function(module, name)) is not None:
                other.detach()
        self.stage = Stage.of(module, own)
        self._function = VirtualMachine(build(module, mode=mode, opt_level=opt_level))[own]

    def __call__(self, *whole: Any) -> Value:
        """The result of the whole, on every worker."""
        return self.stream([whole])[0]

    def stream(self, calls: Iterable[Sequence[Any]]) -> list[Value]:
        """The results of several calls, on every worker: a stage goes on with the next one meanwhile."""
        results: list[Value] = []
        self.group.enter()
        for whole in calls:
            mine = self.stage.arguments(list(map(from_python, whole)), self.group.index)
            results.append(_result(self._function, mine))
        return self.group.comm.bcast(results, root=self.stages - 1)


def _result(function: Callable[..., Any], arguments: Sequence[Value]) -> Value:
    """What a function of a virtual machine gives. It takes arrays as they are, in less time than tensors of them."""
    return from_python(function(*(each if is_tensor(each) else to_ffi(each) for each in arguments)))


def start(mesh: Mapping[str, int], timeout: float | None = None, check: bool = True) -> MPIGroup:
    """Makes this process a worker; kernels use the processors of the machine that its workers share equally."""
    try:
        from vm_dialect.mpi import join_mpi
    except ImportError as error:
        raise ModuleNotFoundError(f"several workers need MPI: pip install 'xdsl-relax[mpi]' ({error})") from error
    os.environ.setdefault("RELAX_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // prod(mesh.values()))))
    return join_mpi(mesh, timeout, check)
