"""Reductions of rows, columns and everything, places of extremes, running sums, pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.memory import Case, run
from benchmarks.timing import in_processes

X = "%x: !relax.tensor<[m, n], f32>"


def _arrays(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Sequence[np.ndarray]]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


_LARGE = _arrays((512, 1024))

CASES = (
    Case(
        "sum of rows, 512 x 1024",
        X,
        "relax.sum %x axes = [1]",
        _LARGE,
        lambda x: x.sum(1),
        lambda torch: lambda x: x.sum(1),
    ),
    Case(
        "sum of columns, 512 x 1024",
        X,
        "relax.sum %x axes = [0]",
        _LARGE,
        lambda x: x.sum(0),
        lambda torch: lambda x: x.sum(0),
    ),
    Case("sum, 512 x 1024", X, "relax.sum %x", _LARGE, np.sum, lambda torch: torch.sum),
    Case(
        "sum, 4096 x 2048",
        X,
        "relax.sum %x",
        _arrays((4096, 2048)),
        np.sum,
        lambda torch: torch.sum,
    ),
    Case(
        "mean of rows, 777 x 513",
        X,
        "relax.mean %x axes = [1]",
        _arrays((777, 513)),
        lambda x: x.mean(1),
        lambda torch: lambda x: x.mean(1),
        "ReduceMean",
        {"axes": [1], "keepdims": 0},
    ),
    Case(
        "max of rows, 512 x 1024",
        X,
        "relax.max %x axes = [1]",
        _LARGE,
        lambda x: x.max(1),
        lambda torch: lambda x: x.amax(1),
        "ReduceMax",
        {"axes": [1], "keepdims": 0},
    ),
    Case(
        "argmax of rows, 512 x 1024",
        X,
        "relax.argmax %x axis = 1",
        _LARGE,
        lambda x: x.argmax(1),
        lambda torch: lambda x: x.argmax(1),
        "ArgMax",
        {"axis": 1, "keepdims": 0},
    ),
    Case(
        "running sums of rows, 512 x 1024",
        X,
        "relax.cumsum %x axis = 1",
        _LARGE,
        lambda x: x.cumsum(1),
        lambda torch: lambda x: x.cumsum(1),
    ),
    Case(
        "max pooling 3 x 3 by 2, 1 x 64 x 112 x 112",
        "%x: !relax.tensor<[1, 64, m, n], f32>",
        "relax.nn.max_pool2d %x pool_size = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1]",
        _arrays((1, 64, 112, 112)),
        None,
        lambda torch: lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1),
        "MaxPool",
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ),
    Case(
        "mean pooling 3 x 3, 1 x 64 x 56 x 56",
        "%x: !relax.tensor<[1, 64, m, n], f32>",
        "relax.nn.avg_pool2d %x pool_size = [3, 3] strides = [1, 1] padding = [1, 1, 1, 1]",
        _arrays((1, 64, 56, 56)),
        None,
        lambda torch: lambda x: torch.nn.functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
        "AveragePool",
        {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]},
    ),
    Case(
        "mean of planes, 1 x 2048 x 7 x 7",
        "%x: !relax.tensor<[1, 2048, m, n], f32>",
        "relax.mean %x axes = [2, 3]",
        _arrays((1, 2048, 7, 7)),
        lambda x: x.mean((2, 3)),
        lambda torch: lambda x: x.mean((2, 3)),
        "ReduceMean",
        {"axes": [2, 3], "keepdims": 0},
    ),
)


def table(threads: int) -> None:
    """Prints the figures."""
    run("reductions", "Reductions", CASES, threads)


def main() -> None:
    """On 1 and 2 threads."""
    in_processes("reductions")
