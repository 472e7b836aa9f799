"""Integer operators for all pairs of 8 bits and at the ends of every width, against Python's integers in every mode."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs
from tests.support.programs import IDENTICAL
from tir_dialect.interpreter.numerics import integer_power

MOST, LEAST = 2**63 - 1, -(2**63)
INTEGERS = tuple(name for name in DTYPES if "i" in name and name != "i1")


def _towards_zero(x: int, y: int) -> int:
    quotient = abs(x) // abs(y) if y else 0
    return quotient if (x < 0) == (y < 0) else -quotient


def _power(x: int, y: int) -> int:
    """Rounded towards zero; 0 to a negative power is 0."""
    if y >= 0:
        return pow(x, y, 1 << 64) if x >= 0 else pow(x % (1 << 64), y, 1 << 64)
    return 0 if abs(x) != 1 else x if y % 2 else 1


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": _towards_zero,
    "floor_divide": lambda x, y: x // y if y else 0,
    "mod": lambda x, y: x - y * _towards_zero(x, y) if y else 0,
    "floor_mod": lambda x, y: x % y if y else 0,
    "power": _power,
    "maximum": max,
    "minimum": min,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
}
PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
}
UNARY: dict[str, Callable[[int], int]] = {
    "abs": abs,
    "negative": lambda x: -x,
    "sign": lambda x: (x > 0) - (x < 0),
    "square": lambda x: x * x,
    "bitwise_not": lambda x: ~x,
    "relu": lambda x: max(x, 0),
}
SHIFTS: dict[str, Callable[[int, int], int]] = {"left_shift": lambda x, y: x << y, "right_shift": lambda x, y: x >> y}

PROGRAMS = {
    dtype: Programs(
        {
            **{
                name: (f"%x: !relax.tensor<[n], {dtype}>, %y: !relax.tensor<[n], {dtype}>", f"relax.{name} %x, %y")
                for name in (*BINARY, *PREDICATES, *SHIFTS)
            },
            **{name: (f"%x: !relax.tensor<[n], {dtype}>", f"relax.{name} %x") for name in UNARY if name != "relu"},
            "relu": (f"%x: !relax.tensor<[n], {dtype}>", "relax.nn.relu %x"),
        }
    )
    for dtype in INTEGERS
}

DTYPE = pytest.mark.parametrize(
    "dtype", [pytest.param(each, marks=[pytest.mark.slow] * (each[-2:] in ("16", "32"))) for each in INTEGERS]
)


def _numbers(dtype: str) -> list[int]:
    """All numbers of 8 bits; of other widths the ends, what is near them, and what is near 0 and powers of 2."""
    info = np.iinfo(DTYPES[dtype])
    if info.bits == 8:
        return list(range(info.min, info.max + 1))
    around = {0, info.min, info.max, info.max // 2, 1 << (info.bits // 2), 3, 7}
    near = {each + by for each in around for by in (-2, -1, 0, 1, 2)} | {-each for each in around}
    return sorted(each for each in near if info.min <= each <= info.max)


def _wrapped(numbers: list[int], dtype: str) -> np.ndarray:
    kind = np.dtype(DTYPES[dtype])
    mask = (1 << 8 * kind.itemsize) - 1
    return np.array([number & mask for number in numbers], f"u{kind.itemsize}").view(kind)


def _check(name: str, dtype: str, function: Callable[..., int], *columns: list[int]) -> None:
    arguments = [np.array(column, DTYPES[dtype]) for column in columns]
    results = [function(*numbers) for numbers in zip(*columns, strict=True)]
    expected = np.array(results) if name in PREDICATES else _wrapped(results, dtype)
    PROGRAMS[dtype].check(name, arguments, expected, IDENTICAL)


@pytest.mark.sampled(2)
@DTYPE
@pytest.mark.parametrize("name", [*BINARY, *PREDICATES])
def test_binary(name: str, dtype: str):
    numbers = _numbers(dtype)
    pairs = [(x, y) for x in numbers for y in numbers]
    _check(name, dtype, (BINARY | PREDICATES)[name], [x for x, _ in pairs], [y for _, y in pairs])


@DTYPE
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: str):
    _check(name, dtype, UNARY[name], _numbers(dtype))


@DTYPE
@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(name: str, dtype: str):
    pairs = [(x, by) for x in _numbers(dtype) for by in range(np.iinfo(DTYPES[dtype]).bits)]
    _check(name, dtype, SHIFTS[name], [x for x, _ in pairs], [by for _, by in pairs])


def test_powers_to_large_exponents_end():
    """The interpreter of kernels keeps as many bits as there are, also while it multiplies."""
    for base, exponent in ((3, MOST), (-3, MOST - 1), (2, MOST), (-1, MOST), (LEAST, 1), (0, -MOST), (5, LEAST)):
        expected = _wrapped([_power(base, exponent)], "i64")[0]
        assert integer_power(base, exponent) == expected, (base, exponent)
