"""Matrix products: one artefact for all sizes, against the best libraries on the same arrays, on 1 and 2 threads.

Peers: NumPy (OpenBLAS) and, where installed, PyTorch (oneDNN) and ONNX Runtime (MLAS).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import tvm_ffi

from benchmarks.timing import Row, print_table, time_in_turns
from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

SIZES = ((64, 64, 64), (257, 129, 65), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (1, 768, 3072))
SIZES += ((8, 768, 3072), (128, 768, 768), (128, 768, 3072))
TEXT = """
relax.func @main[%m, %k, %n](%a: !relax.tensor<[m, k], f32>, %b: !relax.tensor<[k, n], f32>)
    -> !relax.tensor<[m, n], f32> {
  %c = relax.matmul %a, %b
  relax.return %c
}"""

Multiply = Callable[[np.ndarray, np.ndarray], Callable[[], object]]


def ours() -> Multiply:
    """Our product of two arrays."""
    function = VirtualMachine(build(parse_module(TEXT)))["main"]

    def call(a: np.ndarray, b: np.ndarray) -> Callable[[], object]:
        x, y = tvm_ffi.from_dlpack(a), tvm_ffi.from_dlpack(b)
        np.testing.assert_allclose(np.from_dlpack(function(x, y)), a @ b, rtol=1e-3, atol=1e-4)
        return lambda: function(x, y)

    return call


def torch(threads: int) -> Multiply | None:
    """PyTorch's product; `None` if it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)

    def call(a: np.ndarray, b: np.ndarray) -> Callable[[], object]:
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        return lambda: torch.mm(x, y)

    return call


def onnxruntime(threads: int) -> Multiply | None:
    """ONNX Runtime's product with unknown sizes; `None` if it is not installed."""
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        return None
    a, b, c = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in (("a", ["m", "k"]), ("b", ["k", "n"]), ("c", ["m", "n"]))
    )
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"])], "matmul", [a, b], [c])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda a, b: lambda: session.run(None, {"a": a, "b": b})


def run(threads: int) -> None:
    """The table for a number of threads, which the environment has set before NumPy was imported."""
    rng = np.random.default_rng(0)
    candidates: dict[str, Multiply | None] = {
        "ours": ours(),
        "NumPy": lambda a, b: lambda: a @ b,
        "PyTorch": torch(threads),
        "ONNX Runtime": onnxruntime(threads),
    }
    rows: list[Row] = []
    for m, k, n in SIZES:
        a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        calls = {name: candidate(a, b) for name, candidate in candidates.items() if candidate is not None}
        times = time_in_turns(calls)
        rows.append(Row(f"{m} x {k} x {n}", times.pop("ours"), times))
    print_table(f"Matrix products in f32, threads: {threads}", rows)


def main() -> None:
    """One process for each number of threads: the libraries read it when they start."""
    for threads in (1, 2):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        code = f"from benchmarks.matmul import run; run({threads})"
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
