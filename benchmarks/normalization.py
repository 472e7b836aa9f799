"""Softmax and normalisations: chains of reductions and maps over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.memory import Case, run
from benchmarks.timing import in_processes

X = "%x: !relax.tensor<[m, n], f32>"
ROW = "!relax.tensor<[n], f32>"
IMAGE = "%x: !relax.tensor<[1, 64, m, n], f32>, %y: !relax.tensor<[64], f32>, %z: !relax.tensor<[64], f32>"


def _arrays(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Sequence[np.ndarray]]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


def _statistics(rng: np.random.Generator) -> Sequence[np.ndarray]:
    image, *rest = _arrays((1, 64, 56, 56), (64,), (64,), (64,))(rng)
    return [image, *rest, rng.random(64, np.float32) + 0.5]


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * y + z


CASES = (
    *(
        Case(
            f"softmax, {rows} x {columns}",
            X,
            "relax.nn.softmax %x",
            _arrays((rows, columns)),
            _softmax,
            lambda torch: lambda x: torch.softmax(x, -1),
            "Softmax",
        )
        for rows, columns in ((512, 1024), (1536, 128), (4096, 64), (8192, 16), (777, 513), (64, 50257))
    ),
    Case(
        "softmax along 0, 512 x 1024",
        X,
        "relax.nn.softmax %x axis = 0",
        _arrays((512, 1024)),
        None,
        lambda torch: lambda x: torch.softmax(x, 0),
        "Softmax",
        {"axis": 0},
    ),
    Case(
        "softmax along 1, 64 x 100 x 128",
        "%x: !relax.tensor<[64, m, n], f32>",
        "relax.nn.softmax %x axis = 1",
        _arrays((64, 100, 128)),
        None,
        lambda torch: lambda x: torch.softmax(x, 1),
        "Softmax",
        {"axis": 1},
    ),
    *(
        Case(
            f"log softmax, {rows} x {columns}",
            X,
            "relax.nn.log_softmax %x",
            _arrays((rows, columns)),
            None,
            lambda torch: lambda x: torch.log_softmax(x, -1),
            "LogSoftmax",
        )
        for rows, columns in ((512, 1024), (4096, 10))
    ),
    *(
        Case(
            f"layer norm, {rows} x {columns}",
            f"{X}, %y: {ROW}, %z: {ROW}",
            "relax.nn.layer_norm %x, %y, %z axes = [-1]",
            _arrays((rows, columns), (columns,), (columns,)),
            _layer_norm,
            lambda torch: lambda x, y, z: torch.nn.functional.layer_norm(x, y.shape, y, z),
            "LayerNormalization",
        )
        for rows, columns in ((512, 1024), (128, 768), (777, 513), (8192, 16), (64, 50257))
    ),
    Case(
        "rms norm, 512 x 1024",
        f"{X}, %y: {ROW}",
        "relax.nn.rms_norm %x, %y axes = [-1]",
        _arrays((512, 1024), (1024,)),
        None,
        lambda torch: lambda x, y: torch.nn.functional.rms_norm(x, y.shape, y, 1e-5),
    ),
    Case(
        "group norm, 4 groups, 1 x 64 x 56 x 56",
        IMAGE,
        "relax.nn.group_norm %x, %y, %z num_groups = 4 channel_axis = 1 axes = [2, 3]",
        _arrays((1, 64, 56, 56), (64,), (64,)),
        None,
        lambda torch: lambda x, y, z: torch.nn.functional.group_norm(x, 4, y, z),
    ),
    Case(
        "instance norm, 1 x 64 x 56 x 56",
        IMAGE,
        "relax.nn.instance_norm %x, %y, %z channel_axis = 1 axes = [2, 3]",
        _arrays((1, 64, 56, 56), (64,), (64,)),
        None,
        lambda torch: lambda x, y, z: torch.nn.functional.instance_norm(x, weight=y, bias=z),
        "InstanceNormalization",
    ),
    Case(
        "batch norm, 1 x 64 x 56 x 56",
        f"{IMAGE}, %u: !relax.tensor<[64], f32>, %v: !relax.tensor<[64], f32>",
        "relax.nn.batch_norm %x, %y, %z, %u, %v axis = 1",
        _statistics,
        None,
        lambda torch: lambda x, y, z, u, v: torch.nn.functional.batch_norm(x, u, v, y, z),
        "BatchNormalization",
    ),
)


def table(threads: int) -> None:
    """Prints the figures."""
    run("normalization", "Normalisation", CASES, threads)


def main() -> None:
    """On 1 and 2 threads."""
    in_processes("normalization")
