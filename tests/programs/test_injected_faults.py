"""What a machine may do to a program at any time: no room on the disk, no memory, a fork, many threads at once.

Results stay right, or an error says what is missing; what is written is whole or not there.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from lowering import build
from lowering.llvm.code_cache import CodeCache
from lowering.parsing import parse_module
from tests.support.programs import as_arguments, as_plain
from tir_dialect.target import Target
from vm_dialect import Executable, VirtualMachine

TEXT = """
relax.func @main[%n, %m](%x: !relax.tensor<[n, m], f32>, %y: !relax.tensor<[m, m], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  %1 = relax.nn.softmax %0 axis = 1
  %2 = relax.sum %1 axes = [0]
  %3 = relax.tuple(%1, %2)
  relax.return %3
}
"""
FOUR = Target.host().with_settings({"cores": 4})


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may become larger, as on a disk that is full: writes that reach it fail in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def arguments(rows: int, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(np.float32) for shape in ((rows, 40), (40, 40))]


def result(machine: VirtualMachine, args: list[np.ndarray]) -> tuple[bytes, ...]:
    found = as_plain(machine["main"](*as_arguments(args)))
    assert isinstance(found, tuple)
    return tuple(each.tobytes() for each in found)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return build(parse_module(TEXT), target=FOUR)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [0, 1000])
def test_a_cache_without_room_keeps_nothing(size: int, tmp_path: Path, executable: Executable):
    cache = CodeCache(tmp_path / "cache")
    with largest_file(size), pytest.warns(UserWarning, match="cannot be written .File too large."):
        made = build(parse_module(TEXT), target=FOUR, cache=cache)
    assert result(VirtualMachine(made), arguments(5)) == result(VirtualMachine(executable), arguments(5))
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size > size] == []
    again = build(parse_module(TEXT), target=FOUR, cache=cache)
    assert result(VirtualMachine(again), arguments(5)) == result(VirtualMachine(executable), arguments(5))


def test_a_file_without_room_is_not_written(tmp_path: Path, executable: Executable):
    path = tmp_path / "program.rvm"
    with largest_file(1000), pytest.raises(OSError, match="File too large"):
        executable.save(path)
    assert list(tmp_path.iterdir()) == []
    executable.save(path)
    before = path.read_bytes()
    with largest_file(1000), pytest.raises(OSError, match="File too large"):
        executable.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_many_threads_call_one_function(executable: Executable):
    machine, wrong = VirtualMachine(executable), list[int]()
    expected = [result(machine, arguments(number % 7 + 1, number)) for number in range(32)]
    start = threading.Barrier(32)

    def work(number: int) -> None:
        start.wait()
        for _ in range(20):
            if result(machine, arguments(number % 7 + 1, number)) != expected[number]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


PROGRAM = """
import os, sys
from tests.programs.test_injected_faults import *
machine = VirtualMachine(build(parse_module(TEXT), target=FOUR, mode="MODE"))
args = arguments(300)
expected = result(machine, args)
"""


def python(text: str, mode: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM.replace("MODE", mode) + text]
    return subprocess.run(command, env=environment, timeout=timeout, capture_output=True, text=True, check=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["native", pytest.param("bytecode", marks=pytest.mark.slow)])
def test_a_program_goes_on_after_a_fork_and_without_memory(mode: str):
    """A call that needs tensors of 160 MB fails in the middle; what it had allocated is free again."""
    done = python(
        """
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0 if result(machine, args) == expected else 1)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
assert not any(statuses), statuses
assert result(machine, args) == expected
large = [np.ones((1 << 20, 40), np.float32), np.ones((40, 40), np.float32)]
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
before = resource.getrlimit(resource.RLIMIT_AS)
for room in (20, 200):
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20), before[1]))
    try:
        machine["main"](*as_arguments(large))
        sys.exit(f"{room} MB are enough")
    except MemoryError as error:
        assert "allocate" in str(error), error
    resource.setrlimit(resource.RLIMIT_AS, before)
    assert result(machine, args) == expected
""",
        mode,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_builds_that_are_killed_leave_a_cache_that_works(tmp_path: Path):
    """The kill comes at any time of builds that fill the cache."""
    directory = tmp_path / "cache"
    text = f"""
from pathlib import Path
cache = CodeCache(Path({str(directory)!r}))
print("begins", flush=True)
for number in range(100):
    build(parse_module(TEXT.replace("softmax", "log_softmax") + f"// {{number}}"), target=FOUR, cache=cache)
    cache.clear()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    head = "from tests.programs.test_injected_faults import *\n"
    process = subprocess.Popen([sys.executable, "-c", head + text], env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        output.readline()
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.4)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
    made = build(parse_module(TEXT.replace("softmax", "log_softmax")), target=FOUR, cache=CodeCache(directory))
    x, y = arguments(3)
    logits = x.astype(np.float64) @ y
    expected = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    found = as_plain(VirtualMachine(made)["main"](*as_arguments([x, y])))
    assert isinstance(found, tuple)
    np.testing.assert_allclose(found[0], expected, 1e-4, 1e-4)
