"""Operators that are bound by memory, against libraries and against a copy of as many bytes.

Each case is compiled once for all sizes. Peers: NumPy and, where installed, PyTorch and ONNX Runtime. The bytes of a
call are those of its arguments and its result; the copy moves as many, and has its turn among the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm_ffi

from benchmarks.timing import time_in_turns
from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

ROUNDS, SECONDS = 100, 0.001
"""Many short turns: some of them are not disturbed."""

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


def call_ours(case: Case, arrays: Sequence[np.ndarray]) -> Callable[[], Any]:
    """A call of our function."""
    text = f"relax.func @main[%m, %n]({case.signature}) -> !relax.object {{\n  %0 = {case.body}\n  relax.return %0\n}}"
    function, tensors = VirtualMachine(build(parse_module(text)))["main"], [tvm_ffi.from_dlpack(a) for a in arrays]
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


def run_case(case: Case, threads: int) -> str:
    """One line of the table."""
    arrays = [np.ascontiguousarray(array) for array in case.arguments(np.random.default_rng(0))]
    ours = call_ours(case, arrays)
    result = np.from_dlpack(ours())
    moved = result.nbytes + sum(array.nbytes for array in arrays)
    source, target = np.ones(moved // 2, np.uint8), np.empty(moved // 2, np.uint8)
    found: dict[str, Callable[[], Any] | None] = {
        "ours": ours,
        "copy": lambda: np.copyto(target, source),
        "NumPy": None if case.numpy is None else lambda: case.numpy and case.numpy(*arrays),
        "PyTorch": call_torch(case, arrays, threads),
        "ONNX Runtime": call_onnxruntime(case, arrays, threads),
    }
    calls = {name: call for name, call in found.items() if call is not None}
    for name, call in calls.items():
        _compare(f"{case.name} by {name}", result, call())
    times = time_in_turns(calls, ROUNDS, min, SECONDS)
    cells = [case.name, f"{times['ours'] * 1e6:.1f} us", f"{moved / times['ours'] / 1e9:.1f}"]
    cells.append(f"{100 * times['copy'] / times['ours']:.0f} %")
    cells += [
        f"{times[peer] / times['ours']:.2f}x" if peer in times else "" for peer in ("NumPy", "PyTorch", "ONNX Runtime")
    ]
    return f"| {' | '.join(cells)} |"


def _compare(name: str, expected: np.ndarray, got: Any) -> None:
    if got is None:  # the copy
        return
    first = got[0] if isinstance(got, list) else got
    value = first if isinstance(first, np.ndarray | np.generic) else np.from_dlpack(first)
    np.testing.assert_allclose(value, expected, rtol=1e-3, atol=2e-4, err_msg=name)


def run(module: str, title: str, cases: Sequence[Case], threads: int) -> None:
    """The table of some cases, in a process in which the libraries use as many threads."""
    print(f"\n## {title}, f32, threads: {threads} (`python -m benchmarks {module}`)\n")
    print("| | ours | GB/s | of a copy | NumPy | PyTorch | ONNX Runtime |")
    print("|---|---|---|---|---|---|---|")
    for case in cases:
        print(run_case(case, threads), flush=True)
