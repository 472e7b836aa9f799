"""Arrays that a thread computes while a program is compiled: constants in another order, or scaled.

NumPy lets other threads run while it moves elements, and passes need the shapes only. The computations run one after
the other, in the order in which they were asked for, so that each finds what it is made of.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_BYTES = 1 << 16
"""A smaller array takes as long as it takes to leave it to a thread."""


class LazyArray:
    """An array of a known shape and dtype, which must not be modified."""

    def __init__(
        self, shape: Sequence[int], dtype: np.dtype[Any], make: Callable[[], NDArray[Any]], executor: ThreadPoolExecutor
    ) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self._make, self._process = make, os.getpid()
        self._elements = executor.submit(make)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.size * self.dtype.itemsize

    def get(self) -> NDArray[Any]:
        """The elements, when they are there; the error of the computation, if it raised one."""
        if os.getpid() != self._process:  # a fork has no thread
            elements: Future[NDArray[Any]] = Future()
            elements.set_result(self._make())
            self._process, self._elements = os.getpid(), elements
        return self._elements.result()


Elements: TypeAlias = "NDArray[Any] | LazyArray"


def array_of(elements: Elements) -> NDArray[Any]:
    """The array itself, when it is there."""
    return elements.get() if isinstance(elements, LazyArray) else elements


def computed(
    make: Callable[[NDArray[Any]], NDArray[Any]], source: Elements, shape: Sequence[int], dtype: np.dtype[Any]
) -> Elements:
    """What `make` gives for an array, which has this shape and dtype; at once if it is small, or done already."""
    size = math.prod(shape) * dtype.itemsize
    if size < LEAST_BYTES or (executor := _executor()) is None:
        return make(array_of(source))
    return LazyArray(shape, dtype, lambda: make(array_of(source)), executor)


_executors: dict[int, ThreadPoolExecutor] = {}
"""The thread of this process, by its number: a fork has none."""


def _executor() -> ThreadPoolExecutor | None:
    """What computes; `None` if there is no second processor for it."""
    if (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) < 2:
        return None
    if os.getpid() not in _executors:
        _executors.clear()
        _executors[os.getpid()] = ThreadPoolExecutor(1, thread_name_prefix="relax-arrays")
    return _executors[os.getpid()]
