"""Products with constant weights as in a network: each has its own, so that weights come from far away.

Peers: ONNX Runtime, which rearranges constants too when it loads a model, and, where installed, PyTorch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from benchmarks.systems import SYSTEMS
from benchmarks.timing import in_processes, time_in_turns

ROUNDS, SECONDS = 15, 0.01
BYTES = 40 << 20
"""Of all weights together: more than the second-level cache."""
LAYERS = ((1024, 1024), (768, 768), (768, 3072), (3072, 768))
ROWS = (1, 4, 16, 32, 57, 128, 384)


def model(weights: Sequence[np.ndarray]) -> ModelProto:
    """One input that is multiplied with each of the weights."""
    names = [f"w{number}" for number in range(len(weights))]
    nodes = [helper.make_node("MatMul", ["x", name], [f"y_{name}"]) for name in names]
    k, n = weights[0].shape
    graph = helper.make_graph(
        nodes,
        "weights",
        [helper.make_tensor_value_info("x", 1, ["m", k])],
        [helper.make_tensor_value_info(f"y_{name}", 1, ["m", n]) for name in names],
        [numpy_helper.from_array(weight, name) for name, weight in zip(names, weights, strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _torch(weights: Sequence[np.ndarray], threads: int) -> Callable[[np.ndarray], Callable[[], Any]] | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(weight) for weight in weights]

    def run(x: np.ndarray) -> Callable[[], Any]:
        given = torch.from_numpy(x)
        return lambda: [torch.mm(given, tensor) for tensor in tensors]

    return run


def _line(name: str, calls: Mapping[str, Callable[[], Any]], work: float, moved: int) -> str:
    times = time_in_turns(dict(calls), ROUNDS, min, SECONDS)
    ours = times["ours"]
    cells = [name, f"{ours * 1e6:.0f} us", f"{work / ours / 1e9:.0f}", f"{moved / ours / 1e9:.1f}"]
    cells += [f"{times[peer] / ours:.2f}x" if peer in times else "" for peer in ("PyTorch", "ONNX Runtime")]
    return f"| {' | '.join(cells)} |"


def table(threads: int) -> None:
    """The table for a number of threads."""
    with tempfile.TemporaryDirectory() as folder:
        _table(threads, folder)


def _table(threads: int, folder: str) -> None:
    print(f"\n## Products with constant weights, all of a shape together, threads: {threads}\n")
    print("| | ours | GFLOP/s | GB/s of weights | PyTorch | ONNX Runtime |")
    print("|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for k, n in LAYERS:
        weights = [rng.random((k, n), np.float32) for _ in range(max(1, BYTES // (4 * k * n)))]
        torch = _torch(weights, threads)
        file = Path(folder, f"{k}x{n}.onnx")
        file.write_bytes(model(weights).SerializeToString())
        runs = {"ours": SYSTEMS["ours"](str(file), threads)}
        runs["ONNX Runtime"] = SYSTEMS["onnxruntime"](str(file), threads)
        for m in ROWS:
            x = rng.random((m, k), np.float32)
            calls: dict[str, Callable[[], Any]] = {name: run({"x": x}) for name, run in runs.items()}
            if torch is not None:
                calls["PyTorch"] = torch(x)
            _compare(calls)
            work, moved = 2.0 * m * k * n * len(weights), 4 * k * n * len(weights)
            print(_line(f"{len(weights)} of {m} x {k} x {n}", calls, work, moved), flush=True)


def _compare(calls: Mapping[str, Callable[[], Any]]) -> None:
    results = {name: [np.asarray(np.from_dlpack(each)) for each in call()] for name, call in calls.items()}
    for name, arrays in results.items():
        for array, expected in zip(arrays, results["ours"], strict=True):
            np.testing.assert_allclose(array, expected, rtol=1e-3, err_msg=name)


def main() -> None:
    """One process for each number of threads."""
    in_processes("weights")
