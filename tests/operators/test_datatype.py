"""Conversions between all dtypes against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, random

PAIRS = [(source, target) for source in DTYPES for target in DTYPES]
PROGRAMS = Programs(
    {
        f"{source}_{target}": (f"%x: !relax.tensor<[n], {source}>", f"relax.astype %x dtype = {target}")
        for source, target in PAIRS
    }
)


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_conversion(source: str, target: str):
    """Values that both dtypes hold, but for fractions."""
    unsigned = target.startswith("ui")
    x = random(source, 20, low=0 if unsigned else -100, high=100)
    PROGRAMS.check(f"{source}_{target}", [x], x.astype(DTYPES[target]))
    PROGRAMS.check(f"{source}_{target}", [x[:0]], x[:0].astype(DTYPES[target]))


@pytest.mark.parametrize(("source", "target"), [("i64", "i8"), ("i32", "ui16"), ("ui64", "i32"), ("i16", "ui64")])
def test_integers_lose_bits(source: str, target: str):
    bounds = np.iinfo(DTYPES[source])
    x = np.array([bounds.min, bounds.max, 300, 77, bounds.max // 3], DTYPES[source])
    PROGRAMS.check(f"{source}_{target}", [x], x.astype(DTYPES[target]))


@pytest.mark.parametrize("target", ["f16", "bf16", "f64", "i1"])
def test_floats_that_are_no_numbers(target: str):
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e30, 65519, 65520, 1e-8], np.float32)
    with np.errstate(all="ignore"):
        PROGRAMS.check(f"f32_{target}", [x], x.astype(DTYPES[target]))
