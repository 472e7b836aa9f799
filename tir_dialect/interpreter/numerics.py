"""What generated code calls: arithmetic on single values, ops on all lanes of vectors, memory by its address, tile
registers, the errors of accesses, and how values are represented.

Floating-point functions take and return `float`: results of narrower types are computed in double precision and
rounded once.

| type | value |
|---|---|
| `index` | `int`; wrapped to 64 bits where it is computed from data, not where sizes tell it |
| `iN` | `int`, signed, wrapped to N bits; `i1` is 0 or 1, or a `bool` |
| floats | NumPy scalar (of `ml_dtypes` for `bf16` and small floats) |
| `vector<LxT>` | NumPy array of L elements (`int64` for `index`) |
| buffer | NumPy array of the logical shape; unsigned elements are seen as signed |
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IndexType, IntegerType, VectorType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from tir_dialect import dtypes
from tir_dialect.ops.tile_registers import LAST_COLUMNS, LAST_ROWS, TILE_SIZE


class OutOfRangeError(IndexError):
    """An access outside its buffer, a view outside its source, or an iterator outside its domain."""


class UnsupportedOpError(NotImplementedError):
    """An op that has no reference semantics here."""


def fail_access(op: str, buffer: str, indices: Sequence[int], extents: Sequence[int]) -> NoReturn:
    """Raises the error of an access outside its buffer."""
    for axis, (index, extent) in enumerate(zip(indices, extents, strict=True)):
        if not 0 <= index < extent:
            raise OutOfRangeError(f"'{op}' of buffer {buffer}: index {axis} is {index}, expected 0 <= index < {extent}")
    raise AssertionError("unreachable: the access is in range")


def divide_towards_zero(lhs: int, rhs: int) -> int:
    """The quotient rounded towards zero; ZeroDivisionError for the divisor 0."""
    quotient = abs(lhs) // abs(rhs)
    return quotient if (lhs < 0) == (rhs < 0) else -quotient


def remainder_towards_zero(lhs: int, rhs: int) -> int:
    """The remainder with the sign of the dividend; ZeroDivisionError for the divisor 0."""
    rest = abs(lhs) % abs(rhs)
    return -rest if lhs < 0 else rest


def shift_left(value: int, amount: int, bits: int) -> int:
    """`value << amount`; 0 if nothing is left of the `bits` bits."""
    return value << amount if 0 <= amount < bits else 0


def shift_right(value: int, amount: int, bits: int) -> int:
    """`value >> amount`, which fills with the sign of `value`."""
    return value >> (amount if 0 <= amount < bits else bits - 1)


def shift_right_unsigned(value: int, amount: int, bits: int) -> int:
    """`value >> amount` with zeros moving in; `value` counts as unsigned."""
    return (value & ((1 << bits) - 1)) >> amount if 0 <= amount < bits else 0


def count_leading_zeros(value: int, bits: int) -> int:
    """How many of the highest bits are 0."""
    return bits - (value & ((1 << bits) - 1)).bit_length()


def count_trailing_zeros(value: int, bits: int) -> int:
    """How many of the lowest bits are 0."""
    value &= (1 << bits) - 1
    return (value & -value).bit_length() - 1 if value else bits


def count_ones(value: int, bits: int) -> int:
    """How many bits are 1."""
    return (value & ((1 << bits) - 1)).bit_count()


def integer_power(base: int, exponent: int) -> int:
    """The lowest 64 bits of `base ** exponent`, as a signed number; it is rounded towards zero where the exponent is
    negative, and 0 to a negative power is 0.
    """
    if exponent >= 0:
        power = pow(base, exponent, 1 << 64)
        return power - (1 << 64) if power >> 63 else power
    if base in (1, -1):
        return base if exponent % 2 else 1
    return 0


def to_integer(value: float, bits: int, *, signed: bool) -> int:
    """A float rounded towards zero, at the ends of the range if it is outside; 0 for NaN."""
    value = float(value)  # ml_dtypes do not compare with large integers
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if value != value:
        return 0
    if value <= low:
        return low
    return high if value >= high else int(value)


def integer_to_float(value: int, kind: Any) -> Any:
    """An integer in a NumPy type, rounded once."""
    return kind(float(value)) if -(1 << 53) <= value <= 1 << 53 else _round(Fraction(value), kind)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The greater value; NaN if one is NaN; +0 is greater than -0."""
    if lhs == rhs == 0:
        return lhs if math.copysign(1, lhs) > 0 else rhs
    return lhs if lhs > rhs or lhs != lhs else rhs


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller value; NaN if one is NaN; -0 is smaller than +0."""
    if lhs == rhs == 0:
        return lhs if math.copysign(1, lhs) < 0 else rhs
    return lhs if lhs < rhs or lhs != lhs else rhs


def maximum_number(lhs: Any, rhs: Any) -> Any:
    """The greater value; the other one if one is NaN."""
    return lhs if rhs != rhs else rhs if lhs != lhs else maximum(lhs, rhs)


def minimum_number(lhs: Any, rhs: Any) -> Any:
    """The smaller value; the other one if one is NaN."""
    return lhs if rhs != rhs else rhs if lhs != lhs else minimum(lhs, rhs)


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` rounded once, in the type of the operands."""
    kind: Any = a.__class__
    x, y, z = float(a), float(b), float(c)
    product = x * y
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return kind(product + z)
    if kind is not np.float64:
        return kind(_add_to_odd(product, z))  # 53 bits hold the product
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return _round(exact, kind) if exact else kind(product + z)  # the sign of zero


def _add_to_odd(lhs: float, rhs: float) -> float:
    """The sum, of two neighbours the odd one if it is not exact: to round it again to fewer bits is to round once."""
    total = lhs + rhs
    part = total - lhs
    rest = (lhs - (total - part)) + (rhs - part)
    if rest and not int(np.float64(total).view(np.int64)) & 1:
        return math.nextafter(total, math.copysign(math.inf, rest))
    return total


def dot_words(lhs: Any, rhs: Any, total: Any, left: Any, right: Any, saturating: bool = False) -> Any:
    """`total` and, lane by lane, the products of the numbers that words of 32 bits consist of.

    `left` and `right` are the dtypes of these numbers. Integers wrap around, floats are rounded to `f32`. Where it is
    `saturating`, sums of two products are limited to 16 bits.
    """
    wide = np.float32 if total.dtype.kind == "f" else np.int64
    parts = [words.view(dtype).reshape(len(total), -1).astype(wide) for words, dtype in ((lhs, left), (rhs, right))]
    products = parts[0] * parts[1]
    if saturating:
        limits = np.iinfo(np.int16)
        products = (products[:, ::2] + products[:, 1::2]).clip(limits.min, limits.max)
    return (total.astype(wide) + products.sum(1)).astype(total.dtype)


def look_up_bytes(value: Any, table: Any) -> Any:
    """The entries of a table of 16 bytes that the lower four bits of each byte of a vector select."""
    return table[value.view(np.uint8) & 15].view(value.dtype)


def _round(exact: Fraction, kind: Any) -> Any:
    """`exact` in a NumPy type, rounded once: `float` rounds correctly, and odd intermediate results do not tie."""
    try:
        nearest = float(exact)
    except OverflowError:
        return kind(math.inf if exact > 0 else -math.inf)
    if kind is np.float64:
        return np.float64(nearest)
    rest = exact - Fraction(nearest)
    if rest and not int(np.float64(nearest).view(np.int64)) & 1:
        nearest = float(np.nextafter(nearest, math.inf if rest > 0 else -math.inf))
    return kind(nearest)


def round_half_away(value: float) -> float:
    """The nearest integer; halves go away from zero."""
    if not math.isfinite(value) or abs(value) >= 2.0**52:
        return value
    return math.copysign(math.floor(abs(value) + 0.5) if abs(value) != 0.49999999999999994 else 0.0, value)


def _total(function: Callable[..., float], fallback: Callable[..., Any]) -> Callable[..., float]:
    """A function of `math` that gives infinity or NaN, as NumPy's does, where it would raise."""

    def apply(*operands: float) -> float:
        try:
            return function(*operands)
        except (ValueError, OverflowError):
            return float(fallback(*operands))

    return apply


def _reciprocal_square_root(value: float) -> float:
    return 1.0 / math.sqrt(value) if value > 0 else float(1.0 / np.sqrt(np.float64(value)))


def _ceil(value: float) -> float:
    return float(np.ceil(value))


def _floor(value: float) -> float:
    return float(np.floor(value))


def _scaled_exp(value: float) -> float:
    return float(np.exp(np.float64(-104.0 if value < -104.0 else value))) * 2.0**64


def _sigmoid(exponent: float) -> float:
    """`1 / (1 + e**exponent)`, without overflow."""
    small = math.exp(-abs(exponent))
    return (small if exponent > 0 else 1.0) / (1.0 + small)


SIGMOID = "sigmoid"
"""The function that stands for a quotient `1 / (1 + e**u)` of `u`."""

UNARY: dict[str, Callable[[float], float]] = {
    "math.acos": _total(math.acos, np.arccos),
    "math.acosh": _total(math.acosh, np.arccosh),
    "math.asin": _total(math.asin, np.arcsin),
    "math.asinh": _total(math.asinh, np.arcsinh),
    "math.atan": _total(math.atan, np.arctan),
    "math.atanh": _total(math.atanh, np.arctanh),
    "math.cbrt": _total(math.cbrt, np.cbrt),
    "math.ceil": _ceil,
    "math.cos": _total(math.cos, np.cos),
    "math.cosh": _total(math.cosh, np.cosh),
    "math.erf": math.erf,
    "math.exp": _total(math.exp, np.exp),
    "math.exp2": _total(math.exp2, np.exp2),
    "math.expm1": _total(math.expm1, np.expm1),
    "math.floor": _floor,
    "math.log": _total(math.log, np.log),
    "math.log10": _total(math.log10, np.log10),
    "math.log1p": _total(math.log1p, np.log1p),
    "math.log2": _total(math.log2, np.log2),
    "math.round": round_half_away,
    "math.roundeven": lambda value: float(np.rint(value)),
    "math.rsqrt": _reciprocal_square_root,
    "math.sin": _total(math.sin, np.sin),
    "math.sinh": _total(math.sinh, np.sinh),
    "math.sqrt": _total(math.sqrt, np.sqrt),
    "math.tan": _total(math.tan, np.tan),
    "math.tanh": math.tanh,
    "math.trunc": lambda value: float(np.trunc(value)),
    "tir.scaled_exp": _scaled_exp,
    SIGMOID: _sigmoid,
}
"""The unary functions of floats by op name, and `SIGMOID`."""

BINARY: dict[str, Callable[[float, float], float]] = {
    "math.atan2": math.atan2,
    "math.copysign": math.copysign,
    "math.fpowi": _total(math.pow, np.power),
    "math.powf": _total(math.pow, np.power),
    "tir.fmod": _total(math.fmod, np.fmod),
}
"""The binary ones."""


def memory_at(address: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
    """The value of a `tir.memory_at`, its strides in elements; an array that nobody can access if the address is null.

    The memory is not looked at, and does not live longer through the array.
    """
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    if address == 0 or min(shape, default=1) <= 0:
        return np.empty([0] * max(len(shape), 1), dtype)
    memory = memoryview((ctypes.c_uint8 * (span * dtype.itemsize)).from_address(address))
    return np.ndarray(shape, dtype, memory, 0, [stride * dtype.itemsize for stride in strides])


def address_of(array: np.ndarray, position: Sequence[int]) -> int:
    """The value of a `tir.address_of`: where an element lies, also one after the last."""
    return array.ctypes.data + sum(index * stride for index, stride in zip(position, array.strides, strict=True))


def read_text(address: int) -> str:
    """A text that ends in a zero byte."""
    return ctypes.string_at(address).decode()


def element_of(type: Attribute) -> Attribute:
    """The element type of a vector; a scalar type itself."""
    return type.element_type if isa(type, VectorType) else type


def bits_of(type: Attribute) -> int | None:
    """The width of an integer type or of a vector of it; `None` for `index`."""
    element = element_of(type)
    if isa(element, IntegerType):
        return element.width.data
    if isinstance(element, IndexType):
        return None
    raise UnsupportedOpError(f"expected an integer type, got {type}")


def numpy_type(type: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of the elements of a scalar or vector type."""
    element = element_of(type)
    return np.dtype(np.int64) if isinstance(element, IndexType) else dtypes.numpy_dtype(element)


def holds_integers(dtype: np.dtype[Any]) -> bool:
    """Whether values of a NumPy dtype are kept as `int`: of integers with a sign, also of `ml_dtypes`, and of bool."""
    return dtype.kind in "ib" or dtype.name in ("int4", "int2")


def buffer_view(array: np.ndarray, dtype: Attribute) -> np.ndarray:
    """The same memory, with unsigned elements seen as signed: what loads and stores work on."""
    return array.view(numpy_type(dtypes.scalar_type(dtype))) if dtypes.is_unsigned(dtype) else array


def outside_view(array: np.ndarray, dtype: Attribute) -> np.ndarray:
    """The same memory in the dtype of the buffer: what functions outside the program get."""
    return array.view(dtypes.numpy_dtype(dtype)) if dtypes.is_unsigned(dtype) else array


def wrap(value: int, bits: int | None) -> int:
    """`value` as a signed integer of `bits` bits; 0 or 1 for one bit."""
    if bits is None:
        return value
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def scalar_value(value: float | np.number[Any] | np.bool_, type: Attribute) -> Any:
    """A Python or NumPy number as a value of a scalar type."""
    if isinstance(type, IndexType) or isa(type, IntegerType):
        return wrap(int(value), bits_of(type))
    return numpy_type(type).type(value)


def load_vector(array: np.ndarray, name: str, indices: Sequence[Any], count: int, contiguous: bool, mask: Any) -> Any:
    """The value of a vector `tir.load`."""
    if mask is None:
        return array[_elements("tir.load", array, name, indices, count, contiguous, None)].copy()
    lanes = np.flatnonzero(mask)
    result = np.zeros(count, array.dtype)
    result[lanes] = array[_elements("tir.load", array, name, indices, count, contiguous, lanes)]
    return result


def store_vector(value: Any, array: np.ndarray, name: str, indices: Sequence[Any], contiguous: bool, mask: Any) -> None:
    """The effect of a vector `tir.store`; of lanes with one element, the last one stays."""
    if mask is None:
        array[_elements("tir.store", array, name, indices, len(value), contiguous, None)] = value
        return
    lanes = np.flatnonzero(mask)
    array[_elements("tir.store", array, name, indices, len(value), contiguous, lanes)] = value[lanes]


def _elements(
    op: str,
    array: np.ndarray,
    name: str,
    indices: Sequence[Any],
    count: int,
    contiguous: bool,
    lanes: npt.NDArray[np.intp] | None,
) -> Any:
    """What NumPy calls the elements of the active lanes, all of them for None; each is inside."""
    *outer, last = indices
    if contiguous and lanes is None and _are_inside(indices, array.shape) and last + count <= array.shape[-1]:
        return (*outer, slice(last, last + count))
    active = np.arange(count) if lanes is None else lanes
    columns = [_column(index, active) for index in indices]
    if contiguous:
        columns[-1] = columns[-1] + active
    outside = np.zeros(len(active), bool)
    for column, extent in zip(columns, array.shape, strict=True):
        outside |= (column < 0) | (column >= extent)
    if outside.any():
        first = int(outside.argmax())
        fail_access(op, name, [int(column[first]) for column in columns], array.shape)
    return tuple(columns)


def _column(index: int | npt.NDArray[np.integer[Any]], lanes: npt.NDArray[np.intp]) -> npt.NDArray[np.integer[Any]]:
    return index[lanes] if isinstance(index, np.ndarray) else np.full(len(lanes), index, np.int64)


def _are_inside(indices: Sequence[int], shape: Sequence[int]) -> bool:
    return all(0 <= index < extent for index, extent in zip(indices, shape, strict=True))


def map_lanes(function: Callable[..., Any], dtype: np.dtype[Any], operands: Sequence[Any]) -> np.ndarray:
    """An op on vectors, lane by lane; scalars count for all lanes."""
    count = max(np.size(operand) for operand in operands)
    columns = [_lane_values(operand, count) for operand in operands]
    return np.array([function(*lane) for lane in zip(*columns, strict=True)], dtype)


def _lane_values(operand: Any, count: int) -> Sequence[Any]:
    if np.ndim(operand) == 0:
        return [operand] * count
    return operand.tolist() if holds_integers(operand.dtype) else list(operand)


def multiply_add_lanes(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """`a * b + c` on all lanes, rounded once: `numerics.fused_multiply_add` on each."""
    if a.dtype == np.float64:
        return map_lanes(fused_multiply_add, a.dtype, (a, b, c))
    x, y, z = (operand.astype(np.float64) for operand in (a, b, c))
    product = x * y  # exact, as 53 bits hold it
    total = product + z
    part = total - product
    rest = (product - (total - part)) + (z - part)
    is_tied_to_even = np.isfinite(total) & (rest != 0) & (total.view(np.int64) & 1 == 0)
    return np.where(is_tied_to_even, np.nextafter(total, np.copysign(np.inf, rest)), total).astype(a.dtype)


class TileRegisters:
    """The registers that `tir.configure_tiles` makes: `shape` gives the rows and groups of each."""

    def __init__(self, rest: int):
        if not 0 <= rest <= TILE_SIZE:
            raise OutOfRangeError(f"'tir.configure_tiles' expected at most {TILE_SIZE} groups, got {rest}")
        self._shapes = {LAST_ROWS: (TILE_SIZE, rest or TILE_SIZE), LAST_COLUMNS: (rest or TILE_SIZE, TILE_SIZE)}
        self._tiles: dict[int, np.ndarray] = {}

    def zero(self, tile: int) -> None:
        """Makes accumulators zero: the same bits for both dtypes."""
        self._tiles[tile] = np.zeros(self._shape(tile), np.int32)

    def load(self, tile: int, buffer: np.ndarray, name: str, indices: Sequence[int]) -> None:
        """Copies from memory."""
        self._tiles[tile] = self._memory(tile, "tir.load_tile", buffer, name, indices).view(np.int32).copy()

    def store(self, tile: int, buffer: np.ndarray, name: str, indices: Sequence[int]) -> None:
        """Copies to memory."""
        memory = self._memory(tile, "tir.store_tile", buffer, name, indices)
        memory[...] = self._tiles[tile].view(memory.dtype)

    def dot(self, acc: int, lhs: int, rhs: int, left: Any, right: Any) -> None:
        """Adds the dot products of the rows and columns of two registers, whose numbers have these dtypes."""
        is_float = np.dtype(left).kind != "i" and np.dtype(left).kind != "u"
        kind, total = (np.float32, np.float32) if is_float else (np.int64, np.int32)
        rows = np.ascontiguousarray(self._tiles[lhs]).view(left).astype(kind)
        columns = np.ascontiguousarray(self._tiles[rhs].T).view(right).astype(kind)
        sums = self._tiles[acc].view(total).astype(kind) + rows @ columns.T
        self._tiles[acc] = sums.astype(total).view(np.int32)

    def _shape(self, tile: int) -> tuple[int, int]:
        return self._shapes.get(tile, (TILE_SIZE, TILE_SIZE))

    def _memory(self, tile: int, op: str, buffer: np.ndarray, name: str, indices: Sequence[int]) -> np.ndarray:
        *outer, row, column = indices
        rows, groups = self._shape(tile)
        for corner in (indices, (*outer, row + rows - 1, column + groups - 1)):
            if not all(0 <= index < extent for index, extent in zip(corner, buffer.shape, strict=True)):
                fail_access(op, name, corner, buffer.shape)
        return buffer[(*outer, slice(row, row + rows), slice(column, column + groups))]
