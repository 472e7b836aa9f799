"""Quantisation without a division gives the same integers, for every float that is near a limit between two of them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lowering.relax.rewrites.simplify_quantization import fused, reciprocal
from tests.support.programs import check_pass, run_in_turn
from tests.support.sweeps import examples

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-38, 3e38, -3e38, 1e-45], np.float32)


def _program(scale: float, point: int, dtype: str, low: int, high: int) -> str:
    return f"""
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], {dtype}> {{
      %scale = relax.constant dense<{scale:.9e}> : tensor<f32>
      %point = relax.constant dense<{float(point)}> : tensor<f32>
      %low = relax.constant dense<{float(low)}> : tensor<f32>
      %high = relax.constant dense<{float(high)}> : tensor<f32>
      %0 = relax.divide %x, %scale
      %1 = relax.round %0
      %2 = relax.add %1, %point
      %3 = relax.maximum %2, %low
      %4 = relax.minimum %3, %high
      %5 = relax.astype %4 dtype = {dtype}
      relax.return %5
    }}
    """


def _near_limits(scale: float, least: int, greatest: int) -> np.ndarray:
    """Floats around each quotient half-way between two integers, a bit beyond the range too."""
    x = ((np.arange(least - 3, greatest + 3) + 0.5) * np.float64(np.float32(scale))).astype(np.float32)
    bits = x.view(np.int32)[:, None] + np.arange(-8, 9, dtype=np.int32)
    return bits.astype(np.int32).view(np.float32).ravel()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("scale", "point", "dtype", "low", "high"),
    [
        (0.0235294122, 0, "ui8", 0, 255),
        (0.0363971666, 125, "ui8", 0, 255),
        (3.7, -7, "i8", -128, 127),
        (0.0575439483, 142, "ui8", 10, 200),
        (0.5, 3, "ui8", 0, 255),
        (1e-30, 3, "ui8", 0, 255),
    ],
)
def test_values(scale: float, point: int, dtype: str, low: int, high: int):
    x = np.concatenate([SPECIAL, _near_limits(scale, low - point, high - point)])
    text = _program(scale, point, dtype, low, high)
    check_pass(text, 'simplify-quantization{target="x86-64-v3"}', [[x], [x[:0]], [x[3:4]]])
    run_in_turn(text, "main", [x])


@given(st.floats(2.0**-20, 2.0**20, width=32), st.integers(-128, 255), st.integers(0, 2**32 - 1))
@examples(100)
def test_multiples_are_rounded_like_quotients(scale: float, point: int, seed: int):
    least, greatest = -point, 255 - point
    parts = reciprocal(scale, least, greatest)
    if parts is None:
        return
    high, low = (np.float32(part) for part in parts)
    spread = np.random.default_rng(seed).uniform(least - 2, greatest + 2, 2000) * scale
    x = np.concatenate([_near_limits(scale, least, greatest), spread.astype(np.float32)])
    quotients, multiples = np.rint(x / np.float32(scale)), np.rint(fused(x, high, x * low))
    np.testing.assert_array_equal(np.clip(quotients, least, greatest), np.clip(multiples, least, greatest))


def test_most_scales_have_a_reciprocal():
    scales = np.random.default_rng(0).uniform(1e-4, 1, 200).astype(np.float32)
    assert sum(reciprocal(float(scale), -128, 127) is None for scale in scales) <= 1
    assert reciprocal(0.25, 0, 255) is None  # exact without
    assert reciprocal(1e-30, 0, 255) is None
    assert reciprocal(float("nan"), 0, 255) is None


ABOVE_HALFWAY = (1 + 2.0**-12, 2.0**-24 * (1 - 2.0**-12 + 2.0**-24), 1.0)
BELOW_HALFWAY = (1 + 2.0**-23, 2.0**-24 * (1 - 2.0**-23), 1 + 2.0**-23)
"""Sums that are halfway between two numbers once they are rounded to `f64`."""


@given(st.tuples(*[st.floats(-1e6, 1e6, width=32)] * 3))
@example(ABOVE_HALFWAY)
@example(BELOW_HALFWAY)
@example((-ABOVE_HALFWAY[0], ABOVE_HALFWAY[1], -ABOVE_HALFWAY[2]))
@example((-BELOW_HALFWAY[0], BELOW_HALFWAY[1], -BELOW_HALFWAY[2]))
@examples(200)
def test_fused(operands: tuple[float, float, float]):
    from fractions import Fraction

    x, y, z = operands
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    near = fused(np.array([x], np.float32), np.float32(y), np.array([z], np.float32))[0]
    below, above = (np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf))
    distance = abs(Fraction(float(near)) - exact)
    assert all(distance <= abs(Fraction(float(other)) - exact) for other in (below, above) if np.isfinite(other))
