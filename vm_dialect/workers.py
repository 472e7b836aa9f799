"""The workers that run one program together, as compiled code sees them: groups that exchange arrays.

A process is alone until it joins others (`vm_dialect.mpi`). An axis of the mesh is a group of the workers that differ
only along it; the group of the empty name is all workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from vm_dialect.tensors import Array

ALLREDUCE, ALLGATHER = "allreduce by sum", "allgather along {} to {}"
"""What calls are that native code makes, too."""


class Call(NamedTuple):
    """What workers do together: the collective with its attributes, and the dtype and shape that each brings."""

    what: str
    """With `{}` for numbers."""
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    """`None` is a dimension in which workers may differ."""
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        """What an error calls it: `allreduce by sum of float32[3, 6]`."""
        dims = ", ".join("*" if size is None else str(size) for size in self.shape)
        return f"{self.what.format(*self.numbers)} of {self.dtype}[{dims}]"


def tile_sizes(size: int, workers: int) -> list[int]:
    """How many of `size` each worker has."""
    tile = -(-size // workers)
    return [max(0, min(tile, size - index * tile)) for index in range(workers)]


def dense(x: Array) -> Array:
    """The array in contiguous memory; of no dimensions, it stays so, unlike with `np.ascontiguousarray`."""
    return np.asarray(x, order="C")


def rows_of(x: Array, axis: int) -> Array:
    """The array with an axis in front, contiguous."""
    return dense(np.moveaxis(x, axis, 0) if axis else x)


def rows_to_fill(out: Array, axis: int) -> Array:
    """Contiguous memory for an array with an axis in front: that of `out`, if its axis is there."""
    return out if axis == 0 else np.empty(np.moveaxis(out, axis, 0).shape, out.dtype)


def write_rows(out: Array, rows: Array, axis: int) -> None:
    """Writes an array whose front axis is `axis` of `out`."""
    if axis or not np.shares_memory(out, rows):
        out[...] = np.moveaxis(rows, 0, axis)


class Group(Protocol):
    """Some workers, of which this is one. Arrays are contiguous; of those that workers have, the lengths are given.

    A collective raises `RuntimeError` on all workers if they call different ones; what it gives is not used then.
    What begins one gives the other workers what they need of this one, as far as that is possible without waiting; the
    array stays as it is until the collective is called, before which the group exchanges nothing else.
    """

    @property
    def size(self) -> int:
        """How many workers there are."""
        ...

    @property
    def index(self) -> int:
        """Which of them this is."""
        ...

    def allreduce(self, call: Call, x: Array, out: Array, by: str) -> None:
        """`out` has the elements of all workers, combined."""
        ...

    def start_allreduce(self, call: Call, x: Array) -> None:
        """Begins an `allreduce`."""
        ...

    def start_allgather(self, call: Call, x: Array, axis: int, whole: int) -> None:
        """Begins an `allgather` of so many elements along the axis."""
        ...

    def start_reduce_scatter(self, call: Call, x: Array, counts: Sequence[int]) -> None:
        """Begins a `reduce_scatter`."""
        ...

    def allgather(self, call: Call, x: Array, out: Array, axis: int) -> None:
        """`out` has the tiles of all workers along an axis, which are divided upwards."""
        ...

    def reduce_scatter(self, call: Call, x: Array, out: Array, counts: Sequence[int], by: str) -> None:
        """`out` has this worker's elements among the combined ones, of which each worker gets so many."""
        ...

    def all_to_all(self, call: Call, x: Array, out: Array, sent: Sequence[int], received: Sequence[int]) -> None:
        """Sends so many elements to each worker, and receives so many from each."""
        ...

    def broadcast(self, call: Call, out: Array) -> None:
        """`out` becomes what it is on the first worker."""
        ...

    def send(self, x: Array, to: int, tag: int) -> None:
        """Gives an array to another worker, which need not wait for it yet; it may change afterwards."""
        ...

    def receive(self, out: Array, source: int, tag: int) -> None:
        """`out` becomes the array that another worker sends with this tag."""
        ...


class _Alone:
    """The only worker of a group."""

    size = 1
    index = 0

    def start_allreduce(self, call: Call, x: Array) -> None:
        return

    def start_allgather(self, call: Call, x: Array, axis: int, whole: int) -> None:
        return

    def start_reduce_scatter(self, call: Call, x: Array, counts: Sequence[int]) -> None:
        return

    def allreduce(self, call: Call, x: Array, out: Array, by: str) -> None:
        out[...] = x

    def allgather(self, call: Call, x: Array, out: Array, axis: int) -> None:
        out[...] = x

    def reduce_scatter(self, call: Call, x: Array, out: Array, counts: Sequence[int], by: str) -> None:
        out[...] = x

    def all_to_all(self, call: Call, x: Array, out: Array, sent: Sequence[int], received: Sequence[int]) -> None:
        out[...] = x

    def broadcast(self, call: Call, out: Array) -> None:
        return

    def send(self, x: Array, to: int, tag: int) -> None:
        raise ValueError("expected another worker, got 1")

    def receive(self, out: Array, source: int, tag: int) -> None:
        raise ValueError("expected another worker, got 1")


ALONE: Group = _Alone()
_groups: dict[str, Group] = {}


def join(groups: Mapping[str, Group]) -> None:
    """From now on this process is a worker of these groups, the axes of a mesh and `""`; of none, it is alone."""
    _groups.clear()
    _groups.update(groups)


def group(name: str, workers: int = 0) -> Group:
    """A group by its name; `ValueError` if there is none, or if it has not as many workers as are expected."""
    found: Group | None = _groups.get(name) if _groups else ALONE
    if found is None:
        raise ValueError(f'no axis "{name}" in the mesh of {", ".join(filter(None, _groups))}')
    if workers and found.size != workers:
        where = f' along axis "{name}"' if name else ""
        raise ValueError(f"expected {workers} workers{where}, got {found.size}: run the program with as many")
    return found
