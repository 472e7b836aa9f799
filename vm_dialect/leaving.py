"""Workers that end: the others learn it, rather than wait for what will not come.

A process that ends tells all others, and stays until they end, too. One that waits for it meanwhile, for longer than
messages may be on their way, has an error; so has one that ends while others have begun an exchange with it. One that
ends before it has joined a mesh tells those that wait for it to join.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable

import numpy as np
from mpi4py import MPI

PATIENCE = 0.2
"""Seconds that a worker waits before it asks whether others have ended."""

GRACE = 1.0
"""Seconds for messages that are on their way when their sender ends."""

NAP = 1e-3
"""Seconds that a worker that ends sleeps before it looks again whether others do."""

BEFORE = 4711
"""The tag of what a worker sends all others that ends before it has joined them."""

START = 600.0
"""Seconds after which all workers have to have come to join."""


def meet() -> None:
    """Waits until all workers of the world have come to join.

    `RuntimeError` for one that has ended before, `TimeoutError` if one does not come.
    """
    world, status = MPI.COMM_WORLD, MPI.Status()
    request, begin = world.Ibarrier(), time.monotonic()
    while not request.Test():
        if world.Iprobe(MPI.ANY_SOURCE, BEFORE, status):
            raise RuntimeError(f"rank {status.source} has ended before it joined the mesh")
        if time.monotonic() - begin > START:
            raise TimeoutError(f"other workers did not come to join the mesh within {START:.0f} seconds")
        time.sleep(NAP)


def tell_before_joining() -> None:
    """Tells all others that this process ends, and will not join."""
    world = MPI.COMM_WORLD
    for rank in range(world.size):
        if rank != world.rank:
            world.Isend(np.empty(0, np.uint8), rank, BEFORE)


class Leaving:
    """Who of all processes has ended, by messages of their own."""

    def __init__(self, is_awaited: Callable[[], bool], abort: Callable[[str], object]):
        """All processes make one together. `is_awaited` says whether others have begun an exchange with this one;
        `abort` ends all.
        """
        self._comm = MPI.COMM_WORLD.Dup()
        self._gone: dict[int, float] = {}
        self._is_awaited, self._abort = is_awaited, abort
        self._process = os.getpid()
        atexit.register(self._leave)

    def gone(self, ranks: Iterable[int]) -> int | None:
        """One of some ranks that has ended a while ago."""
        status = MPI.Status()
        while self._comm.Iprobe(MPI.ANY_SOURCE, 0, status):
            self._comm.Recv(np.empty(0, np.uint8), status.source, 0)
            self._gone[status.source] = time.monotonic()
        now = time.monotonic()
        return next((rank for rank in ranks if now - self._gone.get(rank, now) > GRACE), None)

    def _leave(self) -> None:
        """Tells the others, and waits for them."""
        if MPI.Is_finalized() or os.getpid() != self._process:
            return
        others = [rank for rank in range(self._comm.size) if rank != self._comm.rank]
        requests = [self._comm.Isend(np.empty(0, np.uint8), rank, 0) for rank in others]
        requests.append(self._comm.Ibarrier())
        while not MPI.Request.Testall(requests):
            if self._is_awaited():
                self._abort("the process has ended, and others wait for it in an exchange")
            time.sleep(NAP)
