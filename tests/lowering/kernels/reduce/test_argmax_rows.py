"""Argmax along a row: the first of equal elements, zeros of either sign are equal, NaN before all."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.parsing import parse_module
from tir_dialect import te
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


@pytest.mark.sampled(2)
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
    """Each position of a row has the best number, which comes again after it; then NaN does."""
    rng = np.random.default_rng(n)
    x = np.clip(rng.standard_normal((min(n, 200), n)), -3, 3).astype(np.float32)
    places = np.linspace(0, n - 1, len(x)).astype(int)
    for number in (4.0 if name == "argmax" else -4.0, np.nan):
        for row, place in enumerate(places):
            x[row, [place, *range(place, n, 19)]] = number
        np.testing.assert_array_equal(np.from_dlpack(compiled(name)(x)), places)


@pytest.mark.parametrize("first", ["a[0] >= b[0]", "a[0] > b[0]"])
def test_of_equals_the_reducer_decides_which_counts(first: str) -> None:
    """A reducer that goes by the order of values sees them in that order: here the positions are data."""
    keep = eval(f"lambda a, b: {first}")  # the first of equals, or the last
    argmax = te.comm_reducer(
        lambda a, b: (te.select(keep(a, b), a[0], b[0]), te.select(keep(a, b), a[1], b[1])),
        lambda value, place: (te.min_value(value), -1),
    )
    m, n = te.var("m"), te.var("n")
    value, place = te.placeholder((m, n), "f32", "value"), te.placeholder((m, n), "i32", "place")
    r = te.reduce_axis(n, "r")
    best, where = te.compute((m,), lambda i: argmax((value[i, r], place[i, r]), r), name="best")
    func = te.create_prim_func([value, place, best, where], name="main")
    rng = np.random.default_rng(0)
    v, p = rng.integers(-4, 5, (9, 100)).astype("f4"), np.arange(900, dtype="i4").reshape(9, 100)
    found = np.empty(9, "f4"), np.empty(9, "i4")
    VirtualMachine(build(ModuleOp([func])))["main"](v, p, *found)
    last = 99 - v[:, ::-1].argmax(1)
    places = v.argmax(1) if ">=" in first else last
    np.testing.assert_array_equal(found[1], p[np.arange(9), places])
