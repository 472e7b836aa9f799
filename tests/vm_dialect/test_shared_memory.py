"""Workers that are threads exchange arrays through memory: sums, gathers, and what they are told of each other."""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import numpy as np
import pytest

from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.runtime.shared_memory import collectives_text
from tir_dialect.target import Target
from vm_dialect.dtypes import element_type
from vm_dialect.shared_memory import DISAGREE, REGION, SUMMED, TIMED_OUT, SharedMemory, is_available
from vm_dialect.tensors import numpy_dtype
from vm_dialect.workers import ALLGATHER, ALLREDUCE, Call


def together(workers: int, work: Callable[[SharedMemory, int], int], timeout: float | None = 60) -> list[int]:
    """What each worker gets."""
    assert is_available()
    memory = ctypes.create_string_buffer(workers * REGION + 64)
    begin = -(-ctypes.addressof(memory) // 64) * 64
    regions = [begin + index * REGION for index in range(workers)]
    groups = [SharedMemory(index, regions, timeout, memory) for index in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, groups, range(workers)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_sums(workers: int):
    rng = np.random.default_rng(0)
    for name in SUMMED:
        dtype = numpy_dtype(element_type(name))
        # One after the other, so that the buffers are used in turn; up to and beyond what fits into one.
        for size in (0, 1, 7, 1024, 1025, 40_000 if workers == 2 else 4000):
            terms = rng.uniform(-99, 99, (workers, size)).astype(dtype)
            wide = np.float32 if dtype.itemsize == 2 else dtype
            expected = reduce(np.add, terms.astype(wide)).astype(dtype)
            outs = [np.empty(size, dtype) for _ in range(workers)]
            call = Call(ALLREDUCE, dtype, (size,))
            got = together(workers, lambda group, index: group.sum(call, terms[index], outs[index]))  # noqa: B023
            assert got == [0] * workers
            for out in outs:
                np.testing.assert_array_equal(out, expected, err_msg=f"{name} {size}")


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 3, 2), (1, 5, 1), (0, 2, 2), (70, 40, 50)])
def test_gathers(axis: int, shape: tuple[int, ...]):
    whole = np.arange(np.prod(shape)).reshape(shape)
    tile = -(-shape[axis] // 3)
    terms = [
        np.ascontiguousarray(np.take(whole, range(shape[axis])[index * tile : (index + 1) * tile], axis))
        for index in range(3)
    ]
    outs = [np.full_like(whole, -1) for _ in range(3)]
    call = Call(ALLGATHER, whole.dtype, (None,), (axis, shape[axis]))
    assert together(3, lambda group, index: group.gather(call, terms[index], outs[index], axis)) == [0, 0, 0]
    for out in outs:
        np.testing.assert_array_equal(out, whole)


def test_all_workers_learn_of_one_at_another_call():
    calls = [Call(ALLREDUCE, np.dtype(np.float32), shape) for shape in ((3,), (3,), (4,))]
    terms = [np.ones(call.shape, np.float32) for call in calls]

    def work(group: SharedMemory, index: int) -> int:
        out = np.empty_like(terms[index])
        statuses = [group.sum(calls[index], terms[index], out)]
        statuses.append(group.sum(calls[0], terms[0], np.empty_like(terms[0])))  # they go on together
        assert statuses == [DISAGREE, 0]
        return 0

    together(3, work)


def test_a_worker_that_does_not_come():
    call = Call("nothing", np.dtype(np.float32), ())
    assert together(2, lambda group, index: 0 if index else group.barrier(call), timeout=0.05) == [TIMED_OUT, 0]


def test_code_for_other_machines():
    target = Target("aarch64-unknown-linux-gnu", "generic")
    text = collectives_text(target)
    assert text is not None
    assert compile_object(text, target, CompileOptions()).startswith(b"\x7fELF")
    assert collectives_text(Target("riscv64-unknown-linux-gnu", "generic-rv64")) is None
