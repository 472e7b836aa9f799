"""Workers as processes of MPI: the groups of `vm_dialect.workers` by `mpi4py`, which the extra `mpi` installs.

A few workers on one machine have sums and gathers in memory that they share (`vm_dialect.shared_memory`). Else arrays
are sent from their own memory: a few workers send each other what they exchange, which takes half as long as the
collectives of MPI or less, and combine it in the order of their numbers, so that all have the same. The tag of a
message says what its sender is at: workers that disagree say so instead of waiting for each other. Many workers compare
what they are about to do, and use the collectives of MPI. A worker that the others do not join within a time-out is an
error, and so is one that ends before (`vm_dialect.leaving`).
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import prod
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
from mpi4py import MPI

from vm_dialect.builtins import use_native_collectives
from vm_dialect.leaving import PATIENCE, Leaving, meet, tell_before_joining
from vm_dialect.shared_memory import MOST_WORKERS, REGION, STARTED, TIMED_OUT, Poll, SharedMemory, is_available
from vm_dialect.tensors import Array
from vm_dialect.workers import ALONE, Call, dense, join, rows_of, rows_to_fill, tile_sizes, write_rows

AWAKE = 100e-6
"""Seconds in which a worker that waits looks for the others all the time."""

NAP = 20e-6
"""Seconds that it sleeps in between then: the others may need its processor."""

DIGEST = 16
"""Bytes that stand for what a message is."""

FEW = 8
"""Up to how many workers send each other what they exchange."""

SMALL = 1 << 15
"""Bytes up to which each of a few workers gets all terms of a reduction; of more, each combines a tile."""

_COMBINE: Mapping[str, Callable[..., Array]] = {
    "sum": np.add,
    "avg": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
_REDUCTIONS: Mapping[str, MPI.Op] = {"sum": MPI.SUM, "avg": MPI.SUM, "prod": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX}
_LOGICAL: Mapping[str, MPI.Op] = {"sum": MPI.LOR, "prod": MPI.LAND, "min": MPI.LAND, "max": MPI.LOR}


@dataclass(eq=False)
class MPIGroup:
    """The workers of a communicator."""

    comm: MPI.Intracomm
    timeout: float | None = None
    """Seconds after which other workers have to be there."""
    check: bool = True
    """Whether workers compare what they do."""
    few: int = FEW
    """Up to how many workers send each other what they exchange."""
    memory: SharedMemory | None = None
    """What few workers of one machine have together."""
    mesh: Mapping[str, MPIGroup] | None = None
    """The group of all workers has those of the axes, by name, and itself as `""`."""
    failed: bool = False
    """Whether an exchange has failed: messages of it may be on their way."""

    def __post_init__(self) -> None:
        self.size = self.comm.size
        self.index = self.comm.rank
        self._others = [*range(self.index), *range(self.index + 1, self.size)]
        world = MPI.COMM_WORLD.Get_group()
        self._ranks = [int(rank) for rank in self.comm.Get_group().Translate_ranks(None, world)]  # of all processes
        self._direct = self.comm.Dup()  # for what workers send each other: there, each message is the next one
        self._statuses = [MPI.Status() for _ in range(2 * len(self._others))]
        self._tags: dict[Call, int] = {}
        self._sent: list[tuple[MPI.Request, Array]] = []  # messages on their way, with their memory
        self._started: dict[Call, _Exchange] = {}  # what has begun, and is to be ended

    def enter(self) -> None:
        """From now on collectives are those of this mesh, which the process has joined, perhaps before others."""
        groups = self.mesh or {}
        if _entered[-1:] == [self]:
            return
        if self.size > 1:
            use_native_collectives({name: group.memory for name, group in groups.items() if group.memory is not None})
        join({name: group if group.size > 1 else ALONE for name, group in groups.items()})
        _entered[:] = [self]

    def agree(self, what: str) -> None:
        """`RuntimeError` on all workers unless they say the same; `TimeoutError` if some do not come."""
        if not self.check or self.size == 1:
            return
        digest = int.from_bytes(_digest(what)[:7], "little")
        mine = np.array([digest, -digest], np.int64)
        most = np.empty_like(mine)
        self._wait([self.comm.Iallreduce(mine, most, MPI.MAX)], what)
        if most[0] != -most[1]:
            self._disagree(what)

    def _disagree(self, what: str | Call, compared: bool = False) -> NoReturn:
        """Tells of two workers that are at different things; all of them come here, if they have compared."""
        self.failed = True
        if not (self.check or compared):
            raise RuntimeError(f"workers disagree: rank {self.index} is at {what}, and got more than that")
        everyone = self.comm.allgather(str(what))
        other = next((rank for rank, each in enumerate(everyone) if each != everyone[0]), 0)
        raise RuntimeError(f"workers disagree: rank 0 is at {everyone[0]}, rank {other} at {everyone[other]}")

    def _wait(
        self,
        requests: list[MPI.Request],
        what: str | Call,
        statuses: list[MPI.Status] | None = None,
        source: int | None = None,
    ) -> None:
        """Waits for the others, or one of them. MPI itself would keep the processor that they may need."""
        if MPI.Request.Testall(requests, statuses):
            return
        started, asked = time.monotonic(), 0.0
        while not MPI.Request.Testall(requests, statuses):
            waited = time.monotonic() - started
            if self.timeout is not None and waited > self.timeout:
                raise self._late(what)
            if waited > asked + PATIENCE:
                asked = waited
                self._require_there(what, self._others if source is None else [source])
            if waited > AWAKE:
                time.sleep(NAP)

    def _require_there(self, what: str | Call, others: Sequence[int]) -> None:
        """`RuntimeError` if one of some workers has ended."""
        gone = _leaving[0].gone(self._ranks[other] for other in others) if _leaving else None
        if gone is not None:
            self.failed = True
            raise RuntimeError(f"rank {gone} has ended, and will not come to {what}")

    @property
    def is_awaited(self) -> bool:
        """Whether others have begun an exchange that this worker has not begun."""
        return self._direct.Iprobe() or (self.memory is not None and self.memory.is_awaited)

    def _late(self, what: str | Call) -> TimeoutError:
        self.failed = True
        return TimeoutError(f"other workers did not come to {what} within {self.timeout:g} seconds")

    def _begun(self, call: Call) -> RuntimeError:
        self.failed = True
        return RuntimeError(f"another exchange of the group has begun before {call}, and has not ended")

    def _settle(self, status: int, call: Call) -> None:
        """Raises the error for what has become of an exchange through shared memory."""
        if status == TIMED_OUT:
            raise self._late(call)
        if status == STARTED:
            raise self._begun(call)
        if status:
            self._disagree(call, compared=True)

    def _exchange(self, call: Call, sent: Sequence[Array], received: Sequence[Array]) -> Sequence[Array]:
        """Sends an array to each worker and receives one from each; those for this worker itself stay. Gives the arrays
        that were received: other ones if this has begun before.

        All send something, if only nothing, to all: so each of them learns of one that is at something else.
        """
        if self.memory is not None:
            self._settle(self.memory.barrier(call), call)
        statuses = self._statuses
        if self._started and call not in self._started:
            raise self._begun(call)
        try:
            started = self._started.pop(call, None) or self._post(call, sent, received)
            self._wait(started.requests, call, statuses)
        except MPI.Exception as error:
            codes = [error.Get_error_code(), *(status.error for status in statuses)]
            if MPI.ERR_TRUNCATE not in map(MPI.Get_error_class, codes):
                raise
            self._disagree(call)  # what came is longer than what was expected
        for status, _ in zip(statuses, self._others, strict=False):
            if status.tag != self._tag(call):
                self._disagree(call)
        return started.received

    def _tag(self, call: Call) -> int:
        """A number for what workers do, the same on all."""
        found = self._tags.get(call)
        if found is None:
            limit = self.comm.Get_attr(MPI.TAG_UB) or 1
            found = int.from_bytes(_digest(str(call))[:7], "little") % limit if self.check else 0
            self._tags[call] = found
        return found

    def _post(self, call: Call, sent: Sequence[Array], received: Sequence[Array]) -> _Exchange:
        """Begins to send and to receive."""
        if self._started:
            raise self._begun(call)
        comm, tag = self._direct, self._tag(call)
        requests = [comm.Irecv(_buffer(received[other]), other, MPI.ANY_TAG) for other in self._others]
        requests += [comm.Isend(_buffer(sent[other]), other, tag) for other in self._others]
        return _Exchange(requests, received, sent)

    def start_allreduce(self, call: Call, x: Array) -> None:
        x, size = dense(x), self.size
        if size > self.few:
            return  # the collectives of MPI begin when they end: workers compare first what they are about to do
        if self.memory is not None and self.memory.sums(call, x):
            self._settle(self.memory.start(call, x), call)
        elif size == 2 or x.nbytes <= SMALL:
            self._started[call] = self._post(call, [x] * size, self._terms(x))
        else:
            self.start_reduce_scatter(call, x, _shares(x.size, size))

    def start_reduce_scatter(self, call: Call, x: Array, counts: Sequence[int]) -> None:
        if self.size <= self.few:
            tiles = _tiles(x, counts)
            self._started[call] = self._post(call, tiles, self._terms(tiles[self.index]))

    def start_allgather(self, call: Call, x: Array, axis: int, whole: int) -> None:
        if self.memory is not None:
            self._settle(self.memory.start(call, dense(x)), call)
        elif self.size <= self.few:
            sent = rows_of(x, axis)
            counts = [tile * prod(sent.shape[1:]) for tile in tile_sizes(whole, self.size)]
            self._started[call] = self._post(call, [sent] * self.size, [np.empty(count, x.dtype) for count in counts])

    def allreduce(self, call: Call, x: Array, out: Array, by: str) -> None:
        x, size = dense(x), self.size
        if size > self.few:
            self._reduced(call, x, out, by, lambda sent, got, op: self.comm.Allreduce(sent, got, op))
        elif self.memory is not None and self.memory.sums(call, x):
            total = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
            self._settle(self.memory.sum(call, x, total), call)
            if total is not out:
                out[...] = total
        elif size == 2 or x.nbytes <= SMALL:
            got = () if call in self._started else self._terms(x, out)
            _combine(self._exchange(call, [x] * size, got), out, by)
        else:
            counts = _shares(x.size, size)
            total = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
            tiles = _tiles(total, counts)
            self.reduce_scatter(call, x, tiles[self.index], counts, by)
            self._exchange(call, [tiles[self.index]] * size, tiles)
            if total is not out:
                out[...] = total

    def reduce_scatter(self, call: Call, x: Array, out: Array, counts: Sequence[int], by: str) -> None:
        if self.size > self.few:
            self._reduced(call, x, out, by, lambda sent, got, op: self.comm.Reduce_scatter(sent, got, [*counts], op))
            return
        tiles, total = _tiles(x, counts), out.reshape(-1)
        got = () if call in self._started else self._terms(tiles[self.index], total)
        _combine(self._exchange(call, tiles, got), total, by)

    def _terms(self, mine: Array, out: Array | None = None) -> list[Array]:
        """Memory for the terms of all workers, of which one of the first two goes where their sum will be."""
        terms = [mine] * self.size
        for other in self._others:
            if out is not None and other == self._others[0] and out.flags.c_contiguous:
                terms[other] = out
            else:
                terms[other] = np.empty_like(mine)
        return terms

    def _reduced(
        self, call: Call, x: Array, out: Array, by: str, exchange: Callable[[Array, Array, MPI.Op], None]
    ) -> None:
        """Combines floats of 16 bits or fewer in `float32`, and truth values as such."""
        self.agree(str(call))
        x = dense(x)
        narrow = _is_narrow(x.dtype)
        wide = x.astype(np.float32) if narrow else x
        direct = not narrow and out.flags.c_contiguous
        got = out if direct else np.empty(out.shape, wide.dtype)
        exchange(wide, got, _operation(by, wide.dtype))
        if by == "avg":
            got[...] = got // self.size if got.dtype.kind in "iu" else got / self.size
        if not direct:
            with np.errstate(over="ignore"):
                out[...] = got.astype(out.dtype)

    def allgather(self, call: Call, x: Array, out: Array, axis: int) -> None:
        if self.memory is not None:
            total = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
            self._settle(self.memory.gather(call, dense(x), total, axis), call)
            if total is not out:
                out[...] = total
            return
        sent, got = rows_of(x, axis), rows_to_fill(out, axis)
        counts = [tile * prod(got.shape[1:]) for tile in tile_sizes(len(got), self.size)]
        if self.size > self.few:
            self.agree(str(call))
            self.comm.Allgatherv(_bytes(sent), [_bytes(got), _scaled(counts, x), None, MPI.BYTE])
        else:
            tiles = _tiles(got, counts)
            tiles[self.index][...] = sent.reshape(-1)
            received = self._exchange(call, [sent] * self.size, tiles)
            for other in self._others if received is not tiles else ():
                tiles[other][...] = received[other]
        write_rows(out, got, axis)

    def all_to_all(self, call: Call, x: Array, out: Array, sent: Sequence[int], received: Sequence[int]) -> None:
        if self.size > self.few:
            self.agree(str(call))
            into = [_bytes(out), _scaled(received, x), None, MPI.BYTE]
            self.comm.Alltoallv([_bytes(x), _scaled(sent, x), None, MPI.BYTE], into)
            return
        mine, theirs = _tiles(x, sent), _tiles(out, received)
        theirs[self.index][...] = mine[self.index]
        self._exchange(call, mine, theirs)

    def broadcast(self, call: Call, out: Array) -> None:
        if self.size > self.few:
            self.agree(str(call))
            self.comm.Bcast(_bytes(out), 0)
            return
        counts = [0 if self.index else out.size] * self.size
        nothing = [out.size] + [0] * (self.size - 1)
        flat = out.reshape(-1)
        self._exchange(call, [flat[:count] for count in counts], [flat[:count] for count in nothing])

    def send(self, x: Array, to: int, tag: int) -> None:
        """Sends a copy, before which its description goes with a tag of its own, if workers compare."""
        self._go_on()
        messages = [_bytes(x.copy())]
        if self.check:
            messages.insert(0, np.frombuffer(_digest(_like(x)), np.uint8))
        for at, message in enumerate(messages):
            self._sent.append((self.comm.Isend(message, to, 2 * tag + (at if self.check else 1)), message))
        # Has a function called while this worker waits in shared memory.
        _polled[self._go_on] = None
        _POLL.start()

    def _go_on(self) -> bool:
        """Whether messages are still on their way: MPI moves them when it is called."""
        self._sent[:] = [each for each in self._sent if not each[0].Test()]
        return bool(self._sent)

    def receive(self, out: Array, source: int, tag: int) -> None:
        what = f"a message of rank {source} with tag {tag}, {_like(out)}"
        if self.check:
            digest = np.empty(DIGEST, np.uint8)
            self._wait([self.comm.Irecv(digest, source, 2 * tag)], what, source=source)
            if digest.tobytes() != _digest(_like(out)):
                raise RuntimeError(f"workers disagree: rank {self.index} expected {what}, and got another one")
        self._wait([self.comm.Irecv(_bytes(out), source, 2 * tag + 1)], what, source=source)


@dataclass
class _Exchange:
    """What workers send each other."""

    requests: list[MPI.Request]
    received: Sequence[Array]
    """From each worker."""
    sent: Sequence[Array]
    """To each worker: it stays until it is sent."""


def _shares(size: int, workers: int) -> list[int]:
    """Of how many elements each worker has the sum, if all have as many."""
    return [size // workers + (at < size % workers) for at in range(workers)]


def _like(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _digest(what: str) -> bytes:
    return sha256(what.encode()).digest()[:DIGEST]


def _tiles(array: Array, counts: Sequence[int]) -> list[Array]:
    """So many elements of a contiguous array for each worker."""
    flat, begin, found = array.reshape(-1), 0, list[Array]()
    for count in counts:
        found.append(flat[begin : begin + count])
        begin += count
    return found


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether elements are floats of 16 bits or fewer, which are combined in `float32`."""
    return dtype.itemsize <= 2 and dtype.kind not in "iub"


@cache
def _operation(by: str, dtype: np.dtype[Any]) -> MPI.Op:
    """What MPI combines elements by. Its own maximum and minimum lose a NaN."""
    if dtype == np.bool_:
        return _LOGICAL[by]
    if dtype.kind != "f" or by not in ("min", "max"):
        return _REDUCTIONS[by]

    def combine(x: Any, total: Any, _: MPI.Datatype) -> None:
        first, second = np.frombuffer(x, dtype), np.frombuffer(total, dtype)
        _COMBINE[by](first, second, out=second)

    return MPI.Op.Create(combine, commute=True)


@np.errstate(all="ignore")
def _combine(terms: Sequence[Array], out: Array, by: str) -> None:
    """The elements of all workers, in the order of these."""
    function, dtype = _COMBINE[by], out.dtype
    if narrow := _is_narrow(dtype):
        terms = [term.astype(np.float32) for term in terms]
    total = function(terms[0], terms[1], out=None if narrow else out)
    for other in terms[2:]:
        function(total, other, out=total)
    if by == "avg":
        total[...] = total // len(terms) if dtype.kind in "iub" else total / len(terms)
    if narrow:
        out[...] = total.astype(dtype)


def _buffer(array: Array) -> Any:
    """What MPI sends or receives: elements, or the bytes of those that it does not know."""
    return array if array.dtype.kind in "iu" or array.dtype.itemsize in (4, 8) else _bytes(array)


def _bytes(array: Array) -> Any:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def _scaled(counts: Sequence[int], array: Array) -> list[int]:
    return [count * array.dtype.itemsize for count in counts]


def join_mpi(
    mesh: Mapping[str, int],
    timeout: float | None = None,
    check: bool = True,
    few: int = FEW,
    shared_memory: bool = True,
) -> MPIGroup:
    """Makes this process a worker of a mesh, all of which MPI has started; gives the group of all workers.

    Up to `few` workers send each other what they exchange, or on one machine have it in `shared_memory`; more use the
    collectives of MPI. From then on an exception that ends this process ends all of them, which might wait for it; and
    so does its end, if they do.

    `ValueError` if MPI has started another number of processes, `RuntimeError` if one of them has ended before, or has
    another mesh, `TimeoutError` if one does not come in ten minutes.
    """
    world = MPI.COMM_WORLD
    wanted, sizes = prod(mesh.values()), ", ".join(f"{name} = {size}" for name, size in mesh.items())
    if world.size != wanted:
        raise ValueError(f"the mesh [{sizes}] has {wanted} workers, but MPI has started {world.size}")
    if world.size > 1:
        sys.excepthook = _end_all
        if not _leaving:
            meet()
            _leaving.append(Leaving(_is_awaited, abort))
    key = (tuple(mesh.items()), timeout, check, few, shared_memory)
    known = _joined.get(key)
    usable = known is not None and not any(group.failed for group in (known.mesh or {}).values())
    what = f"the mesh [{sizes}]" if check else f"the mesh [{sizes}] without checks"
    everyone = world.allgather((what, usable))  # communicators of different meshes would wait for each other
    other = next((rank for rank, (each, _) in enumerate(everyone) if each != everyone[0][0]), None)
    if other is not None:
        raise RuntimeError(f"workers disagree: rank 0 is at {everyone[0][0]}, rank {other} at {everyone[other][0]}")
    if known is None or not all(usable for _, usable in everyone):
        known = _joined[key] = _everyone(mesh, timeout, check, few, shared_memory)
    known.enter()
    return known


_leaving: list[Leaving] = []
"""Who has ended; from the first mesh of several workers on."""


def _end_alone(process: int) -> None:
    """What is done where a process ends: others may wait for it to join them."""
    if not _leaving and os.getpid() == process and MPI.Is_initialized() and not MPI.Is_finalized():
        tell_before_joining()


atexit.register(_end_alone, os.getpid())


def _is_awaited() -> bool:
    return any(group.is_awaited for known in _joined.values() for group in (known.mesh or {}).values())


_joined: dict[object, MPIGroup] = {}
"""The groups of all workers, by what they were joined with: MPI has only so many communicators."""

_entered: list[MPIGroup] = []
"""The group of all workers of the mesh in use."""


def _everyone(mesh: Mapping[str, int], timeout: float | None, check: bool, few: int, shared_memory: bool) -> MPIGroup:
    """New groups for a mesh."""
    grid = MPI.COMM_WORLD.Create_cart(list(mesh.values()), reorder=False)
    comms = {"": grid, **{name: grid.Sub([other == name for other in mesh]) for name in mesh}}
    groups = {name: MPIGroup(comm, timeout, check, few) for name, comm in comms.items()}
    if grid.size > 1:
        sharing = [group for group in groups.values() if 1 < group.size <= min(few, MOST_WORKERS)]
        _share_memory(grid, sharing if shared_memory else [])
    groups[""].mesh = groups
    return groups[""]


def _share_memory(grid: MPI.Intracomm, groups: Sequence[MPIGroup]) -> None:
    """Gives groups memory that their workers share, if all workers are on one machine that there is code for."""
    machine = grid.Split_type(MPI.COMM_TYPE_SHARED)
    is_possible = bool(groups) and machine.size == grid.size and is_available()
    machine.Free()
    if not grid.allreduce(is_possible, MPI.LAND):
        return
    window = MPI.Win.Allocate_shared(len(groups) * REGION, 1, comm=grid)
    bases = [window.Shared_query(rank)[0].address for rank in range(grid.size)]
    ctypes.memset(bases[grid.rank], 0, len(groups) * REGION)
    grid.Barrier()
    moves = grid.allreduce(len(os.sched_getaffinity(0)), MPI.MIN) >= grid.size
    for at, group in enumerate(groups):
        members: list[int] = group.comm.allgather(grid.rank)
        regions = [bases[rank] + at * REGION for rank in members]
        group.memory = SharedMemory(group.index, regions, group.timeout, window, moves)


_polled: dict[Callable[[], bool], None] = {}


def _poll_all() -> None:
    """Calls each function until it says that it need not be called again."""
    for function in [*_polled]:
        if not function():
            del _polled[function]
    if not _polled:
        _POLL.end()


_POLL = Poll(_poll_all)


_FORWARDING = 0.5
"""Seconds for the process manager to pass on what was printed; what it has not read when it aborts is lost."""


def _end_all(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """What is done about an exception that nobody catches."""
    sys.__excepthook__(kind, error, traceback)
    abort(f"{kind.__name__}: {error}")


def abort(message: str) -> NoReturn:
    """Ends all workers, with a message on the standard error of this one."""
    print(f"rank {MPI.COMM_WORLD.rank}: {message}", file=sys.stderr, flush=True)
    time.sleep(_FORWARDING)
    MPI.COMM_WORLD.Abort(1)
    os._exit(1)  # MPICH asks its process manager to end this process, and comes back
