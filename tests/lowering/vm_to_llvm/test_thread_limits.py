"""`num_threads`: the threads of loops of a call, whatever the environment and other calls have."""

from __future__ import annotations

import ctypes
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import xdsl_relax as xr
from lowering import build
from lowering.parsing import parse_module
from lowering.runtime.loading import library_symbol
from vm_dialect import VirtualMachine, load_library

# The threads that a loop of the caller may have, before and after a call of another program.
PROGRAM = """
relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> impure {
  %0 = relax.call_packed "test.threads.number"(%x) : !relax.tensor<[4], f32>
  relax.return %0
}"""


def most_threads() -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int)(library_symbol("relax_max_threads") or 0)()


def number(x: Any) -> np.ndarray:
    """How many threads loops may have here, as a tensor."""
    return np.full(4, most_threads(), "f4")


def machine(packed: Callable[..., Any], mode: Any = "native", **options: Any) -> VirtualMachine:
    tvm_ffi.register_global_func("test.threads.number", number, override=True)
    return VirtualMachine(build(parse_module(PROGRAM), mode=mode), packed={"test.threads.number": packed}, **options)


X = np.zeros(4, "f4")


@pytest.mark.parametrize("threads", [1, 3, 256])
def test_the_limit_is_of_the_call(threads: int) -> None:
    before = most_threads()
    assert int(np.asarray(machine(number, num_threads=threads)["main"](X))[0]) == threads
    assert most_threads() == before
    assert int(np.asarray(machine(number)["main"](X))[0]) == before


def test_a_call_inside_of_another_has_its_own() -> None:
    inner, seen = machine(number, num_threads=5)["main"], list[int]()

    def outer(x: Any) -> Any:
        result = inner(x)
        seen.append(most_threads())
        return result

    assert int(np.asarray(machine(outer, num_threads=2)["main"](X))[0]) == 5
    assert seen == [2]


def test_the_limit_ends_with_an_error() -> None:
    before = most_threads()

    def fail(x: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        machine(fail, num_threads=7)["main"](X)
    assert most_threads() == before


def test_threads_of_the_program_have_limits_of_their_own() -> None:
    both, found = threading.Barrier(2), dict[int, int]()

    def meet(x: Any) -> Any:
        both.wait(timeout=60)
        result = number(x)
        both.wait(timeout=60)
        return result

    def run(limit: int) -> None:
        found[limit] = int(np.asarray(functions[limit](X))[0])

    functions = {limit: machine(meet, num_threads=limit)["main"] for limit in (2, 3)}
    threads = [threading.Thread(target=run, args=(limit,)) for limit in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {2: 2, 3: 3}


KERNEL = """
relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> impure {
  %0 = relax.exp %x
  %1 = relax.call_packed "test.threads.number"(%0) : !relax.tensor<[4], f32>
  relax.return %1
}"""


def test_bytecode_and_models_take_it_too() -> None:
    tvm_ffi.register_global_func("test.threads.number", number, override=True)
    for mode in ("native", "bytecode"):
        assert int(xr.compile(KERNEL, mode=mode, num_threads=6)(X)[0]) == 6
    assert int(xr.Session(KERNEL, num_threads=4).run(None, {"x": X})[0][0]) == 4


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")
def test_libraries_have_threads_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    limit: Callable[[int], int]

    def inside(x: Any) -> np.ndarray:
        now = limit(0)
        limit(now)
        return np.full(4, now, "f4")

    tvm_ffi.register_global_func("test.threads.number", inside, override=True)
    build(parse_module(KERNEL)).export_library(path)
    limit = ctypes.CDLL(str(path)).relax_limit_threads
    assert int(np.asarray(load_library(path, num_threads=3)["main"](X))[0]) == 3
    assert int(xr.compile(str(path), num_threads=2)(X)[0]) == 2
    assert int(xr.compile(str(path))(X)[0]) == 0
    with pytest.raises(ValueError, match="load_library"):
        xr.Model(load_library(path), num_threads=2)


@pytest.mark.parametrize("threads", [0, -1, 257, 1.5, True, "2"])
def test_other_numbers_are_refused(threads: Any) -> None:
    with pytest.raises(ValueError, match="num_threads expected a number from 1 to 256, got"):
        xr.compile(KERNEL, num_threads=threads)
