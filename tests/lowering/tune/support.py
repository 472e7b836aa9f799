"""Programs whose kernels are tuned, and races whose end is known."""

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

from lowering.compiler import kernels as kernels
from lowering.parsing import parse_module
from lowering.tune.search import Bench, Race
from lowering.tune.tuner import kernels_of

PROGRAM = """
relax.func @main[%m, %k, %n](%a: !relax.tensor<[m, k], f32>, %b: !relax.tensor<[k, n], f32>)
    -> !relax.tensor<[m, n], f32> {
  %0 = relax.matmul %a, %b
  %1 = relax.matmul %0, %b
  %2 = relax.exp %1
  relax.return %2
}
"""


SQUARE = PROGRAM.replace("[m, k]", "[m, m]").replace("[k, n]", "[m, m]").replace("[m, n]", "[m, m]").replace(
    "[%m, %k, %n]", "[%m]"
)  # fmt: skip


ONE = """
relax.func @main[%m](%a: !relax.tensor<[m, m], f32>, %b: !relax.tensor<[m, m], f32>) -> !relax.tensor<[m, m], f32> {
  %0 = relax.matmul %a, %b
  relax.return %0
}
"""


MAP = """
relax.func @main[%m](%a: !relax.tensor<[m, m], f32>, %b: !relax.tensor<[m, m], f32>) -> !relax.tensor<[m, m], f32> {
  %0 = relax.exp %a
  %1 = relax.add %0, %b
  relax.return %1
}
"""


def arrays(m: int) -> list[np.ndarray]:
    numbers = np.random.default_rng(m)
    return [numbers.standard_normal((m, m), dtype=np.float32) / 4 for _ in range(2)]


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(a @ b @ b)


def races(monkeypatch: pytest.MonkeyPatch, ratio: Callable[[int], float]) -> None:
    """Makes the second of a race take so much of the time of the first, by the number of the race."""
    number = count()
    monkeypatch.setattr(
        Bench,
        "race",
        lambda self, first, second, rounds: Race([1], [[(1.0, ratio(next(number)))] * rounds]),
    )


def groups(text: str):
    return {group[0].sym_name.data: group for group in kernels.kernel_groups(kernels_of(parse_module(text)))}
