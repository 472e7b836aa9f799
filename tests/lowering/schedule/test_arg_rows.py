"""Places of extremes along a row: the first of equals, zeros of either sign are equal, NaN before all."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from lowering import build
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine

SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38], np.float32)
LENGTHS = [1, 2, 7, 15, 16, 17, 33, 63, 64, 65, 100, 127, 128, 129, 500, 1000]


@cache
def compiled(name: str):
    signature = "[%m, %n](%x: !relax.tensor<[m, n], f32>) -> !relax.object"
    text = f"relax.func @main{signature} {{\n  %0 = relax.{name} %x axis = 1\n  relax.return %0\n}}"
    return VirtualMachine(build(parse_module(text)))["main"]


def check(name: str, x: np.ndarray) -> None:
    np.testing.assert_array_equal(np.from_dlpack(compiled(name)(x)), getattr(np, name)(x, 1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_special_numbers(name: str, n: int) -> None:
    """With NaN, without, of one number only, and of zeros."""
    rng = np.random.default_rng(n)
    for numbers in (SPECIAL, SPECIAL[2:], SPECIAL[2:3], SPECIAL[3:4], SPECIAL[4:6]):
        check(name, rng.choice(numbers, (40, n)))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("n", LENGTHS)
def test_the_best_or_a_nan_anywhere(name: str, n: int) -> None:
    """Each place of a row has the best number, which comes again behind it; then NaN does."""
    rng = np.random.default_rng(n)
    x = np.clip(rng.standard_normal((min(n, 200), n)), -3, 3).astype(np.float32)
    places = np.linspace(0, n - 1, len(x)).astype(int)
    for number in (4.0 if name == "argmax" else -4.0, np.nan):
        for row, place in enumerate(places):
            x[row, [place, *range(place, n, 19)]] = number
        np.testing.assert_array_equal(np.from_dlpack(compiled(name)(x)), places)
