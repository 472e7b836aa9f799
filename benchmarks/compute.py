"""Products, against libraries and against the peak of the machine.

Each case is compiled once for all sizes that are symbols in its program. Peers: NumPy and, where installed, PyTorch and
ONNX Runtime, on the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.contestants import Call, Contestant
from benchmarks.roofline import bound, peak
from benchmarks.timing import measure_in_turns, time_in_turns
from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine
from vm_dialect.tensors import from_numpy

ROUNDS, SECONDS = 25, 0.004
"""Many short turns: some of them are not disturbed."""


@dataclass(frozen=True)
class Case:
    """An operator, how the peers call it, and what it is called with."""

    name: str
    text: str
    """The program; that of the ONNX nodes if it is empty."""
    arrays: tuple[np.ndarray, ...]
    operations: float
    """Additions and multiplications of a call."""
    numpy: Callable[..., Any] | None = None
    torch: Callable[[Any], Callable[..., Any]] | None = None
    """From the module `torch` to the function."""
    onnx: str | None = None
    """The op type; the first array is the input, the others are inputs, or constants if `weights`."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    weights: bool = False
    following: tuple[Mapping[str, Any], ...] = ()
    """The attributes of further ONNX nodes, each of which takes what the one before gives and one more array."""
    peers: tuple[np.ndarray, ...] | None = None
    """What the peers are called with, if they take another layout."""
    undo: Callable[[np.ndarray], np.ndarray] | None = None
    """From our result to the layout of the peers' results."""
    result: str = "float32"
    """What the ONNX node gives."""
    opset: int = 17

    @property
    def peer_arrays(self) -> tuple[np.ndarray, ...]:
        """What the peers are called with."""
        return self.arrays if self.peers is None else self.peers

    def program(self) -> str | bytes:
        """What is compiled: a text, or an ONNX model."""
        return self.text or _model(self).SerializeToString()

    @property
    def call_arrays(self) -> tuple[np.ndarray, ...]:
        """What the compiled function is called with: weights of an ONNX model are constants of it."""
        return self.arrays[:1] if self.weights and not self.text else self.arrays


@cache
def _compiled(text: str) -> Any:
    return VirtualMachine(build(parse_module(text)))["main"]


def _ours(case: Case) -> Call:
    if case.text:
        function = _compiled(case.text)
    else:
        from relax_dialect.frontend.onnx import import_model

        function = VirtualMachine(build(import_model(_model(case))))["main"]
    tensors = [from_numpy(array) for array in case.call_arrays]
    return lambda: function(*tensors)


def _numpy(case: Case) -> Call | None:
    function = case.numpy
    return None if function is None else lambda: function(*case.peer_arrays)


def _torch(case: Case, threads: int) -> Call | None:
    try:
        import torch
    except ImportError:
        return None
    if case.torch is None:
        return None
    torch.set_num_threads(threads)
    function, tensors = case.torch(torch), [_torch_tensor(torch, array) for array in case.peer_arrays]
    return lambda: function(*tensors)


def _torch_tensor(torch: Any, array: np.ndarray) -> Any:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _names(case: Case) -> list[str]:
    return [f"x{number}" for number in range(len(case.peer_arrays))]


def _model(case: Case) -> Any:
    """The ONNX model of a case; sizes of inputs are symbols, but for channels that the weights know."""
    from onnx import helper, numpy_helper

    names, op = _names(case), case.onnx or ""
    constants = names[1:] if case.weights else []
    given = dict(zip(names, case.peer_arrays, strict=True))
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(given[name].dtype),
            [size if constants and axis == 1 else f"{name}d{axis}" for axis, size in enumerate(given[name].shape)],
        )
        for name in names
        if name not in constants
    ]
    first = names[: len(names) - len(case.following)]
    nodes = [helper.make_node(op, first, ["y"], **case.attributes)]
    for number, attributes in enumerate(case.following):
        nodes[-1].output[0] = f"y{number}"
        nodes.append(helper.make_node(op, [f"y{number}", names[len(first) + number]], ["y"], **attributes))
    result = helper.np_dtype_to_tensor_dtype(np.dtype(case.result))
    graph = helper.make_graph(
        nodes,
        "case",
        inputs,
        [helper.make_tensor_value_info("y", result, [f"y{axis}" for axis in range(given[names[0]].ndim)])],
        [numpy_helper.from_array(given[name], name) for name in constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)


def _onnxruntime(case: Case, threads: int) -> Call | None:
    if case.onnx is None:
        return None
    try:
        import onnxruntime

        model = _model(case)
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    given = dict(zip(_names(case), case.peer_arrays, strict=True))
    feed = {each.name: given[each.name] for each in model.graph.input}
    return lambda: session.run(None, feed)


def _systems(cases: Sequence[Case], threads: int) -> dict[str, Contestant]:
    """All systems; the first one is ours."""
    makers: dict[str, Callable[[Case], Call | None]] = {
        "ours": _ours,
        "NumPy": _numpy,
        "PyTorch": partial(_torch, threads=threads),
        "ONNX Runtime": partial(_onnxruntime, threads=threads),
    }
    return {name: Contestant(lambda number, make=make: make(cases[number])) for name, make in makers.items()}


def run_case(case: Case, number: int, systems: Mapping[str, Contestant], threads: int) -> str:
    """One line of the table."""
    found = {name: system.prepare(number) for name, system in systems.items()}
    results = {name: result for name, result in found.items() if result is not None}
    expected = results["ours"]
    for name, result in results.items():
        _compare(
            f"{case.name} by {name}", expected if case.undo is None or name == "ours" else case.undo(expected), result
        )
    times = measure_in_turns({name: systems[name].time for name in results}, ROUNDS, min, SECONDS)
    speed = case.operations / times["ours"]
    cells = [
        case.name,
        f"{times['ours'] * 1e6:.0f} us",
        f"{speed / 1e9:.0f}",
        f"{100 * speed / peak() / threads:.0f} %",
    ]
    moved = expected.nbytes + sum(array.nbytes for array in case.arrays)
    cells += [f"{moved / times['ours'] / 1e9:.1f}", bound(times["ours"], case.operations, moved, threads)]
    peers = ("NumPy", "PyTorch", "ONNX Runtime")
    cells += [f"{times[peer] / times['ours']:.2f}x" if peer in times else "" for peer in peers]
    return f"| {' | '.join(cells)} |"


def _compare(name: str, expected: np.ndarray, got: np.ndarray) -> None:
    left, right = got.astype("f8"), expected.astype("f8")
    scale = max(1.0, float(np.abs(right).max(initial=0)))
    tolerance = 1e-2 if expected.dtype == ml_dtypes.bfloat16 else 1e-3
    np.testing.assert_allclose(left / scale, right / scale, atol=tolerance, err_msg=name)


def run(module: str, title: str, cases: Sequence[Case], threads: int) -> None:
    """The table of some cases; the libraries have to use as many threads already."""
    systems = _systems(cases, threads)
    print(f"\n## {title}, threads: {threads} (`python -m benchmarks {module}`)\n")
    source, target = np.ones(1 << 26, np.uint8), np.ones(1 << 26, np.uint8)
    seconds = time_in_turns({"copy": lambda: np.copyto(target, source)}, ROUNDS, min, SECONDS)["copy"]
    print(f"The measured peak of a thread is {peak() / 1e9:.0f} GFLOP/s; a copy of 64 MiB reads and writes", end=" ")
    print(f"{2 * source.nbytes / seconds / 1e9:.1f} GB/s.")
    print("The bound is what limits a call most, and how much of it is reached: the peak, a copy of as many bytes, or")
    print("a call that computes one number.\n")
    print("| | ours | GFLOP/s | of the peak | GB/s | bound | NumPy | PyTorch | ONNX Runtime |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number, case in enumerate(cases):
        print(run_case(case, number, systems, threads), flush=True)
    for system in systems.values():
        system.close()
