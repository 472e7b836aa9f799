"""Operators that are bound by memory, against libraries and against a copy of as many bytes.

Each case is compiled once for all sizes. Peers: NumPy and, where installed, PyTorch and ONNX Runtime, each in a process
of its own. The bytes of a call are those of its arguments and its result; the copy moves as many, half of them read and
half written, on as many threads, and has its turn among the others. So it works on as much memory as the call does, in
the same cache. It stands for calls that only read as well: lines of the caches come as fast whether they are written
afterwards or not, and from memory a tenth to a fifth faster if they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import tvm_ffi

from benchmarks.contestants import Contestant
from benchmarks.roofline import bound_without_arithmetic
from benchmarks.timing import measure_in_turns
from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

ROUNDS, SECONDS = 100, 0.001
"""Many short turns: some of them are not disturbed."""

COPIES = ("copy", "threaded copy")
"""What copies memory; the faster one counts."""

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """An operator, how the peers call it, and what it is called with."""

    name: str
    signature: str
    """The parameters of the program, over the symbols m and n."""
    body: str
    arguments: Callable[[np.random.Generator], Sequence[np.ndarray]]
    numpy: Function | None = None
    torch: Callable[[Any], Function] | None = None
    """From the module `torch` to the function."""
    onnx: str | None = None
    """The op type; the arguments are its inputs."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    opset: int = 17

    @property
    def text(self) -> str:
        """The program."""
        return (
            f"relax.func @main[%m, %n]({self.signature}) -> !relax.object {{\n  %0 = {self.body}\n  relax.return %0\n}}"
        )


def call_ours(case: Case, arrays: Sequence[np.ndarray]) -> Callable[[], Any]:
    """A call of our function."""
    function = VirtualMachine(build(parse_module(case.text)))["main"]
    tensors = [tvm_ffi.from_dlpack(array) for array in arrays]
    return lambda: function(*tensors)


def call_torch(case: Case, arrays: Sequence[np.ndarray], threads: int) -> Callable[[], Any] | None:
    """A call of PyTorch; `None` if it is not installed, or has no such function."""
    try:
        import torch
    except ImportError:
        return None
    if case.torch is None:
        return None
    torch.set_num_threads(threads)
    function, tensors = case.torch(torch), [torch.from_numpy(array) for array in arrays]
    return lambda: function(*tensors)


def call_onnxruntime(case: Case, arrays: Sequence[np.ndarray], threads: int) -> Callable[[], Any] | None:
    """A call of ONNX Runtime with unknown sizes; `None` if it is not installed, or has no such op."""
    try:
        import onnxruntime
        from onnx import helper
    except ImportError:
        return None
    if case.onnx is None:
        return None
    names = [f"x{number}" for number in range(len(arrays))]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), [f"{name}d{axis}" for axis in range(array.ndim)]
        )
        for name, array in zip(names, arrays, strict=True)
    ]
    graph = helper.make_graph(
        [helper.make_node(case.onnx, names, ["y"], **case.attributes)],
        "case",
        inputs,
        [helper.make_empty_tensor_value_info("y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    feed = dict(zip(names, arrays, strict=True))
    return lambda: session.run(None, feed)


def _arrays(case: Case) -> list[np.ndarray]:
    return [np.ascontiguousarray(array) for array in case.arguments(np.random.default_rng(0))]


def _buffers(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(size, np.uint8), np.empty(size, np.uint8)


def copy_by_numpy(size: int) -> Callable[[], Any]:
    """A copy of so many bytes by one thread; for some sizes the C library's way is a slow one."""
    source, target = _buffers(size)

    def call() -> np.ndarray:
        np.copyto(target, source)
        return target

    return call


def copy_by_torch(size: int, threads: int) -> Callable[[], Any] | None:
    """The same by several threads; `None` if PyTorch is not installed."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return None
    torch.set_num_threads(threads)
    source, target = (torch.from_numpy(buffer) for buffer in _buffers(size))
    return lambda: target.copy_(source)


def _systems(cases: Sequence[Case], threads: int) -> dict[str, Contestant]:
    """All systems, by the number of a case, and what copies as many bytes as its number says."""

    def by_numpy(case: Case) -> Callable[[], Any] | None:
        function, arrays = case.numpy, _arrays(case)
        return None if function is None else lambda: function(*arrays)

    makers: dict[str, Callable[[Case], Callable[[], Any] | None]] = {
        "ours": lambda case: call_ours(case, _arrays(case)),
        "NumPy": by_numpy,
        "PyTorch": lambda case: call_torch(case, _arrays(case), threads),
        "ONNX Runtime": lambda case: call_onnxruntime(case, _arrays(case), threads),
    }
    systems = {name: Contestant(lambda number, make=make: make(cases[number])) for name, make in makers.items()}
    by_torch = Contestant(lambda size: copy_by_torch(size, threads))
    return {**systems, "copy": Contestant(copy_by_numpy), "threaded copy": by_torch}


def run_case(case: Case, number: int, systems: Mapping[str, Contestant], rounds: int) -> str:
    """One line of the table."""
    results = {name: systems[name].prepare(number) for name in ("ours", "NumPy", "PyTorch", "ONNX Runtime")}
    result = results["ours"]
    assert result is not None  # ours knows every case
    moved = result.nbytes + sum(array.nbytes for array in _arrays(case))
    for name, found in results.items():
        if found is not None:
            np.testing.assert_allclose(found, result, rtol=1e-3, atol=2e-4, err_msg=f"{case.name} by {name}")
    results |= {name: systems[name].prepare(moved // 2) for name in COPIES}
    timers = {name: systems[name].time for name, found in results.items() if found is not None}
    times = measure_in_turns(timers, rounds, min, SECONDS)
    cells = [case.name, f"{times['ours'] * 1e6:.1f} us", f"{moved / times['ours'] / 1e9:.1f}"]
    copied = min(times[name] for name in COPIES if name in times)
    cells += [f"{100 * copied / times['ours']:.0f} %", bound_without_arithmetic(times["ours"], copied)]
    cells += [
        f"{times[peer] / times['ours']:.2f}x" if peer in times else "" for peer in ("NumPy", "PyTorch", "ONNX Runtime")
    ]
    return f"| {' | '.join(cells)} |"


def run(module: str, title: str, cases: Sequence[Case], threads: int, rounds: int = ROUNDS) -> None:
    """The table of some cases, in a process whose environment tells the libraries to use as many threads."""
    systems = _systems(cases, threads)
    print(f"\n## {title}, f32, threads: {threads} (`python -m benchmarks {module}`)\n")
    print("The bound is the call itself or memory if one takes four fifths of the time: a call that computes one")
    print("number, a copy of as many bytes. Else it is compute: instructions, or waiting for their results.\n")
    print("| | ours | GB/s | of a copy | bound | NumPy | PyTorch | ONNX Runtime |")
    print("|---|---|---|---|---|---|---|---|")
    for number, case in enumerate(cases):
        print(run_case(case, number, systems, rounds), flush=True)
    for system in systems.values():
        system.close()
