"""Collectives of a few workers on one machine through memory that they share, without MPI and without Python.

The package `lowering` provides the code (`lowering/runtime/collective/shared_memory.ll` says how it works). Native
programs call it instead of the builtins `ccl_allreduce` and `ccl_allgather`, which call it, too. Which of the
ways a call takes follows from what its digest covers, so all workers take the same one, or learn that they disagree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

import tvm_ffi

from vm_dialect.dtypes import ElementType
from vm_dialect.tensors import Array, array_element
from vm_dialect.workers import ALLGATHER, ALLREDUCE, Call

CHUNK = 1 << 15
"""Bytes that a worker gives the others at a time; what is longer goes chunk by chunk."""

MOST_WORKERS = 8
"""The largest group."""

REGION = 128 + 2 * CHUNK
"""Bytes of memory that a worker of a group has."""

SUMMED = ("f32", "f64", "f16", "bf16", "i32", "i64")
"""Element types that are added up."""

DISAGREE, TIMED_OUT, STARTED = 1, 2, 3
"""How an exchange may fail: workers are at different calls, one did not come in time, or another one has begun. 0 is
success.
"""

NATIVE = tuple(f"{step}{name}" for name in ("allreduce", "allgather") for step in ("", "start_", "finish_"))
"""The collectives, as builtins are called after `ccl_`, for which there is code."""

_NEVER = -(1 << 62)
"""The start of a count that is to stay below its threshold."""

_MASK = (1 << 64) - 1
_PROVIDER = "lowering.runtime.shared_memory"
"""The module with the addresses of the functions, if it is installed."""


def dtype_word(element: ElementType) -> int:
    """The element type as code sees it, a `DLDataType`."""
    return element.code | element.bits << 8 | 1 << 16


def _mixed(digest: int, word: int) -> int:
    spread = ((digest ^ word & _MASK) * 1099511628211) & _MASK
    return spread ^ spread >> 32


def _start(what: str) -> int:
    digest = 14695981039346656037
    for byte in what.encode():
        digest = _mixed(digest, byte)
    return digest


def digest(call: Call) -> int:
    """64 bits that stand for a call; native code makes the same."""
    found = _start(call.what)
    element = array_element(call.dtype)
    shape = (-1 if size is None else size for size in call.shape)
    for word in (*call.numbers, 0 if element is None else dtype_word(element), len(call.shape), *shape):
        found = _mixed(found, word)
    return found


class _GroupState(ctypes.Structure):
    """As the code has it: `%group`."""

    _fields_ = (
        ("index", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("number", ctypes.c_int64),
        ("chunk", ctypes.c_int64),
        ("timeout", ctypes.c_int64),
        ("status", ctypes.c_int64),
        ("close", ctypes.c_int64),
        ("regions", ctypes.c_void_p * MOST_WORKERS),
        ("started", ctypes.c_int64),
    )


class _NamedGroup(ctypes.Structure):
    """As the code has it: `%named`."""

    _fields_ = (("group", ctypes.c_void_p), ("length", ctypes.c_int64), ("name", ctypes.c_char * 48))


class SharedMemory:
    """The exchanges of a worker with the others of its group. Each returns 0, or how it failed."""

    def __init__(self, index: int, regions: Sequence[int], timeout: float | None, memory: object, moves: bool = False):
        """`regions` are the addresses of the regions of all workers, zero at first; they are in `memory`. A worker
        `moves` to another processor than those before it are on.
        """
        nanoseconds = 0 if timeout is None else max(1, int(1e9 * timeout))
        addresses = (*regions, *(0 for _ in range(MOST_WORKERS - len(regions))))
        self._state = _GroupState(index, len(regions), 0, CHUNK, nanoseconds, 0, 0 if moves else _NEVER, addresses, 0)
        self._memory = memory
        self._index, self._regions = index, tuple(regions)
        self._digests: dict[Call, int] = {}

    @property
    def address(self) -> int:
        """Where code finds the state of the group."""
        return ctypes.addressof(self._state)

    @property
    def is_awaited(self) -> bool:
        """Whether another worker has posted an exchange that this one has not: regions begin with their number."""
        posted = [ctypes.c_int64.from_address(region).value for region in self._regions]
        return max(posted) > posted[self._index]

    def _digest(self, call: Call) -> int:
        found = self._digests.get(call)
        if found is None:
            found = self._digests[call] = digest(call)
        return found

    def sums(self, call: Call, x: Array) -> bool:
        """Whether an all-reduce goes through here: two workers add up any sum, more only small ones."""
        element = array_element(x.dtype)
        known = element is not None and element.name in SUMMED and call.what == ALLREDUCE
        return known and (self._state.size == 2 or x.nbytes <= CHUNK)

    def barrier(self, call: Call) -> int:
        """Waits until all workers of the group are at a call."""
        return _functions().barrier(self.address, self._digest(call))

    def start(self, call: Call, x: Array) -> int:
        """Begins a sum or a gather: the others find what this worker brings, or the first chunk of it."""
        return _functions().start(self.address, self._digest(call), x.ctypes.data, x.nbytes)

    def sum(self, call: Call, x: Array, out: Array) -> int:
        """`out`, contiguous as `x` is, has the elements of all workers, added up."""
        element = array_element(x.dtype)
        assert element is not None  # see sums
        return _functions().sum(
            self.address, self._digest(call), dtype_word(element), x.size, x.ctypes.data, out.ctypes.data
        )

    def gather(self, call: Call, x: Array, out: Array, axis: int) -> int:
        """`out` has the tiles of all workers along an axis, of which each brings one; both are contiguous."""
        rows, inner = prod(out.shape[:axis]), prod(out.shape[axis + 1 :]) * out.dtype.itemsize
        return _functions().gather(
            self.address, self._digest(call), out.shape[axis], rows, inner, x.ctypes.data, out.ctypes.data
        )


class _Functions:
    """The functions of the code."""

    def __init__(self, addresses: Mapping[str, int]):
        integer, word, pointer = ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p

        def function(name: str, *arguments: Any, result: Any = integer) -> Callable[..., Any]:
            return ctypes.CFUNCTYPE(result, *arguments)(addresses[f"relax_collectives_{name}"])

        self.barrier = function("barrier", pointer, word)
        self.start = function("start", pointer, word, pointer, integer)
        self.sum = function("sum", pointer, word, ctypes.c_int32, integer, pointer, pointer)
        self.gather = function("gather", pointer, word, integer, integer, integer, pointer, pointer)
        self.set = function("set", pointer, integer, *[pointer] * 4, word, word, result=None)
        self.poll = function("poll", pointer, result=None)
        self.entries = {
            name: tvm_ffi.Function.__from_extern_c__(addresses[f"relax_collectives_{name}"]) for name in NATIVE
        }


@cache
def _provided() -> _Functions | None:
    try:
        addresses = import_module(_PROVIDER).functions()
    except ImportError:
        return None
    return None if addresses is None else _Functions(addresses)


def _functions() -> _Functions:
    found = _provided()
    assert found is not None  # a group has memory only then
    return found


def is_available() -> bool:
    """Whether there is code for this machine."""
    return _provided() is not None


_kept: list[object] = []
"""What the code has the addresses of."""


def native_entries(
    groups: Mapping[str, SharedMemory], builtins: Mapping[str, tvm_ffi.Function]
) -> Mapping[str, tvm_ffi.Function]:
    """What native programs call instead of the `builtins` of `NATIVE`, which the code calls for other groups than these
    and for what it does not do.
    """
    if (functions := _provided()) is None:
        return {}
    named = [
        _NamedGroup(group.address, len(name.encode()), name.encode())
        for name, group in groups.items()
        if len(name.encode()) <= 48
    ]
    table = (_NamedGroup * len(named))(*named)
    called = ("allreduce", "allgather", "start_allreduce", "start_allgather")
    handles = (builtins[name].__chandle__() for name in called)
    functions.set(ctypes.addressof(table), len(named), *handles, _start(ALLREDUCE), _start(ALLGATHER))
    _kept[:] = [table, groups, builtins]
    return functions.entries


_POLL = ctypes.CFUNCTYPE(None)


class Poll:
    """What is to be called now and then while this worker waits for others."""

    def __init__(self, function: Callable[[], None]):
        self._function = _POLL(function)

    def start(self) -> None:
        """From now on."""
        if (functions := _provided()) is not None:
            functions.poll(ctypes.cast(self._function, ctypes.c_void_p))

    def end(self) -> None:
        """Never again."""
        if (functions := _provided()) is not None:
            functions.poll(None)
