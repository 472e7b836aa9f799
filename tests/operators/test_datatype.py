"""Conversions between all dtypes against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, random
from tests.support.sweeps import in_turn, turns

LOSSES = [("i64", "i8"), ("i32", "ui16"), ("ui64", "i32"), ("i16", "ui64")]
ROUNDED = ("f16", "bf16", "f64", "i1")
NAMED = {f"{source}_{target}" for source, target in (*LOSSES, *(("f32", target) for target in ROUNDED))}


def _conversions(often: bool) -> dict[str, tuple[str, str]]:
    """The programs that a quick run calls, or the others: a module is compiled as a whole."""
    return {
        f"{source}_{target}": (f"%x: !relax.tensor<[n], {source}>", f"relax.astype %x dtype = {target}")
        for source, target, quick in turns(DTYPES, [*DTYPES], every=2)
        if (quick or f"{source}_{target}" in NAMED) is often
    }


PROGRAMS = Programs(_conversions(often=True))
SELDOM = Programs(_conversions(often=False))


@pytest.mark.parametrize(("source", "target"), in_turn(DTYPES, [*DTYPES], every=2))
def test_conversion(source: str, target: str):
    """Values that both dtypes hold, but for fractions."""
    unsigned = target.startswith("ui")
    x = random(source, 20, low=0 if unsigned else -100, high=100)
    name = f"{source}_{target}"
    programs = PROGRAMS if name in PROGRAMS.names else SELDOM
    programs.check(name, [x], x.astype(DTYPES[target]))
    programs.check(name, [x[:0]], x[:0].astype(DTYPES[target]))


@pytest.mark.parametrize(("source", "target"), LOSSES)
def test_integers_lose_bits(source: str, target: str):
    bounds = np.iinfo(DTYPES[source])
    x = np.array([bounds.min, bounds.max, 300, 77, bounds.max // 3], DTYPES[source])
    PROGRAMS.check(f"{source}_{target}", [x], x.astype(DTYPES[target]))


@pytest.mark.parametrize("target", ROUNDED)
def test_floats_that_are_no_numbers(target: str):
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e30, 65519, 65520, 1e-8], np.float32)
    with np.errstate(all="ignore"):
        PROGRAMS.check(f"f32_{target}", [x], x.astype(DTYPES[target]))


BYTES = {
    ("f32", "i32"): "[n]",
    ("f32", "ui8"): "[2, 2 * n]",
    ("i8", "f64"): "[floordiv(n, 8)]",
    ("i64", "i1"): "[8 * n]",
    ("i1", "bf16"): "[floordiv(n, 2)]",
    ("f16", "f16"): "[n - 1]",
}
VIEWS = Programs(
    {
        f"{source}_{target}": (
            f"%x: !relax.tensor<[n], {source}>",
            f"%s = relax.shape {shape}; relax.reinterpret %x, %s dtype = {target}",
        )
        for (source, target), shape in BYTES.items()
    }
    | {
        "rest": (
            "%x: !relax.tensor<[n, 3], i32>, %k: !relax.prim<i64, m>",
            "%s = relax.shape [m]; relax.reinterpret %x, %s dtype = i16 offset = 12 * n - 2 * m",
        ),
        "bytes_of": (
            "%x: !relax.tensor<*, _>",
            "%s = relax.shape [4]; relax.reinterpret %x, %s dtype = ui8 offset = 4",
        ),
    }
)


@pytest.mark.parametrize("pair", BYTES)
def test_bytes(pair: tuple[str, str]):
    source, target = pair
    x = np.random.default_rng(2).integers(0, 2 if source == "i1" else 64, 8 * DTYPES[source]().itemsize, np.uint8)
    x = x.view(DTYPES[source])
    seen = x[:-1] if source == target else x.view(np.uint8) != 0 if target == "i1" else x.view(DTYPES[target])
    VIEWS.check("_".join(pair), [x], seen.reshape(2, -1) if target == "ui8" else seen)


def test_bytes_of_the_end():
    x = random("i32", 4, 3, low=-100000, high=100000)
    for count in (0, 1, 7):
        VIEWS.check("rest", [x, count], x.view(np.int16).ravel()[24 - count :])
    VIEWS.check("bytes_of", [x], x.ravel().view(np.uint8)[4:8])
    VIEWS.check("bytes_of", [x.astype(np.float64)], x.astype(np.float64).ravel().view(np.uint8)[4:8])
