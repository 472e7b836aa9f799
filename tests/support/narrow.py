"""Dtypes of less than 16 bits that NumPy leaves to `ml_dtypes`: their values, and where f32 is rounded to them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tir_dialect.dtypes import DTYPES, lookup, numpy_dtype, parse_dtype

SMALL_FLOATS = [dtype.name for dtype in DTYPES if dtype.is_small_float]
INTEGERS = [dtype.name for dtype in DTYPES if dtype.is_narrow and not dtype.is_small_float]
NARROW = [*SMALL_FLOATS, *INTEGERS]

Array = NDArray[Any]


def every_value(name: str) -> Array:
    """All values of a dtype, in the order of their bits."""
    dtype = parse_dtype(name)
    return np.arange(1 << lookup(dtype).bits, dtype=np.uint8).view(numpy_dtype(dtype))


def converted(values: Array, name: str) -> Array:
    """What `astype` of `ml_dtypes` makes of an array."""
    with np.errstate(all="ignore"):
        return values.astype(numpy_dtype(parse_dtype(name)))


def f32_sample(name: str, count: int = 0) -> Array:
    """Numbers of f32: all values of a small float, the ties between them and the numbers next to these, what is too
    large, what is not finite, subnormal numbers, and `count` random patterns of bits.
    """
    values = every_value(name).astype(np.float64)
    values = np.sort(values[np.isfinite(values)])
    above = 2 * values[-1] - values[-2]
    values = np.append(values, [above, 2 * above])
    points = converted(np.concatenate([values, (values[1:] + values[:-1]) / 2]), "f32")
    tiny = np.array(
        [0.0, 1e-45, 1e-40, 2.0**-127, 1.5 * 2.0**-127, 2.0**-126, 1e30, 3.4e38, np.inf, np.nan], np.float32
    )
    points = np.concatenate([points, tiny, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, -points)])
    bits = np.random.default_rng(0).integers(0, 1 << 32, count, dtype=np.uint32)
    return np.concatenate([points, -points, bits.view(np.float32)])


def same_bits(got: Array, want: Array, *, nans: bool = False) -> bool:
    """Whether arrays have the same bits; NaN may have others, unless `nans` says that it must not."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    raw = f"u{got.dtype.itemsize}"
    equal = np.ascontiguousarray(got).view(raw) == np.ascontiguousarray(want).view(raw)
    if not nans and want.dtype.name.startswith(("float", "bfloat")):
        equal |= np.isnan(got) & np.isnan(want)
    return bool(equal.all())
