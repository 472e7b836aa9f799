"""Maps: arithmetic, activations, changes of layout, gathers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.memory import Case, run
from benchmarks.timing import in_processes

X = "%x: !relax.tensor<[m, n], f32>"


def _arrays(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Sequence[np.ndarray]]:
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


def _rows(rng: np.random.Generator) -> Sequence[np.ndarray]:
    return [rng.standard_normal((8192, 256), np.float32), rng.integers(0, 8192, 4096)]


CASES = (
    Case(
        "add, 512 x 1024",
        f"{X}, %y: !relax.tensor<[m, n], f32>",
        "relax.add %x, %y",
        _arrays((512, 1024), (512, 1024)),
        np.add,
        lambda torch: torch.add,
        "Add",
    ),
    Case(
        "add of a row, 777 x 513",
        f"{X}, %y: !relax.tensor<[n], f32>",
        "relax.add %x, %y",
        _arrays((777, 513), (513,)),
        np.add,
        lambda torch: torch.add,
        "Add",
    ),
    Case(
        "gelu, 512 x 1024",
        X,
        "relax.nn.gelu %x",
        _arrays((512, 1024)),
        None,
        lambda torch: torch.nn.functional.gelu,
        "Gelu",
        opset=20,
    ),
    Case("silu, 512 x 1024", X, "relax.nn.silu %x", _arrays((512, 1024)), None, lambda torch: torch.nn.functional.silu),
    Case("exp, 512 x 1024", X, "relax.exp %x", _arrays((512, 1024)), np.exp, lambda torch: torch.exp, "Exp"),
    Case("tanh, 512 x 1024", X, "relax.tanh %x", _arrays((512, 1024)), np.tanh, lambda torch: torch.tanh, "Tanh"),
    Case(
        "sigmoid, 512 x 1024",
        X,
        "relax.sigmoid %x",
        _arrays((512, 1024)),
        None,
        lambda torch: torch.sigmoid,
        "Sigmoid",
    ),
    Case("sin, 512 x 1024", X, "relax.sin %x", _arrays((512, 1024)), np.sin, lambda torch: torch.sin, "Sin"),
    Case(
        "transpose, 1024 x 768",
        X,
        "relax.permute_dims %x",
        _arrays((1024, 768)),
        lambda x: np.ascontiguousarray(x.T),
        lambda torch: lambda x: x.t().contiguous(),
        "Transpose",
    ),
    Case(
        "heads to the front, 128 x 12 x 64",
        "%x: !relax.tensor<[m, 12, n], f32>",
        "relax.permute_dims %x axes = [1, 0, 2]",
        _arrays((128, 12, 64)),
        lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)),
        lambda torch: lambda x: x.permute(1, 0, 2).contiguous(),
        "Transpose",
        {"perm": [1, 0, 2]},
    ),
    Case(
        "4096 of 8192 rows of 256",
        f"{X}, %y: !relax.tensor<[4096], i64>",
        "relax.take %x, %y axis = 0",
        _rows,
        lambda x, y: x[y],
        lambda torch: lambda x, y: x[y],
        "Gather",
    ),
)


def table(threads: int) -> None:
    """Prints the figures."""
    run("elementwise", "Maps", CASES, threads)


def main() -> None:
    """On 1 and 2 threads."""
    in_processes("elementwise")
