"""Elementary functions of f32: what they are, numbers that are hard for them, and how far off they may be."""

import math
from collections.abc import Callable

import numpy as np

from lowering.tir_to_llvm.math.tables import ERF_STEP, TANH_STEP

COUNT = 16384
REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": np.vectorize(math.erf),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
LOOP = """
tir.prim_func @NAME_KIND(%X: !tir.buffer<[16384], f32>, %Y: !tir.buffer<[16384], f32>) {
  %n = arith.constant 16384 : index
  tir.for KIND (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = math.NAME %x : f32
    tir.store %y, %Y[%i]
  }
}"""
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 2.0**-126, 2.0**-149, -(2.0**-149), 3.4e38, -3.4e38]
EDGES += [88.72, 88.73, -87.3, -103.9, -104.1, 127.99, 128.0, -149.0, -150.5, 0.6, -0.6, 0.92, -0.92, 4.0, 10.0]
EDGES += [52516.434, 153072.53, 48039.664]  # nearer to a multiple of a right angle than most of their size
ENDS = np.arange(1, 64, 2)[:, None] * (ERF_STEP / 2, TANH_STEP / 2)
"""Where one polynomial ends and the next begins."""


def inputs(seed: int) -> np.ndarray:
    """`COUNT` numbers: of every size, special ones, and those where one formula ends and the next begins."""
    rng = np.random.default_rng(seed)
    parts = [
        np.array(EDGES),
        *(np.nextafter(ENDS.ravel(), to, dtype=np.float32) for to in (-9, 9)),
        *(np.copysign(ENDS.ravel(), sign) for sign in (-1, 1)),
        rng.uniform(-110, 110, COUNT // 4),
        rng.uniform(-5, 5, COUNT // 4),
        rng.uniform(-(2.0**19), 2.0**19, COUNT // 16),
        1 + rng.uniform(-1, 1, COUNT // 4) * 10.0 ** rng.uniform(-7, -1, COUNT // 4),
    ]
    with np.errstate(all="ignore"):
        values = np.concatenate(parts).astype(np.float32)
        anything = rng.integers(0, 1 << 32, COUNT - len(values), dtype=np.uint32).view(np.float32)
    return np.concatenate([values, anything])


def check(name: str, x: object, got: np.ndarray, exact: np.ndarray, limit: float = 2.0) -> None:
    """At most two units in the last position, or `limit`; special values exactly."""
    with np.errstate(all="ignore"):
        expected = exact.astype(np.float32)
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(got[special], expected[special])
    np.testing.assert_array_equal(np.signbit(got[expected == 0]), np.signbit(expected[expected == 0]))
    unit = np.spacing(np.maximum(np.abs(expected[~special]), np.float32(2.0**-126))).astype(np.float64)
    error = np.abs(got[~special].astype(np.float64) - exact[~special]) / unit
    assert error.max(initial=0) <= limit, f"{name} is {error.max():.2f} units off"
