"""Block-quantised weights as NumPy arrays: decoded in every format, encoded in those that kernels decode themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tir_dialect.block_formats import DOUBLED_FLOATS, FORMATS, BlockFormat
from vm_dialect.host_memory import aligned_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

MOST_BLOCKS = 1 << 12
"""So many are decoded at once, as each number takes several integers meanwhile."""


@dataclass(frozen=True, eq=False)
class BlockArray:
    """An array of numbers that is kept as blocks."""

    packed: Array
    """The bytes: the last axis is rows of whole blocks."""
    block_format: BlockFormat

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers."""
        return (*self.packed.shape[:-1], self.block_format.columns(self.packed.shape[-1]))

    def __getitem__(self, rows: slice | tuple[slice, ...]) -> BlockArray:
        """Some of the rows, or of the first axes; the last one is always whole."""
        count = len(rows) if isinstance(rows, tuple) else 1
        if self.packed.ndim <= count:
            raise IndexError(f"expected an array of more than {count} axes")
        return BlockArray(self.packed[rows], self.block_format)

    def decoded(self) -> Array:
        """The numbers."""
        return decode(self.packed, self.block_format)


class _Blocks:
    """The bytes of some blocks, as `tir_dialect.block_formats.Bytes`; an index is one for each number of a block."""

    def __init__(self, blocks: Array):
        self._blocks = blocks

    def byte(self, at: Array | int) -> Array:
        found = self._blocks[:, at].astype(np.int32)
        return found if found.ndim == 2 else found[:, None]

    def half(self, at: int) -> Array:
        return np.ascontiguousarray(self._blocks[:, at : at + 2]).view("<f2").astype(np.float32)

    def single(self, at: int) -> Array:
        return np.ascontiguousarray(self._blocks[:, at : at + 4]).view("<f4").astype(np.float32)

    def integer(self, index: Array | int) -> Array:
        return np.asarray(index, np.int32)

    def real(self, integer: Array) -> Array:
        return integer.astype(np.float32)

    def float_of_bits(self, integer: Array) -> Array:
        return integer.view(np.float32)

    def select(self, condition: Array, then: Array, otherwise: Array) -> Array:
        return np.where(condition, then, otherwise)

    def element(self, values: Sequence[int], integer: Array) -> Array:
        return np.array(values, np.int32)[integer]


def decode(packed: Array, block_format: BlockFormat) -> Array:
    """The numbers, `f32`, of an array of bytes whose last axis is rows of whole blocks; `ValueError` for others."""
    if packed.dtype != np.uint8 or not packed.ndim or packed.shape[-1] % block_format.bytes:
        raise ValueError(
            f"expected bytes in rows of a multiple of {block_format.bytes}, got {packed.dtype} {list(packed.shape)}"
        )
    blocks = np.ascontiguousarray(packed).reshape(-1, block_format.bytes)
    found = np.empty((len(blocks), block_format.elements), np.float32)
    index = np.arange(block_format.elements)
    with np.errstate(all="ignore"):
        for first in range(0, len(blocks), MOST_BLOCKS):
            some = slice(first, first + MOST_BLOCKS)
            found[some] = block_format.formula(_Blocks(blocks[some]), index)
    return found.reshape(*packed.shape[:-1], block_format.columns(packed.shape[-1]))


def encode(numbers: Array, block_format: BlockFormat) -> Array:
    """The bytes of an array of numbers whose last axis is rows of whole blocks: each number is rounded to the nearest
    one that its block has.

    A block whose scale is beyond the range of `f16` is not decoded to finite numbers. `ValueError` for a format that
    has no encoder, for rows of no whole blocks, and for numbers that are not finite.
    """
    encoder = ENCODERS.get(block_format.name)
    if encoder is None:
        raise ValueError(f"there is no encoder of {block_format.name}, only of {', '.join(ENCODERS)}")
    if not numbers.ndim or numbers.shape[-1] % block_format.elements:
        raise ValueError(f"expected rows of a multiple of {block_format.elements}, got {list(numbers.shape)}")
    if not np.isfinite(numbers).all():
        raise ValueError("expected finite numbers")
    blocks = np.ascontiguousarray(numbers, np.float32).reshape(-1, block_format.elements)
    with np.errstate(over="ignore", invalid="ignore"):
        packed = encoder(blocks)
    return packed.reshape(*numbers.shape[:-1], block_format.row_bytes(numbers.shape[-1]))


def encode_rows(rows: Array, block_format: BlockFormat) -> tuple[BlockArray, float]:
    """Rows of numbers as blocks, and how far these are off: the root of the mean squared error, relative to that of the
    numbers; not a finite number if a scale is beyond the range of `f16`.

    The bytes are aligned to a cache line. `ValueError` as of `encode`.
    """
    shape, columns = (*rows.shape[:-1], block_format.row_bytes(rows.shape[-1])), max(1, rows.shape[-1])
    packed = aligned_bytes(math.prod(shape)).reshape(shape)
    flat, bytes_ = rows.reshape(-1, rows.shape[-1]), packed.reshape(-1, shape[-1])
    step = max(1, MOST_BLOCKS * block_format.elements // columns)
    wrong = total = 0.0
    for first in range(0, len(flat), step):
        some = np.ascontiguousarray(flat[first : first + step], np.float32)
        here = bytes_[first : first + step]
        here[...] = encode(some, block_format)
        with np.errstate(invalid="ignore", over="ignore"):
            off = (decode(here, block_format) - some).astype(np.float64)
            wrong += float(np.vdot(off, off))
        total += float(np.square(some, dtype=np.float64).sum())
    return BlockArray(packed, block_format), (wrong / total) ** 0.5 if total else wrong


def encode_integers(integers: Array, scale: Array, zero: Array, bits: int) -> BlockArray:
    """`(integers - zero) * scale` in the format `u4_f32` or `u8_f32`, exactly.

    `integers` are of 4 or 8 bits without sign, in rows of a multiple of 32; scale and zero have one number for each 32
    of them.
    """
    block_format = FORMATS[f"u{bits}_f32"]
    blocks = integers.astype(np.uint8).reshape(-1, block_format.elements)
    parameters = [np.ascontiguousarray(each, "<f4").reshape(-1, 1).view(np.uint8) for each in (scale, zero)]
    packed = np.concatenate([*parameters, _nibbles(blocks) if bits == 4 else blocks], axis=-1)
    return BlockArray(packed.reshape(*integers.shape[:-1], block_format.row_bytes(integers.shape[-1])), block_format)


def _steps(blocks: Array, step: Array, least: Array | float) -> Array:
    """How many steps of a block's size each number is above the least one, not rounded; 0 if a step has no inverse."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float32(1) / step
    return (blocks - least) * np.where(np.isfinite(inverse), inverse, np.float32(0))


def _halves(*columns: Array) -> list[Array]:
    return [column.astype("<f2").view(np.uint8) for column in columns]


def _nibbles(numbers: Array) -> Array:
    return numbers[:, :16] & 15 | (numbers[:, 16:] & 15) << 4


def _fifth_bits(numbers: Array) -> Array:
    return np.packbits(numbers >> 4, axis=-1, bitorder="little")


def _rounded_up(steps: Array, most: int) -> Array:
    """The nearest integers, ties upwards."""
    return np.trunc(steps + np.float32(0.5)).clip(0, most).astype(np.uint8)


def _signed_step(blocks: Array, half_range: int) -> Array:
    """The step with which the number of the greatest magnitude is exactly the least one of the range."""
    position = np.abs(blocks).argmax(axis=-1, keepdims=True)
    return np.take_along_axis(blocks, position, axis=-1) / np.float32(-half_range)


def _encode_q4_0(blocks: Array) -> Array:
    step = _signed_step(blocks, 8)
    numbers = _rounded_up(_steps(blocks, step, 0) + np.float32(8), 15)
    return np.concatenate([*_halves(step), _nibbles(numbers)], axis=-1)


def _encode_q5_0(blocks: Array) -> Array:
    step = _signed_step(blocks, 16)
    numbers = _rounded_up(_steps(blocks, step, 0) + np.float32(16), 31)
    return np.concatenate([*_halves(step), _fifth_bits(numbers), _nibbles(numbers)], axis=-1)


def _affine(blocks: Array, most: int) -> tuple[Array, Array, Array]:
    least = blocks.min(axis=-1, keepdims=True)
    step = (blocks.max(axis=-1, keepdims=True) - least) / np.float32(most)
    return step, least, _rounded_up(_steps(blocks, step, least), most)


def _encode_q4_1(blocks: Array) -> Array:
    step, least, numbers = _affine(blocks, 15)
    return np.concatenate([*_halves(step, least), _nibbles(numbers)], axis=-1)


def _encode_q5_1(blocks: Array) -> Array:
    step, least, numbers = _affine(blocks, 31)
    return np.concatenate([*_halves(step, least), _fifth_bits(numbers), _nibbles(numbers)], axis=-1)


def _encode_q8_0(blocks: Array) -> Array:
    step = np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(127)
    steps = _steps(blocks, step, 0)
    numbers = np.trunc(steps + np.copysign(np.float32(0.5), steps)).clip(-127, 127).astype(np.int8)
    return np.concatenate([*_halves(step), numbers.view(np.uint8)], axis=-1)


def _encode_mxfp4(blocks: Array) -> Array:
    """Half a power of two as in the format of the Open Compute Project: the greatest magnitude is 4 to 8 times it, and
    what is above 6 times is rounded to that.
    """
    greatest = np.abs(blocks).max(axis=-1, keepdims=True)
    exponent = np.where(greatest > 0, np.frexp(greatest)[1] + 124, 0).clip(0, 254)
    doubled = np.array(DOUBLED_FLOATS[:8], np.float32)
    codes = np.searchsorted((doubled[:-1] + doubled[1:]) / 2, np.ldexp(np.abs(blocks), 128 - exponent))
    signs = np.where((blocks < 0) & (codes > 0), 8, 0)
    return np.concatenate([exponent.astype(np.uint8), _nibbles((codes | signs).astype(np.uint8))], axis=-1)


def _encode_affine_f32(bits: int, blocks: Array) -> Array:
    """A block of equal numbers has the scale that they are."""
    step, least, numbers = _affine(blocks, (1 << bits) - 1)
    is_flat = step == 0
    zero = np.where(is_flat, np.float32(-1), -least / np.where(is_flat, np.float32(1), step))
    return encode_integers(numbers, np.where(is_flat, least, step), zero, bits).packed


def _whole_scales(scales: Array, most: int) -> tuple[Array, Array, Array]:
    """Scales that are at least 0 as multiples of an `f16`: it, the integers up to `most`, and what they stand for."""
    unit = scales.max(axis=-1, keepdims=True) / np.float32(most)
    integers = _rounded_up(_steps(scales, unit, 0), most)
    return unit, integers, integers * unit.astype("<f2").astype(np.float32)


def _grouped_affine(blocks: Array, most: int) -> tuple[Array, Array]:
    """What `q4_k` and `q5_k` begin with, and the numbers in groups of 32.

    A group has a scale and a least number of 6 bits each, multiples of two numbers of the block.
    """
    groups = blocks.reshape(-1, 8, 32)
    below = np.maximum(-groups.min(axis=-1), 0)
    unit, scales, steps = _whole_scales((groups.max(axis=-1) + below) / np.float32(most), 63)
    least_unit, leasts, belows = _whole_scales(below, 63)
    numbers = _rounded_up(_steps(groups, steps[..., None], -belows[..., None]), most)
    first = [each[:, :4] | each[:, 4:] >> 4 << 6 for each in (scales, leasts)]
    rest = scales[:, 4:] & 15 | (leasts[:, 4:] & 15) << 4
    return np.concatenate([*_halves(unit, least_unit), *first, rest], axis=-1), numbers


def _paired_nibbles(numbers: Array) -> Array:
    """The lower halves of bytes have one group of 32, the upper ones the next."""
    pairs = (numbers & 15).reshape(-1, 4, 2, 32)
    return (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(-1, 128)


def _encode_q4_k(blocks: Array) -> Array:
    head, numbers = _grouped_affine(blocks, 15)
    return np.concatenate([head, _paired_nibbles(numbers)], axis=-1)


def _encode_q5_k(blocks: Array) -> Array:
    head, numbers = _grouped_affine(blocks, 31)
    fifth = np.packbits(numbers >> 4, axis=1, bitorder="little").reshape(-1, 32)
    return np.concatenate([head, fifth, _paired_nibbles(numbers)], axis=-1)


def _encode_q6_k(blocks: Array) -> Array:
    groups = blocks.reshape(-1, 16, 16)
    wanted = _signed_step(groups, 32)[..., 0]
    unit = _signed_step(wanted, 128)
    scales = np.rint(_steps(wanted, unit, 0)).clip(-128, 127).astype(np.int8)
    steps = (scales * unit.astype("<f2").astype(np.float32))[..., None]
    numbers = (np.rint(_steps(groups, steps, 0)).clip(-32, 31) + 32).astype(np.uint8)
    halves, quarters = (numbers & 15).reshape(-1, 2, 2, 64), (numbers >> 4).reshape(-1, 2, 4, 32)
    low = halves[:, :, 0] | halves[:, :, 1] << 4
    high = np.bitwise_or.reduce(quarters << np.array([0, 2, 4, 6], np.uint8)[:, None], axis=2)
    parts = [low.reshape(-1, 128), high.reshape(-1, 64), scales.view(np.uint8), *_halves(unit)]
    return np.concatenate(parts, axis=-1)


ENCODERS: Mapping[str, Callable[[Array], Array]] = {
    "q4_0": _encode_q4_0,
    "q4_1": _encode_q4_1,
    "q5_0": _encode_q5_0,
    "q5_1": _encode_q5_1,
    "q8_0": _encode_q8_0,
    "q4_k": _encode_q4_k,
    "q5_k": _encode_q5_k,
    "q6_k": _encode_q6_k,
    "mxfp4": _encode_mxfp4,
    "u4_f32": partial(_encode_affine_f32, 4),
    "u8_f32": partial(_encode_affine_f32, 8),
}
"""The bytes of blocks, by the names of the formats."""

assert ENCODERS.keys() <= FORMATS.keys()
