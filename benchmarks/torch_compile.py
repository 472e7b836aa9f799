"""`torch.compile` with our backend, with PyTorch's own (inductor), and without: dynamic shapes, one thread and two.

Each system has a process of its own. Inductor needs a C++ compiler; the time to compile is not counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import Call, Contestant
from benchmarks.timing import Row, in_processes, measure_in_turns, print_table

ROUNDS = 7
SECONDS = 0.1


def _mlp(torch: Any) -> tuple[Any, Any]:
    layers = [torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512), torch.nn.GELU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(512, 10)), torch.randn(33, 512)


def _small(torch: Any) -> tuple[Any, Any]:
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)), torch.randn(3, 16)


def _transformer(torch: Any) -> tuple[Any, Any]:
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, activation="gelu")
    torch.backends.mha.set_fastpath_enabled(False)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(2, 77, 256)


def _convolutions(torch: Any) -> tuple[Any, Any]:
    nn = torch.nn
    block = [nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(nn.Conv2d(3, 32, 3, stride=2), *block, *block, nn.AdaptiveAvgPool2d(1)), torch.randn(
        2, 3, 112, 112
    )


def _elementwise(torch: Any) -> tuple[Any, Any]:
    class Normalize(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = torch.nn.functional.silu(x) * torch.tanh(x) + x
            return (y - y.mean(-1, keepdim=True)) * torch.rsqrt(y.var(-1, keepdim=True) + 1e-5)

    return Normalize(), torch.randn(64, 1000)


CASES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "3 x 16, two small layers": _small,
    "33 x 512, three layers": _mlp,
    "two transformer layers, 2 x 77 x 256": _transformer,
    "three convolutions, 2 x 3 x 112 x 112": _convolutions,
    "elementwise and normalisation, 64 x 1000": _elementwise,
}


def system(backend: str | None, threads: int) -> Callable[[int], Call]:
    """Prepares a case for a backend."""

    def prepare(case: int) -> Call:
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        model, x = list(CASES.values())[case](torch)
        model = model.eval()
        called = model if backend is None else torch.compile(model, backend=backend, dynamic=True)

        def call() -> Any:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return called(x)

        return call

    return prepare


def table(threads: int) -> None:
    """The table for a number of threads."""
    names = {"ours": "xdsl_relax", "eager": None, "inductor": "inductor"}
    systems = {name: Contestant(system(backend, threads)) for name, backend in names.items()}
    rows: list[Row] = []
    for number, case in enumerate(CASES):
        results = {name: each.prepare(number) for name, each in systems.items()}
        for result in results.values():
            np.testing.assert_allclose(result, results["eager"], rtol=1e-3, atol=1e-3)
        timers = {name: each.time for name, each in systems.items()}
        times = measure_in_turns(timers, ROUNDS, min, SECONDS)
        rows.append(Row(case, times.pop("ours"), times))
    print_table(f"torch.compile, {threads} thread{'s' if threads > 1 else ''}", rows)
    for each in systems.values():
        each.close()


def main() -> None:
    """Prints the tables of one and of two threads."""
    in_processes("torch_compile")


if __name__ == "__main__":
    main()
