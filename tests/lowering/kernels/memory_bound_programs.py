"""Programs of one operator, or a few, whose kernels are memory-bound, with their results by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

MAXIMUM_POOLING = "max pooling"


@dataclass(frozen=True)
class Program:
    """A program over sizes `m` and `n`."""

    signature: str
    body: str
    numpy: Callable[..., np.ndarray]
    shapes: tuple[str, ...] = ("mn",)
    """Of the arguments: a letter or digit for each dimension, `c` is 4, `M` 4 * m; with `i` in front, of integers."""
    least: int = 0
    """The least size for which the result is defined."""

    @property
    def text(self) -> str:
        """The module."""
        return (
            f"relax.func @main[%m, %n]({self.signature}) -> !relax.object {{\n  %0 = {self.body}\n  relax.return %0\n}}"
        )


def _moments(x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    wide = x.astype(np.float64)
    return wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)


def _normalised(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    mean, variance = _moments(x, axes)
    return (x - mean) / np.sqrt(variance + 1e-5)


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _windows(x: np.ndarray, size: int, stride: int, padding: int, value: float, dilation: int = 1) -> list[np.ndarray]:
    """The elements of all windows over the last two axes, one array for each position in the window."""
    padded = np.pad(x, ((0, 0), (0, 0), *(((padding, padding),) * 2)), constant_values=value)
    rows, columns = ((each - dilation * (size - 1) - 1) // stride + 1 for each in padded.shape[2:])
    steps = [dilation * k for k in range(size)]
    return [padded[:, :, i:, j:][:, :, ::stride, ::stride][:, :, :rows, :columns] for i in steps for j in steps]


def _mean_of_windows(x: np.ndarray) -> np.ndarray:
    counts = _windows(np.ones_like(x), 3, 1, 1, 0)
    return np.sum(_windows(x.astype(np.float64), 3, 1, 1, 0), 0) / np.sum(counts, 0)


X = "%x: !relax.tensor<[m, n], f32>"
X3 = "%x: !relax.tensor<[m, 4, n], f32>"
X4 = "%x: !relax.tensor<[2, 4, m, n], f32>"
ROW = "%y: !relax.tensor<[n], f32>"

PROGRAMS = {
    "broadcast": Program(f"{X}, {ROW}", "relax.add %x, %y", np.add, ("mn", "n")),
    "columns": Program(f"{X}, %y: !relax.tensor<[m, 1], f32>", "relax.multiply %x, %y", np.multiply, ("mn", "m1")),
    "silu": Program(X, "relax.nn.silu %x", lambda x: x / (1 + np.exp(-x.astype(np.float64)))),
    "bytes": Program(
        "%x: !relax.tensor<[m, n], i8>, %y: !relax.tensor<[m, n], i8>",
        "relax.add %x, %y",
        lambda x, y: x + y,
        ("imn", "imn"),
    ),
    "sum of rows": Program(X, "relax.sum %x axes = [1]", lambda x: x.sum(1, dtype=np.float64)),
    "sum of columns": Program(X, "relax.sum %x axes = [0]", lambda x: x.sum(0, dtype=np.float64)),
    "sum in the middle": Program(X3, "relax.sum %x axes = [1]", lambda x: x.sum(1, dtype=np.float64), ("mcn",)),
    "sum": Program(X, "relax.sum %x", lambda x: x.sum(dtype=np.float64)),
    "max of rows": Program(X, "relax.max %x axes = [1]", lambda x: x.max(1), least=1),
    "min of columns": Program(X, "relax.min %x axes = [0]", lambda x: x.min(0), least=1),
    "variance": Program(X, "relax.variance %x axes = [1]", lambda x: x.astype(np.float64).var(1), least=1),
    "argmax": Program(X, "relax.argmax %x axis = 1", lambda x: x.argmax(1), least=1),
    "argmin": Program(X, "relax.argmin %x axis = 0", lambda x: x.argmin(0), least=1),
    "running sums": Program(X, "relax.cumsum %x axis = 1", lambda x: x.cumsum(1, dtype=np.float64)),
    "running products": Program(
        "%x: !relax.tensor<[m, 4, n], f32>", "relax.cumprod %x axis = -1", lambda x: x.cumprod(-1), ("mcn",)
    ),
    "softmax": Program(X, "relax.nn.softmax %x", _softmax, least=1),
    "softmax of columns": Program(X3, "relax.nn.softmax %x axis = 1", lambda x: _softmax(x, 1), ("mcn",), least=1),
    "log softmax": Program(X, "relax.nn.log_softmax %x", lambda x: np.log(_softmax(x)), least=1),
    "layer norm": Program(
        f"{X}, {ROW}, %z: !relax.tensor<[n], f32>",
        "relax.nn.layer_norm %x, %y, %z axes = [1]",
        lambda x, y, z: _normalised(x, (1,)) * y + z,
        ("mn", "n", "n"),
        least=1,
    ),
    "rms norm": Program(
        f"{X}, {ROW}",
        "relax.nn.rms_norm %x, %y axes = [1]",
        lambda x, y: x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5) * y,
        ("mn", "n"),
        least=1,
    ),
    "instance norm": Program(
        f"{X4}, %y: !relax.tensor<[4], f32>, %z: !relax.tensor<[4], f32>",
        "relax.nn.instance_norm %x, %y, %z channel_axis = 1 axes = [2, 3]",
        lambda x, y, z: _normalised(x, (2, 3)) * y[:, None, None] + z[:, None, None],
        ("2cmn", "c", "c"),
        least=1,
    ),
    "group norm": Program(
        "%x: !relax.tensor<[2, 8, m, n], f32>, %y: !relax.tensor<[8], f32>, %z: !relax.tensor<[8], f32>",
        "relax.nn.group_norm %x, %y, %z num_groups = 4 channel_axis = 1 axes = [2, 3]",
        lambda x, y, z: (
            _normalised(x.reshape(2, 4, 2, *x.shape[2:]), (2, 3, 4)).reshape(x.shape) * y[:, None, None]
            + z[:, None, None]
        ),
        ("28mn", "8", "8"),
        least=1,
    ),
    "group norm of any channels": Program(
        "%x: !relax.tensor<[2, 4 * m, n], f32>, %y: !relax.tensor<[4 * m], f32>, %z: !relax.tensor<[4 * m], f32>",
        "relax.nn.group_norm %x, %y, %z num_groups = 4 channel_axis = 1 axes = [2]",
        lambda x, y, z: _normalised(x.reshape(2, 4, -1, x.shape[2]), (2, 3)).reshape(x.shape) * y[:, None] + z[:, None],
        ("2Mn", "M", "M"),
        least=1,
    ),
    "transposed": Program(X, "relax.permute_dims %x", lambda x: x.T),
    "inner transposed": Program(X3, "relax.permute_dims %x axes = [0, 2, 1]", lambda x: x.transpose(0, 2, 1), ("mcn",)),
    "outer transposed": Program(X3, "relax.permute_dims %x axes = [1, 0, 2]", lambda x: x.transpose(1, 0, 2), ("mcn",)),
    "bytes transposed": Program("%x: !relax.tensor<[m, n], i8>", "relax.permute_dims %x", lambda x: x.T, ("imn",)),
    "two between each other": Program(
        "%x: !relax.tensor<[m, 2, n], f32>",
        "relax.permute_dims %x axes = [0, 2, 1]",
        lambda x: x.transpose(0, 2, 1),
        ("m2n",),
    ),
    "three between each other": Program(
        "%x: !relax.tensor<[3, n, m], f32>",
        "relax.permute_dims %x axes = [1, 2, 0]",
        lambda x: x.transpose(1, 2, 0),
        ("3nm",),
    ),
    "bytes between each other": Program(
        "%x: !relax.tensor<[m, 3, n], i8>",
        "relax.permute_dims %x axes = [0, 2, 1]",
        lambda x: x.transpose(0, 2, 1),
        ("im3n",),
    ),
    "concatenated": Program(
        f"{X}, %y: !relax.tensor<[4, n], f32>",
        "relax.concat %x, %y axis = 0",
        lambda x, y: np.concatenate([x, y]),
        ("mn", "cn"),
    ),
    "tiled": Program(X, "relax.tile %x repeats = [2, 3]", lambda x: np.tile(x, (2, 3))),
    "taken": Program(
        f"{X}, %y: !relax.tensor<[7], i64>",
        "relax.take %x, %y axis = 0",
        lambda x, y: x[y],
        ("mn", "i7"),
        least=1,
    ),
    MAXIMUM_POOLING: Program(
        X4,
        "relax.nn.max_pool2d %x pool_size = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1]",
        lambda x: np.max(_windows(x, 3, 2, 1, -np.inf), 0),
        ("2cmn",),
        least=1,
    ),
    "dilated pooling": Program(
        X4,
        "relax.nn.max_pool2d %x pool_size = [2, 2] strides = [3, 3] dilation = [2, 2] padding = [1, 1, 1, 1]",
        lambda x: np.max(_windows(x, 2, 3, 1, -np.inf, 2), 0),
        ("2cmn",),
        least=1,
    ),
    "pooling of large windows": Program(
        X4,
        "relax.nn.max_pool2d %x pool_size = [5, 5] strides = [2, 2] padding = [2, 2, 2, 2]",
        lambda x: np.max(_windows(x, 5, 2, 2, -np.inf), 0),
        ("2cmn",),
        least=1,
    ),
    "mean pooling of large windows": Program(
        X4,
        "relax.nn.avg_pool2d %x pool_size = [4, 4] strides = [2, 2] padding = [2, 2, 2, 2] count_include_pad",
        lambda x: np.mean(_windows(x.astype(np.float64), 4, 2, 2, 0), 0),
        ("2cmn",),
        least=1,
    ),
    "mean pooling": Program(
        X4,
        "relax.nn.avg_pool2d %x pool_size = [3, 3] strides = [1, 1] padding = [1, 1, 1, 1]",
        _mean_of_windows,
        ("2cmn",),
        least=1,
    ),
    "mean pooling without border": Program(
        X4,
        "relax.nn.avg_pool2d %x pool_size = [2, 2] strides = [2, 2]",
        lambda x: np.mean(_windows(x.astype(np.float64), 2, 2, 0, 0), 0),
        ("2cmn",),
        least=2,
    ),
    "windows that do not overlap": Program(
        "%x: !relax.tensor<[m, n, 8, 8], f32>",
        "relax.nn.max_pool2d %x pool_size = [2, 2] strides = [2, 2]",
        lambda x: np.max(_windows(x, 2, 2, 0, -np.inf), 0),
        ("mn88",),
    ),
    "pooling of channels that lie together": Program(
        "%x: !relax.tensor<[2, m, 5, n], f32>",
        'relax.nn.max_pool2d %x pool_size = [3, 3] strides = [1, 1] padding = [1, 1, 1, 1] layout = "NHWC"',
        lambda x: np.max(_windows(x.transpose(0, 3, 1, 2), 3, 1, 1, -np.inf), 0).transpose(0, 2, 3, 1),
        ("2m5n",),
        least=1,
    ),
}


def arguments(name: str, m: int, n: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Arguments of a program, and what is expected of it."""
    rng = np.random.default_rng(m + 1000 * n)
    sizes = {"m": m, "n": n, "c": 4, "M": 4 * m}
    made: list[np.ndarray] = []
    for letters in PROGRAMS[name].shapes:
        shape = [sizes.get(letter) or int(letter if letter.isdigit() else 0) for letter in letters.removeprefix("i")]
        if not letters.startswith("i"):
            made.append(rng.standard_normal(shape).astype(np.float32))
        elif name == "taken":
            made.append(rng.integers(0, m, shape))
        else:
            made.append(rng.integers(-100, 100, shape).astype(np.int8))
    with np.errstate(all="ignore"):
        expected = np.asarray(PROGRAMS[name].numpy(*made))
    wanted = made[0].dtype if expected.dtype != np.int64 else np.int64
    return made, expected.astype(wanted)
