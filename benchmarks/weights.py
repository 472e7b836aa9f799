"""Products with constant weights as in a network: each has its own, so that weights come from far away.

Peers: ONNX Runtime, which rearranges constants too when it loads a model, and, where installed, PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from benchmarks.contestants import Call, Contestant
from benchmarks.timing import in_processes, measure_in_turns
from lowering import build
from relax_dialect.frontend.onnx import import_model
from vm_dialect import VirtualMachine
from vm_dialect.tensors import from_numpy

ROUNDS, SECONDS = 15, 0.01
BYTES = 40 << 20
"""Of all weights together: more than the second-level cache."""
LAYERS = ((1024, 1024), (768, 768), (768, 3072), (3072, 768))
ROWS = (1, 4, 16, 32, 57, 128, 384)
CASES = tuple((m, k, n) for k, n in LAYERS for m in ROWS)

Layer = Callable[[np.ndarray], Call]
"""From some rows to a call that multiplies them with each of the weights."""


def _weights(k: int, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random((k, n), np.float32) for _ in range(_count(k, n))]


def _count(k: int, n: int) -> int:
    return max(1, BYTES // (4 * k * n))


def _rows(m: int, k: int) -> np.ndarray:
    return np.random.default_rng(1).random((m, k), np.float32)


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


def _ours(k: int, n: int) -> Layer:
    function = VirtualMachine(build(import_model(model(_weights(k, n)))))["main"]
    return lambda x: partial(function, from_numpy(x))


def _onnxruntime(k: int, n: int, threads: int) -> Layer:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    content = model(_weights(k, n)).SerializeToString()
    session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
    return lambda x: partial(session.run, None, {"x": x})


def _torch(k: int, n: int, threads: int) -> Layer | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(weight) for weight in _weights(k, n)]

    def layer(x: np.ndarray) -> Call:
        given = torch.from_numpy(x)
        return lambda: [torch.mm(given, tensor) for tensor in tensors]

    return layer


def _system(make: Callable[[int, int], Layer | None]) -> Contestant:
    """A system, by the number of a case; it keeps the weights of the last one."""
    layers = lru_cache(maxsize=1)(make)

    def prepare(number: int) -> Call | None:
        m, k, n = CASES[number]
        layer = layers(k, n)
        return None if layer is None else layer(_rows(m, k))

    return Contestant(prepare)


def _line(number: int, systems: Mapping[str, Contestant]) -> str:
    m, k, n = CASES[number]
    found = {name: system.prepare(number) for name, system in systems.items()}
    results = {name: result for name, result in found.items() if result is not None}
    for name, result in results.items():
        np.testing.assert_allclose(result, results["ours"], rtol=1e-3, err_msg=name)
    times = measure_in_turns({name: systems[name].time for name in results}, ROUNDS, min, SECONDS)
    ours, count = times["ours"], _count(k, n)
    work, moved = 2.0 * m * k * n * count, 4 * k * n * count
    cells = [f"{count} of {m} x {k} x {n}", f"{ours * 1e6:.0f} us"]
    cells += [f"{work / ours / 1e9:.0f}", f"{moved / ours / 1e9:.1f}"]
    cells += [f"{times[peer] / ours:.2f}x" if peer in times else "" for peer in ("PyTorch", "ONNX Runtime")]
    return f"| {' | '.join(cells)} |"


def table(threads: int) -> None:
    """The table for a number of threads."""
    print(f"\n## Products with constant weights, all of a shape together, threads: {threads}\n")
    print("| | ours | GFLOP/s | GB/s of weights | PyTorch | ONNX Runtime |")
    print("|---|---|---|---|---|---|")
    by_torch, by_onnxruntime = partial(_torch, threads=threads), partial(_onnxruntime, threads=threads)
    makers = {"ours": _ours, "PyTorch": by_torch, "ONNX Runtime": by_onnxruntime}
    systems: dict[str, Contestant] = {name: _system(make) for name, make in makers.items()}
    for number in range(len(CASES)):
        print(_line(number, systems), flush=True)
    for system in systems.values():
        system.close()


def main() -> None:
    """One process for each number of threads."""
    in_processes("weights")
