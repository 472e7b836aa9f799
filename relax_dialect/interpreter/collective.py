"""Tensors that workers share, and collective operators: every worker computes its result from what all workers bring.

A program with placements means what it means without: the interpreter has the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from xdsl.ir import Operation

from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, Worker, runs, where
from relax_dialect.interpreter.operators import make_checks
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastFromWorker0Op,
    CollectiveOp,
    DividingOp,
    ReceiveOp,
    ReduceScatterOp,
    ScatterFromWorker0Op,
    SendOp,
    StartedOp,
    StartOp,
)
from relax_dialect.ops.distributed import (
    GlobalViewOp,
    LocalViewOp,
    PlacementOp,
    RedistributeReplicaToShardOp,
    workers_that_share,
)
from relax_dialect.struct_info.sharding import group_of, tile_bounds
from tir_dialect.dtypes import numpy_dtype

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": np.add,
    "avg": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def combine(arrays: Sequence[Array], by: str) -> Array:
    """The elements of all arrays, combined in their order; of 16-bit floats in `float32`."""
    dtype = arrays[0].dtype
    narrow = dtype.itemsize == 2 and dtype.kind not in "iub"
    found = reduce(_COMBINE[by], [array.astype(np.float32) if narrow else array for array in arrays])
    if by == "avg":
        found = found / len(arrays) if found.dtype.kind not in "iub" else found // len(arrays)
    return np.asarray(found, dtype)


def tile_of(array: Array, axis: int, workers: int, index: int) -> Array:
    """The tile that a worker has of an array that is cut along an axis."""
    begin, end = tile_bounds(array.shape[axis], workers, index)
    return array[(slice(None),) * axis + (slice(begin, end),)]


def collected(frame: Frame, op: CollectiveOp, free: Sequence[int] = ()) -> tuple[Sequence[Array], int]:
    """What the workers of the group bring to an op, and the index of this one among them.

    They agree on the op, its properties and the shape, but for the axes in `free`. `ValueError` if the op says another
    number of workers than the group has.
    """
    make_checks(frame, op)
    x, worker = frame.get(op.x), frame.interpreter.worker
    group = "" if getattr(op, "all_groups", None) is not None else op.group_name
    if worker is not None:
        begun, own = (
            worker.begun.pop(group, None),
            _exchange(op, x) if isinstance(op, StartedOp) and op.started else None,
        )
        if begun != own:
            raise ValueError(
                f"'{op.name}' op expected the exchange that has begun, {begun}, got {own or 'another one'}"
            )
    if worker is None:
        values, index = [x], 0
    else:
        shape = ["*" if axis in free else str(size) for axis, size in enumerate(x.shape)]
        properties = ", ".join(f"{name} = {value}" for name, value in op.properties.items() if name not in _LOCAL)
        what = f"'{op.name}'{where(op)} of {x.dtype}[{', '.join(shape)}] ({properties})"
        values = worker.exchange(group, what, x)
        index = group_of(worker.mesh, worker.rank, group).index(worker.rank)
    if isinstance(op, AllGatherOp | DividingOp) and (count := op.num_workers.value.data) != len(values):
        raise ValueError(f"'{op.name}' op expected {count} workers, got {len(values)}")
    return values, index


_LOCAL = ("tile", "index", "size")
"""Properties over symbols, whose values workers need not have in common."""


def _set(frame: Frame, op: CollectiveOp, value: Array) -> None:
    frame.set_checked(op.result, np.ascontiguousarray(value) if value.ndim else value, f"result of '{op.name}'")


def _exchange(op: StartOp | StartedOp, x: Array) -> str:
    """How the start and the end of an exchange are told to belong to each other."""
    kind = op.collective.data if isinstance(op, StartOp) else op.name.rpartition(".")[2]
    by = f" by {op.op_type.data}" if isinstance(op, StartOp | AllReduceOp | ReduceScatterOp) else " by sum"
    along = op.along if isinstance(op, StartOp | AllGatherOp | ReduceScatterOp) else 0
    return f"{kind}{by} along {along} of {x.dtype}{list(x.shape)}"


@runs(StartOp)
def start(frame: Frame, op: StartOp) -> None:
    """The op that ends the exchange does everything here; the group has no other exchange before."""
    make_checks(frame, op)
    worker, group = frame.interpreter.worker, op.group_name
    if worker is not None:
        if group in worker.begun:
            raise ValueError(f"'{op.name}' op expected no exchange that has begun, got {worker.begun[group]}")
        worker.begun[group] = _exchange(op, frame.get(op.x))
    _set(frame, op, np.empty(0, np.bool_))


@runs(AllReduceOp)
def allreduce(frame: Frame, op: AllReduceOp) -> None:
    """The elements of all workers, combined."""
    values, _ = collected(frame, op)
    _set(frame, op, combine(values, op.op_type.data))


@runs(AllGatherOp)
def allgather(frame: Frame, op: AllGatherOp) -> None:
    """The tensors of all workers, joined."""
    values, _ = collected(frame, op, [op.along])
    _set(frame, op, np.concatenate(values, op.along))


@runs(ReduceScatterOp)
def reduce_scatter(frame: Frame, op: ReduceScatterOp) -> None:
    """A tile of the combined elements."""
    values, index = collected(frame, op)
    _set(frame, op, tile_of(combine(values, op.op_type.data), op.along, len(values), index))


@runs(AllToAllOp)
def all_to_all(frame: Frame, op: AllToAllOp) -> None:
    """A tile of each worker's tensor, joined."""
    joined = op.concat_axis.value.data % (op.result.type.rank or 1)
    values, index = collected(frame, op, [joined])
    tiles = [tile_of(value, op.along, len(values), index) for value in values]
    _set(frame, op, np.concatenate(tiles, joined))


@runs(BroadcastFromWorker0Op)
def broadcast(frame: Frame, op: BroadcastFromWorker0Op) -> None:
    """The tensor of the first worker."""
    values, _ = collected(frame, op)
    _set(frame, op, values[0])


@runs(ScatterFromWorker0Op)
def scatter(frame: Frame, op: ScatterFromWorker0Op) -> None:
    """A tile of the first worker's tensor."""
    values, index = collected(frame, op)
    _set(frame, op, tile_of(values[0], op.along, len(values), index))


@runs(SendOp)
def send(frame: Frame, op: SendOp) -> None:
    """Leaves the tensor for another worker."""
    make_checks(frame, op)
    x = frame.get(op.x)
    to, tag = (number.value.data for number in (op.to, op.tag))
    _worker(frame, op).send(op.group_name, to, tag, f"{x.dtype}{list(x.shape)}", np.array(x))
    _set(frame, op, np.empty(0, np.bool_))


@runs(ReceiveOp)
def receive(frame: Frame, op: ReceiveOp) -> None:
    """Waits for the tensor of another worker."""
    make_checks(frame, op)
    shape, dtype = list(frame.get(op.shape)), np.dtype(numpy_dtype(op.dtype))
    source, tag = (number.value.data for number in (op.source, op.tag))
    value = _worker(frame, op).receive(op.group_name, source, tag, f"{dtype}{shape}")
    frame.set_checked(op.result, value, f"result of '{op.name}'")


def _worker(frame: Frame, op: Operation) -> Worker:
    """The rank that runs this; `ValueError` if it is the only one."""
    worker = frame.interpreter.worker
    if worker is None:
        raise ValueError(f"'{op.name}' op expected another worker, got 1")
    return worker


@runs(PlacementOp)
def whole_tensor(frame: Frame, op: PlacementOp) -> None:
    """The tensor itself."""
    make_checks(frame, op)
    frame.set_checked(op.result, frame.get(op.x), f"result of '{op.name}'")


@runs(LocalViewOp, GlobalViewOp)
def view(frame: Frame, op: PlacementOp) -> None:
    """The tensor itself; `ValueError` where it is a tile, or made of tiles."""
    if op.sharding.shards and (reason := workers_that_share(op)) is not None:
        raise ValueError(f"'{op.name}' op {reason}")
    whole_tensor(frame, op)


@runs(RedistributeReplicaToShardOp)
def own_tile(frame: Frame, op: RedistributeReplicaToShardOp) -> None:
    """The tile of the worker that the op names, or of the one that this is."""
    if op.index is None:
        values, index = collected(frame, op)
        x, workers = frame.get(op.x), len(values)
    else:
        make_checks(frame, op)
        x, workers, index = frame.get(op.x), op.num_workers.value.data, evaluate(op.index.data, frame.symbols)
    frame.set_checked(op.result, tile_of(x, op.along, workers, index).copy(), f"result of '{op.name}'")
