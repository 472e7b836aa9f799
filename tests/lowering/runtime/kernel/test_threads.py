"""The threads of parallel loops: every number once, nested and after a fork, with the pool and with OpenMP."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache

import pytest

from lowering.llvm.compiler import compile_object, emit_assembly
from lowering.runtime.loading import LoadedCode, library_symbol, load_objects
from lowering.runtime.support import host_text, threads_text
from tir_dialect.target import Target

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL = ctypes.CFUNCTYPE(None, BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)


@cache
def loaded(openmp: bool) -> LoadedCode:
    """Kept to the end: the threads of the pool wait inside of this code."""
    return load_objects([compile_object(threads_text(Target.host(), openmp), Target.host())])


@pytest.fixture(params=[False, True], ids=["pool", "openmp"])
def code(request: pytest.FixtureRequest) -> LoadedCode:
    return loaded(request.param)


def run(code: LoadedCode, body: Callable[[int, int], object], lower: int, upper: int, threads: int) -> None:
    def call(context: int | None, first: int, last: int) -> None:
        body(first, last)

    PARALLEL(code.address("relax_parallel"))(BODY(call), None, lower, upper, threads)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("bounds", [(0, 0), (0, 1), (3, 10), (-5, 200), (7, 4)])
def test_every_number_once(code: LoadedCode, bounds: tuple[int, int], threads: int) -> None:
    for _ in range(20):
        assert sorted(numbers(code, bounds, threads)) == list(range(*bounds))


def test_chunks_become_smaller() -> None:
    """In the part of each thread large ones first, which keep neighbours together; single numbers last, so that no
    thread waits for long."""
    chunks: list[tuple[int, int]] = []
    run(loaded(False), lambda first, last: chunks.append((first, last)), 0, 64, 2)
    for lower in (0, 32):
        sizes = [last - first for first, last in sorted(chunks) if lower <= first < lower + 32]
        assert sizes == sorted(sizes, reverse=True)
        assert (sizes[0], sizes[-1], sum(sizes)) == (16, 1, 32)


def test_each_thread_begins_with_its_part() -> None:
    """So what one has in its cache is used by the same one in the next loop; and nobody waits for who is late. Workers
    of larger teams before, any of which may come, leave the caller its part as well."""
    numbers(loaded(False), (0, 5), 5)
    halves: dict[int, set[bool]] = {}

    def body(first: int, last: int) -> None:
        halves.setdefault(threading.get_ident(), set()).add(first >= 32)
        both.wait(timeout=60)

    for _ in range(20):
        halves.clear()
        both = threading.Barrier(2)
        run(loaded(False), body, 31, 33, 2)
        assert halves.pop(threading.get_ident()) == {False}
        assert list(halves.values()) == [{True}]


def test_limits_are_of_the_thread_that_calls(code: LoadedCode) -> None:
    limit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.address("relax_limit_threads"))
    most = ctypes.CFUNCTYPE(ctypes.c_int)(code.address("relax_max_threads"))
    usual, seen = most(), list[int]()
    before = limit(usual + 3)
    other = threading.Thread(target=lambda: seen.append(most()))
    other.start()
    other.join()
    assert (most(), seen) == (usual + 3, [usual])
    assert limit(before) == usual + 3
    assert most() == usual


def numbers(code: LoadedCode, bounds: tuple[int, int], threads: int) -> list[int]:
    seen: list[int] = []
    run(code, lambda first, last: seen.extend(range(first, last)), *bounds, threads)
    return seen


def test_a_loop_in_a_loop(code: LoadedCode) -> None:
    seen: list[int] = []

    def outer(first: int, last: int) -> None:
        for i in range(first, last):
            seen.extend(3 * i + j for j in numbers(code, (0, 3), 2))

    run(code, outer, 0, 4, 2)
    assert sorted(seen) == list(range(12))


def test_after_a_fork() -> None:
    program = """
import os, sys
from tests.lowering.runtime.kernel.test_threads import count_in_pool
assert count_in_pool() == 100
child = os.fork()
if child == 0:
    os._exit(0 if count_in_pool() == 100 else 1)
_, status = os.waitpid(child, 0)
sys.exit(status or count_in_pool() != 100)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, timeout=120).returncode == 0


def test_first_loops_at_once() -> None:
    """Threads of a new process that begin together: each loop sees every number, whoever sets the pool up."""
    program = """
import os, sys, threading
from tests.lowering.runtime.kernel.test_threads import count_in_pool
assert count_in_pool() == 100
for _ in range(20):
    child = os.fork()
    if child == 0:
        start, counts = threading.Barrier(4), []
        def work():
            start.wait()
            counts.append(count_in_pool())
        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        os._exit(0 if counts == [100] * 4 else 1)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, timeout=300).returncode == 0


def test_workers_that_never_take_part_are_moved() -> None:
    """Loops that end before a worker wakes: it may only run where the caller is not, if there are other processors."""
    program = """
import os, time
from lowering.runtime.loading import library_symbol
from tests.lowering.runtime.kernel.test_threads import BODY, PARALLEL, count_in_pool
def tasks():
    return set(map(int, os.listdir("/proc/self/task")))
parallel, allowed = PARALLEL(library_symbol("relax_parallel")), os.sched_getaffinity(0)
body, before = BODY(lambda context, first, last: None), tasks()
parallel(body, None, 0, 1, 2)
(worker,) = tasks() - before
for _ in range(500):
    time.sleep(0.005)
    parallel(body, None, 0, 1, 2)
    if os.sched_getaffinity(worker) != allowed:
        break
assert count_in_pool() == 100
assert os.sched_getaffinity(0) == allowed
assert os.sched_getaffinity(worker) <= allowed
print(len(allowed - os.sched_getaffinity(worker)))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert int(done.stdout) == (1 if len(os.sched_getaffinity(0)) > 1 else 0), done.stderr


def test_workers_that_share_the_processor_of_the_caller_are_moved() -> None:
    """They take part, but only while the caller waits, so that the loop takes no less time."""
    program = """
import ctypes, os, time
from lowering.runtime.loading import library_symbol
from tests.lowering.runtime.kernel.test_threads import BODY, PARALLEL, count_in_pool
def tasks():
    return set(map(int, os.listdir("/proc/self/task")))
parallel, allowed = PARALLEL(library_symbol("relax_parallel")), os.sched_getaffinity(0)
body, before = BODY(lambda context, first, last: time.sleep(0.001)), tasks()
parallel(body, None, 0, 1, 2)
(worker,) = tasks() - before
for _ in range(100):
    time.sleep(0.002)
    here = ctypes.CDLL(None).sched_getcpu()
    os.sched_setaffinity(worker, {here})
    parallel(body, None, 0, 4, 2)
    if os.sched_getaffinity(worker) != {here}:
        break
assert count_in_pool() == 100
assert os.sched_getaffinity(0) == allowed
assert os.sched_getaffinity(worker) <= allowed
print(here in os.sched_getaffinity(worker))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"{len(os.sched_getaffinity(0)) == 1}\n", done.stderr


def count_in_pool() -> int:
    """How many numbers of a hundred two threads of the pool of this process have seen."""
    seen: list[int] = []

    def call(context: int | None, first: int, last: int) -> None:
        seen.extend(range(first, last))

    PARALLEL(library_symbol("relax_parallel") or 0)(BODY(call), None, 0, 100, 2)
    return len(set(seen))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "3", "RELAX_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "nonsense"}, len(os.sched_getaffinity(0))),
    ],
)
def test_how_many_threads(variables: dict[str, str], threads: int) -> None:
    program = """
import ctypes
from lowering.runtime.loading import library_symbol
print(ctypes.CFUNCTYPE(ctypes.c_int)(library_symbol("relax_max_threads"))())
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    environment |= {**variables, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert int(done.stdout) == threads


@pytest.mark.parametrize("number", ["x", "0", "-1", "1.5", "257", "2,2"])
def test_numbers_of_threads_that_are_none(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_NUM_THREADS", number)
    with pytest.raises(ValueError, match=f'RELAX_NUM_THREADS expected a number from 1 to 256, got "{number}"'):
        host_text()


BOUND = """
import ctypes, os, time
from lowering.runtime.loading import library_symbol
from tests.lowering.runtime.kernel.test_threads import BODY, PARALLEL, count_in_pool
def tasks():
    return set(map(int, os.listdir("/proc/self/task")))
before = tasks()
body = BODY(lambda context, first, last: time.sleep(0.001))
PARALLEL(library_symbol("relax_parallel"))(body, None, 0, 8, 4)
def state(task):
    return open(f"/proc/self/task/{task}/stat").read().rpartition(")")[2].split()[0]
workers = sorted(tasks() - before)
for _ in range(200):
    time.sleep(0.001)
    states = set(map(state, workers))
    if states == {"S"}:
        break
assert count_in_pool() == 100
most = ctypes.CFUNCTYPE(ctypes.c_int)(library_symbol("relax_max_threads"))()
print(most, [sorted(os.sched_getaffinity(worker)) for worker in workers], *states, sep=";")
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variables", "found"),
    [
        (
            {"RELAX_AFFINITY": "FIRST,FIRST-FIRST,LAST", "RELAX_WAIT_POLICY": "passive"},
            "3;[[FIRST], [LAST], [FIRST]];S",
        ),
        ({"RELAX_AFFINITY": "LAST,FIRST", "OMP_WAIT_POLICY": "ACTIVE"}, "2;[[FIRST], [LAST], [FIRST]];R"),
        (
            {"RELAX_AFFINITY": "LAST", "OMP_WAIT_POLICY": "ACTIVE", "RELAX_WAIT_POLICY": "passive"},
            "1;[[LAST], [LAST], [LAST]];S",
        ),
    ],
)
def test_where_and_how_workers_wait(variables: dict[str, str], found: str) -> None:
    """The first processor is for the caller, who stays where it is; the others go round."""
    allowed = sorted(os.sched_getaffinity(0))

    def on_this_machine(text: str) -> str:
        return text.replace("LAST", str(allowed[-1])).replace("FIRST", str(allowed[0]))

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "RELAX_"))}
    environment |= {name: on_this_machine(value) for name, value in variables.items()}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", BOUND], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == on_this_machine(found), done.stderr


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(("RELAX_AFFINITY", each, "processors from 0 to 1023") for each in ("x", "1,", "3-1", "1-2-3", "1024", "-1")),
        ("RELAX_WAIT_POLICY", "sleep", "passive or active, got 'sleep'"),
    ],
)
def test_places_and_policies_that_there_are_not(
    name: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} expected {expected}"):
        host_text()


def test_threads_that_there_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_THREADS", "opnmp")
    with pytest.raises(ValueError, match='RELAX_THREADS expected openmp, or nothing for threads of our own, got "opn'):
        host_text()
    monkeypatch.setenv("RELAX_THREADS", "openmp")
    assert "GOMP_parallel" in host_text()


def test_other_machines() -> None:
    arm = Target.parse("neoverse-n1")
    assert "isb" in emit_assembly(threads_text(arm), arm)
    unknown = Target("riscv64-unknown-linux-gnu", "generic-rv64")
    assert "GOMP_parallel" in threads_text(unknown)
