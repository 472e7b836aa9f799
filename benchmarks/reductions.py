"""Reductions of rows, columns and everything, positions of extremes, running sums, pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.memory import Case, run
from benchmarks.timing import in_processes

X = "%x: !relax.tensor<[m, n], f32>"


def _arrays(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Sequence[np.ndarray]]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


_LARGE = _arrays((512, 1024))


def _sum(shape: tuple[int, ...], axes: tuple[int, ...]) -> Case:
    """A sum along some axes; the last two are symbols."""
    dims = ", ".join([*map(str, shape[:-2]), "m", "n"])
    return Case(
        f"sum along {', '.join(map(str, axes))}, {' x '.join(map(str, shape))}",
        f"%x: !relax.tensor<[{dims}], f32>",
        f"relax.sum %x axes = [{', '.join(map(str, axes))}]",
        _arrays(shape),
        lambda x: x.sum(axes),
        lambda torch: lambda x: x.sum(axes),
    )


def _place(shape: tuple[int, ...], axis: int) -> Case:
    """The first position of the greatest element along an axis."""
    dims = ", ".join([*map(str, shape[:-2]), "m", "n"])
    return Case(
        f"argmax along {axis}, {' x '.join(map(str, shape))}",
        f"%x: !relax.tensor<[{dims}], f32>",
        f"relax.argmax %x axis = {axis}",
        _arrays(shape),
        lambda x: x.argmax(axis),
        lambda torch: lambda x: x.argmax(axis),
        "ArgMax",
        {"axis": axis, "keepdims": 0},
    )


CASES = (
    *(
        _sum(*each)
        for each in (
            ((16, 128), (1,)),
            ((4096, 7), (1,)),
            ((7, 4096), (0,)),
            ((4096, 2048), (0,)),
            ((64, 100, 128), (1,)),
            ((64, 128, 100), (0, 2)),
            ((8, 64, 28, 28), (0, 2, 3)),
        )
    ),
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
        "max of rows, 4096 x 7",
        X,
        "relax.max %x axes = [1]",
        _arrays((4096, 7)),
        lambda x: x.max(1),
        lambda torch: lambda x: x.amax(1),
        "ReduceMax",
        {"axes": [1], "keepdims": 0},
    ),
    Case(
        "variance of rows, 512 x 1024",
        X,
        "relax.variance %x axes = [1]",
        _LARGE,
        lambda x: x.var(1),
        lambda torch: lambda x: x.var(1, correction=0),
    ),
    *(
        _place(*each)
        for each in (((512, 1024), 1), ((512, 1024), 0), ((4096, 7), 1), ((64, 100, 128), 1), ((2, 21, 64, 64), 1))
    ),
    *(
        Case(
            f"running sums along {axis}, {' x '.join(map(str, shape))}",
            f"%x: !relax.tensor<[{', '.join([*map(str, shape[:-2]), 'm', 'n'])}], f32>",
            f"relax.cumsum %x axis = {axis}",
            _arrays(shape),
            lambda x, axis=axis: x.cumsum(axis),
            lambda torch, axis=axis: lambda x: x.cumsum(axis),
        )
        for shape, axis in (((512, 1024), 1), ((512, 1024), 0), ((64, 100, 128), 1), ((4096, 7), 1))
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
        "max pooling 7 x 7, 1 x 512 x 7 x 7",
        "%x: !relax.tensor<[1, 512, m, n], f32>",
        "relax.nn.max_pool2d %x pool_size = [7, 7] strides = [1, 1] padding = [3, 3, 3, 3]",
        _arrays((1, 512, 7, 7)),
        None,
        lambda torch: lambda x: torch.nn.functional.max_pool2d(x, 7, 1, 3),
        "MaxPool",
        {"kernel_shape": [7, 7], "strides": [1, 1], "pads": [3, 3, 3, 3]},
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
