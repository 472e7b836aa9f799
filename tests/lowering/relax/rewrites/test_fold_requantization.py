"""Conversions between integers of two scales are one multiply-add: exact where the numbers are, else near."""

import numpy as np
import pytest

from tests.support.programs import check_pass, run_in_turn

RNG = np.random.default_rng(0)
W = RNG.integers(-127, 128, (8, 3))


def _program(scales: str, bias: str, scale: float) -> str:
    return f"""
    relax.func @main[%n](%x: !relax.tensor<[n, 8], ui8>, %y: !relax.tensor<[n, 3], i8>) -> !relax.tensor<[n, 3], ui8> {{
      %w = relax.constant dense<{W.tolist()}> : tensor<8x3xi8>
      %points = relax.constant dense<[200, -80, 3]> : tensor<3xi32>
      %scales = relax.constant dense<{scales}> : tensor<3xf32>
      %bias = relax.constant dense<{bias}> : tensor<3xf32>
      %a = relax.constant dense<16.0> : tensor<f32>
      %scale = relax.constant dense<{scale}> : tensor<f32>
      %0 = relax.matmul %x, %w out_dtype = i32
      %1 = relax.subtract %0, %points
      %2 = relax.astype %1 dtype = f32
      %3 = relax.multiply %2, %scales
      %4 = relax.add %3, %bias
      %5 = relax.astype %y dtype = f32
      %6 = relax.multiply %a, %5
      %7 = relax.add %6, %4
      %8 = relax.divide %7, %scale
      %9 = relax.round %8
      %10 = relax.astype %9 dtype = ui8
      relax.return %10
    }}
    """


def _inputs(rows: int) -> list[np.ndarray]:
    return [RNG.integers(0, 256, (rows, 8), np.uint8), RNG.integers(-128, 128, (rows, 3), np.int8)]


def test_exact_numbers():
    text = _program("[0.5, 0.25, 1.0]", "[-20.0, 3.5, 0.0]", 128.0)
    check_pass(text, "fold-requantization", [_inputs(0), _inputs(1), _inputs(37)])
    run_in_turn(text, "main", _inputs(5))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", [93.7, 171.3])
def test_rounded_numbers(scale: float):
    """Sums in `f64` are rounded to the same integers, but where they are near the middle of two."""
    scales, bias = np.float32([0.513, 0.277, 0.9]), np.float32([-20.3, 3.7, 99.1])
    text = _program(str(scales.tolist()), str(bias.tolist()), scale)
    x, y = _inputs(500)
    found = run_in_turn(text, "main", [x, y])
    sums = (x.astype(np.int64) @ W - [200, -80, 3]) * scales.astype(np.float64) + bias + 16.0 * y
    exact = sums / np.float64(np.float32(scale))
    assert np.all(np.abs(np.clip(exact, 0, 255) - found) <= 0.5 + 2.0**-14)
