"""Workers as processes of MPI: the groups of `vm_dialect.workers` by `mpi4py`, which the extra `mpi` installs.

Arrays are sent from their own memory. Before data moves, all workers of a group compare what they are about to do, so
that those that disagree say so instead of waiting for each other, and a worker that the others do not join within a
time-out is an error.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from typing import Any, NoReturn

import numpy as np
from mpi4py import MPI

from vm_dialect.tensors import Array
from vm_dialect.workers import join

AWAKE = 2e-3
"""Seconds in which a worker that has a time-out looks for the others all the time."""

NAP = 100e-6
"""Seconds that it sleeps in between then."""

DIGEST = 16
"""Bytes that stand for what a message is."""

_REDUCTIONS: Mapping[str, MPI.Op] = {
    "sum": MPI.SUM,
    "avg": MPI.SUM,
    "prod": MPI.PROD,
    "min": MPI.MIN,
    "max": MPI.MAX,
}
_LOGICAL: Mapping[str, MPI.Op] = {"sum": MPI.LOR, "prod": MPI.LAND, "min": MPI.LAND, "max": MPI.LOR}


@dataclass(frozen=True)
class MPIGroup:
    """The workers of a communicator."""

    comm: MPI.Intracomm
    timeout: float | None = None
    """Seconds after which other workers have to be there."""
    check: bool = True
    """Whether workers compare what they do before data moves: a message of 16 bytes for each exchange."""
    _sent: list[tuple[MPI.Request, Array]] = field(default_factory=list["tuple[MPI.Request, Array]"])
    """Messages on their way, with their memory."""

    @property
    def size(self) -> int:
        return self.comm.size

    @property
    def index(self) -> int:
        return self.comm.rank

    @property
    def checks(self) -> bool:
        return self.check and self.comm.size > 1

    def agree(self, what: str) -> None:
        """`RuntimeError` on all workers unless they say the same; `TimeoutError` if some do not come."""
        if not self.checks:
            return
        digest = int.from_bytes(sha256(what.encode()).digest()[:7], "little")
        mine = np.array([digest, -digest], np.int64)
        most = np.empty_like(mine)
        self._wait(self.comm.Iallreduce(mine, most, MPI.MAX), what)
        if most[0] != -most[1]:
            everyone = self.comm.allgather(what)
            other = next(rank for rank, each in enumerate(everyone) if each != everyone[0])
            raise RuntimeError(f"workers disagree: rank 0 is at {everyone[0]}, rank {other} at {everyone[other]}")

    def _wait(self, request: MPI.Request, what: str) -> None:
        """Waits for the others: in MPI, unless they have to come within a time."""
        if self.timeout is None:
            request.Wait()
            return
        started = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - started
            if waited > self.timeout:
                raise TimeoutError(f"other workers did not come to {what} within {self.timeout:g} seconds")
            if waited > AWAKE:
                time.sleep(NAP)
            else:
                os.sched_yield()  # the others may need the processor

    def allreduce(self, x: Array, out: Array, by: str) -> None:
        self._reduced(x, out, by, lambda sent, got, op: self.comm.Allreduce(sent, got, op))

    def reduce_scatter(self, x: Array, out: Array, counts: Sequence[int], by: str) -> None:
        self._reduced(x, out, by, lambda sent, got, op: self.comm.Reduce_scatter(sent, got, list(counts), op))

    def _reduced(self, x: Array, out: Array, by: str, exchange: Callable[[Array, Array, MPI.Op], None]) -> None:
        """Combines floats of 16 bits or fewer in `float32`, and truth values as such."""
        x = np.ascontiguousarray(x)
        logical = x.dtype == np.bool_
        op = _LOGICAL[by] if logical else _REDUCTIONS[by]
        narrow = x.dtype.kind not in "iub" and x.dtype.itemsize <= 2
        wide = x.astype(np.float32) if narrow else x
        direct = not narrow and out.flags.c_contiguous
        got = out if direct else np.empty(out.shape, wide.dtype)
        exchange(wide, got, op)
        if by == "avg":
            got[...] = got // self.size if got.dtype.kind in "iu" else got / self.size
        if not direct:
            out[...] = got.astype(out.dtype)

    def allgather(self, x: Array, out: Array, counts: Sequence[int]) -> None:
        self.comm.Allgatherv(_bytes(x), [_bytes(out), _scaled(counts, x), None, MPI.BYTE])

    def all_to_all(self, x: Array, out: Array, sent: Sequence[int], received: Sequence[int]) -> None:
        self.comm.Alltoallv(
            [_bytes(x), _scaled(sent, x), None, MPI.BYTE], [_bytes(out), _scaled(received, x), None, MPI.BYTE]
        )

    def broadcast(self, out: Array) -> None:
        self.comm.Bcast(_bytes(out), 0)

    def send(self, x: Array, to: int, tag: int) -> None:
        """Sends a copy, before which its description goes with a tag of its own, if workers compare."""
        self._sent[:] = [each for each in self._sent if not each[0].Test()]
        messages = [_bytes(x.copy())]
        if self.check:
            messages.insert(0, np.frombuffer(_digest(_like(x)), np.uint8))
        for at, message in enumerate(messages):
            self._sent.append((self.comm.Isend(message, to, 2 * tag + (at if self.check else 1)), message))

    def receive(self, out: Array, source: int, tag: int) -> None:
        what = f"a message of rank {source} with tag {tag}, {_like(out)}"
        if self.check:
            digest = np.empty(DIGEST, np.uint8)
            self._wait(self.comm.Irecv(digest, source, 2 * tag), what)
            if digest.tobytes() != _digest(_like(out)):
                raise RuntimeError(f"workers disagree: rank {self.index} expected {what}, and got another one")
        self._wait(self.comm.Irecv(_bytes(out), source, 2 * tag + 1), what)


def _like(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _digest(what: str) -> bytes:
    return sha256(what.encode()).digest()[:DIGEST]


def _bytes(array: Array) -> Any:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def _scaled(counts: Sequence[int], array: Array) -> list[int]:
    return [count * array.dtype.itemsize for count in counts]


def join_mpi(mesh: Mapping[str, int], timeout: float | None = None, check: bool = True) -> MPIGroup:
    """Makes this process a worker of a mesh, all of which MPI has started; gives the group of all workers.

    `ValueError` if MPI has started another number of processes.
    """
    world = MPI.COMM_WORLD
    wanted = prod(mesh.values())
    if world.size != wanted:
        sizes = ", ".join(f"{name} = {size}" for name, size in mesh.items())
        raise ValueError(f"the mesh [{sizes}] has {wanted} workers, but MPI has started {world.size}")
    grid = world.Create_cart(list(mesh.values()), reorder=False)
    groups = {name: grid.Sub([other == name for other in mesh]) for name in mesh}
    everyone = MPIGroup(grid, timeout, check)
    join({"": everyone, **{name: MPIGroup(comm, timeout, check) for name, comm in groups.items()}})
    return everyone


_FORWARDING = 0.5
"""Seconds for the process manager to pass on what was printed; what it has not read when it aborts is lost."""


def abort(message: str) -> NoReturn:
    """Ends all workers, with a message on the standard error of this one."""
    print(f"rank {MPI.COMM_WORLD.rank}: {message}", file=sys.stderr, flush=True)
    time.sleep(_FORWARDING)
    MPI.COMM_WORLD.Abort(1)
    os._exit(1)  # MPICH asks its process manager to end this process, and comes back
