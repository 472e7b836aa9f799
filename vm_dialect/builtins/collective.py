"""Builtins that exchange tensors with other workers, in destination-passing style. Tiles are divided upwards."""

from __future__ import annotations

from math import prod

import numpy as np
import tvm_ffi

from vm_dialect.builtins.table import builtin
from vm_dialect.tensors import Array, to_numpy
from vm_dialect.workers import ALLGATHER, Call, Group, dense, group, rows_of, rows_to_fill, tile_sizes, write_rows


def _call(what: str, x: Array, *free: int, numbers: tuple[int, ...] = ()) -> Call:
    """What all workers call with tensors of one dtype and shape, but for the free axes."""
    shape = tuple(None if axis in free else size for axis, size in enumerate(x.shape)) if free else x.shape
    return Call(what, x.dtype, shape, numbers)


def _fit(x: Array, out: Array, *free: int) -> None:
    """`ValueError` unless both have one dtype and shape, but for the free axes, of which there are some."""
    if not free and x.shape == out.shape and x.dtype == out.dtype:
        return
    shapes = ([size for at, size in enumerate(each.shape) if at not in free] for each in (x, out))
    first, second = shapes
    if x.dtype != out.dtype or x.ndim != out.ndim or first != second or not all(0 <= at < x.ndim for at in free):
        raise ValueError(f"expected a result like {x.dtype}{list(x.shape)}, got {out.dtype}{list(out.shape)}")


def _require_axis(x: Array, axis: int, what: str) -> None:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"{what}: expected an axis of {x.ndim} dimensions, got {axis}")


def _require(found: int, expected: int, what: str) -> None:
    if found != expected:
        raise ValueError(f"{what}: expected a tile of {expected}, got {found}")


@builtin("ccl_allreduce", 5)
def allreduce(name: str, workers: int, by: str, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Combines the elements of all workers."""
    found, array, result = group(name, workers), to_numpy(x), to_numpy(out)
    _fit(array, result)
    found.allreduce(_call(f"allreduce by {by}", array), array, result, by)


@builtin("ccl_start_allreduce", 5)
def start_allreduce(name: str, workers: int, by: str, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Begins an all-reduce; the result is empty."""
    found, array = group(name, workers), to_numpy(x)
    found.start_allreduce(_call(f"allreduce by {by}", array), array)


@builtin("ccl_finish_allreduce", 6)
def finish_allreduce(
    started: tvm_ffi.Tensor, name: str, workers: int, by: str, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor
) -> None:
    """Ends it."""
    allreduce(name, workers, by, x, out)


@builtin("ccl_allgather", 5)
def allgather(name: str, workers: int, axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Joins the tensors of all workers along an axis."""
    found, array, result = group(name, workers), to_numpy(x), to_numpy(out)
    _fit(array, result, axis)
    whole = result.shape[axis]
    _require(array.shape[axis], tile_sizes(whole, found.size)[found.index], "allgather")
    found.allgather(_call(ALLGATHER, array, axis, numbers=(axis, whole)), array, result, axis)


@builtin("ccl_start_allgather", 6)
def start_allgather(name: str, workers: int, axis: int, x: tvm_ffi.Tensor, whole: int, out: tvm_ffi.Tensor) -> None:
    """Begins to join tensors of the workers to one of a size; the result is empty."""
    found, array = group(name, workers), to_numpy(x)
    _require_axis(array, axis, "allgather")
    _require(array.shape[axis], tile_sizes(whole, found.size)[found.index], "allgather")
    found.start_allgather(_call(ALLGATHER, array, axis, numbers=(axis, whole)), array, axis, whole)


@builtin("ccl_finish_allgather", 6)
def finish_allgather(
    started: tvm_ffi.Tensor, name: str, workers: int, axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor
) -> None:
    """Ends it."""
    allgather(name, workers, axis, x, out)


@builtin("ccl_reduce_scatter", 6)
def reduce_scatter(name: str, workers: int, by: str, axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """A tile of the combined elements of all workers."""
    found, array, result = group(name, workers), to_numpy(x), to_numpy(out)
    _fit(array, result, axis)
    tiles = tile_sizes(array.shape[axis], found.size)
    _require(result.shape[axis], tiles[found.index], "reduce_scatter")
    rows = rows_to_fill(result, axis)
    each = prod(rows.shape[1:])
    call = _call(f"reduce_scatter by {by} along {axis}", array)
    found.reduce_scatter(call, rows_of(array, axis), rows, [tile * each for tile in tiles], by)
    write_rows(result, rows, axis)


@builtin("ccl_start_reduce_scatter", 6)
def start_reduce_scatter(name: str, workers: int, by: str, axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Begins to combine the elements; the result is empty."""
    found, array = group(name, workers), to_numpy(x)
    _require_axis(array, axis, "reduce_scatter")
    rows = rows_of(array, axis)
    counts = [tile * prod(rows.shape[1:]) for tile in tile_sizes(len(rows), found.size)]
    found.start_reduce_scatter(_call(f"reduce_scatter by {by} along {axis}", array), rows, counts)


@builtin("ccl_finish_reduce_scatter", 7)
def finish_reduce_scatter(
    started: tvm_ffi.Tensor, name: str, workers: int, by: str, axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor
) -> None:
    """Ends it."""
    reduce_scatter(name, workers, by, axis, x, out)


@builtin("ccl_all_to_all", 6)
def all_to_all(name: str, workers: int, axis: int, concat_axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Tiles along one axis become tiles along another."""
    found, array, result = group(name, workers), to_numpy(x), to_numpy(out)
    _fit(array, result, axis, concat_axis)
    cut, joined = tile_sizes(array.shape[axis], found.size), tile_sizes(result.shape[concat_axis], found.size)
    _require(result.shape[axis], cut[found.index], "all_to_all")
    _require(array.shape[concat_axis], joined[found.index], "all_to_all")
    rest = [size for at, size in enumerate(array.shape) if at not in (axis, concat_axis)]
    mine, each = array.shape[concat_axis], prod(rest)
    # What goes to a worker, and what comes from one, is contiguous, with both axes in front.
    sent = np.ascontiguousarray(np.moveaxis(array, (axis, concat_axis), (0, 1))).reshape(-1)
    received = np.empty(sum(tile * cut[found.index] * each for tile in joined), array.dtype)
    counts = [tile * cut[found.index] * each for tile in joined]
    call = _call(f"all_to_all from {concat_axis} to {axis}", array, concat_axis)
    found.all_to_all(call, sent, received, [tile * mine * each for tile in cut], counts)
    into, begin, offset = np.moveaxis(result, (axis, concat_axis), (0, 1)), 0, 0
    for tile, count in zip(joined, counts, strict=True):
        into[:, begin : begin + tile] = received[offset : offset + count].reshape(cut[found.index], tile, *rest)
        begin, offset = begin + tile, offset + count


@builtin("ccl_broadcast_from_worker0", 4)
def broadcast(name: str, workers: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """The tensor of the first worker."""
    found, array, result = group(name, workers), to_numpy(x), to_numpy(out)
    _fit(array, result)
    result[...] = array
    found.broadcast(_call("broadcast", array), result)


@builtin("ccl_scatter_from_worker0", 5)
def scatter(name: str, workers: int, axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """A tile of the tensor of the first worker."""
    found, array, result = group(name, workers), to_numpy(x), to_numpy(out)
    _fit(array, result, axis)
    tiles = tile_sizes(array.shape[axis], found.size)
    _require(result.shape[axis], tiles[found.index], "scatter")
    each = array.size // max(array.shape[axis], 1)
    rows, first = rows_to_fill(result, axis), found.index == 0
    sent = [tile * each if first else 0 for tile in tiles]
    received = [0 if source else tiles[found.index] * each for source in range(found.size)]
    mine = rows_of(array, axis) if first else np.empty(0, array.dtype)
    found.all_to_all(_call(f"scatter along {axis}", array), mine, rows, sent, received)
    write_rows(result, rows, axis)


@builtin("ccl_redistribute_replica_to_shard", 5)
def own_tile(name: str, workers: int, axis: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """A tile of the worker's own tensor."""
    found, array, result = group(name, workers), to_numpy(x), to_numpy(out)
    _fit(array, result, axis)
    tiles = tile_sizes(array.shape[axis], found.size)
    _require(result.shape[axis], tiles[found.index], "redistribute_replica_to_shard")
    begin = sum(tiles[: found.index])
    result[...] = array[(slice(None),) * axis + (slice(begin, begin + tiles[found.index]),)]


@builtin("ccl_send", 5)
def send(name: str, to: int, tag: int, x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    """Gives a tensor to another worker; the result is empty."""
    _other(name, to).send(dense(to_numpy(x)), to, tag)


@builtin("ccl_receive", 4)
def receive(name: str, source: int, tag: int, out: tvm_ffi.Tensor) -> None:
    """The tensor that another worker sends."""
    result = to_numpy(out)
    found = _other(name, source)
    direct = result if result.flags.c_contiguous else np.empty(result.shape, result.dtype)
    found.receive(direct, source, tag)
    if direct is not result:
        result[...] = direct


def _other(name: str, index: int) -> Group:
    """The group, of which another worker has this index."""
    found = group(name)
    if found.size > 1 and (not 0 <= index < found.size or index == found.index):
        raise ValueError(f"expected another one of the {found.size} workers of the group, got {index}")
    return found
