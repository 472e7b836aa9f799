"""Quantisation against NumPy, in every mode."""

import gguf
import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, Tolerance, random, wide
from tests.support.rules import each
from tir_dialect.block_arrays import encode_integers
from tir_dialect.block_formats import FORMATS

MATRIX = "%x: !relax.tensor<[n, m], {}>"
SCALAR = "%s: !relax.tensor<[], f32>, %z: !relax.tensor<[], {}>"
COLUMNS = "%s: !relax.tensor<[m], f32>, %z: !relax.tensor<[m], i8>"
PACKED = "%p: !relax.tensor<[n, b], ui8>"
INTEGERS = ("i8", "ui8", "i32", "i64")
PROGRAMS = Programs(
    {
        **{
            d: (f"{MATRIX.format('f32')}, {SCALAR.format('i8')}", f"relax.quantize %x, %s, %z dtype = {d}")
            for d in INTEGERS
        },
        "columns": (f"{MATRIX.format('f32')}, {COLUMNS}", "relax.quantize %x, %s, %z axis = 1 dtype = i8"),
        "rows": (
            f"{MATRIX.format('f16')}, %s: !relax.tensor<[k], f16>, %z: !relax.tensor<[1], i32>",
            "relax.quantize %x, %s, %z axis = 0 dtype = ui8",
        ),
        **{
            f"back_{d}": (f"{MATRIX.format(d)}, {SCALAR.format(d)}", "relax.dequantize %x, %s, %z dtype = f32")
            for d in INTEGERS
        },
        "back_columns": (f"{MATRIX.format('i8')}, {COLUMNS}", "relax.dequantize %x, %s, %z dtype = f16"),
        **{
            f"blocks_{name}": (PACKED, f'relax.dequantize_blocks %p format = "{name}" dtype = f16')
            if name == "q5_1"
            else (PACKED, f'relax.dequantize_blocks %p format = "{name}"')
            for name in FORMATS
        },
        "rows_of_blocks": (
            f"{PACKED}, %i: !relax.tensor<[k], i64>",
            '%t = relax.take %p, %i axis = 0; relax.dequantize_blocks %t format = "q4_1"',
        ),
        "back_float": (f"{MATRIX.format('i8')}, {SCALAR.format('f32')}", "relax.dequantize %x, %s, %z dtype = f64"),
    }
)
SHAPES = ((0, 3), (1, 1), (5, 7))


def _quantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray, dtype: str) -> np.ndarray:
    info = np.iinfo(DTYPES[dtype])
    places = np.round(x.astype(np.float32) / scale.astype(np.float32)).astype(np.float64) + zero
    return np.clip(places, info.min, np.nextafter(float(info.max), 0) if dtype == "i64" else info.max).astype(
        DTYPES[dtype]
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_quantize(dtype: str, shape: tuple[int, int]):
    x, scale, zero = random("f32", *shape, low=-9, high=9), np.asarray(0.0625, np.float32), np.asarray(-3, np.int8)
    PROGRAMS.check(dtype, [x, scale, zero], _quantized(x, scale, zero, dtype))
    large = np.array([[1e30, -1e30, 0.09375, -0.03125]], np.float32)
    PROGRAMS.check(dtype, [large, scale, zero], _quantized(large, scale, zero, dtype))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_scale_for_each_place(shape: tuple[int, int]):
    x, scale = random("f32", *shape, low=-9, high=9), random("f32", shape[1], seed=1, low=0.125, high=2)
    zero = random("i8", shape[1], seed=2)
    PROGRAMS.check("columns", [x, scale, zero], _quantized(x, scale, zero, "i8"))
    y, steps = random("f16", *shape), random("f16", shape[0], 1, seed=3, low=0.125, high=1)
    one = np.array([100], np.int32)
    PROGRAMS.check("rows", [y, steps.reshape(-1), one], _quantized(y, steps, one, "ui8"))
    q = random("i8", *shape, low=-128, high=127)
    expected = (q.astype(np.float32) - zero) * scale
    PROGRAMS.check("back_columns", [q, scale, zero], expected.astype(np.float16))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_dequantize(dtype: str, shape: tuple[int, int]):
    x, zero = random(dtype, *shape, low=-100, high=100), np.asarray(100, DTYPES[dtype])
    scale = np.asarray(0.3, np.float32)
    expected = (wide(x).astype(np.int64) - 100).astype(np.float32) * scale
    PROGRAMS.check(f"back_{dtype}", [x, scale, zero], expected)
    if dtype == "i8":
        origin = np.asarray(0.5, np.float32)
        PROGRAMS.check("back_float", [x, scale, origin], (x - 0.5) * np.float64(scale), Tolerance(1e-12, 1e-12))


def _packed(name: str, rows: int, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """Random blocks with scales that are not too large, and the numbers that they stand for."""
    kind = next(kind for kind in gguf.GGMLQuantizationType if kind.name.lower() == name)
    packed = np.random.default_rng(rows).integers(0, 256, (rows, 4000, FORMATS[name].bytes), np.uint8)
    with np.errstate(all="ignore"):
        numbers = gguf.quants.dequantize(packed.reshape(-1, FORMATS[name].bytes), kind)
    tame = np.isfinite(numbers).all(-1) & (np.abs(numbers).max(-1, initial=0) < 1e4)
    chosen = np.flatnonzero(tame)[: rows * blocks]
    assert len(chosen) == rows * blocks
    found = packed.reshape(-1, FORMATS[name].bytes)[chosen]
    return found.reshape(rows, -1), numbers[chosen].reshape(rows, -1)


@each([name for name in FORMATS if not name.endswith("_f32")])
def test_dequantize_blocks(name: str):
    for rows, blocks in ((3, 2), (1, 1)):
        packed, numbers = _packed(name, rows, blocks)
        expected = numbers.astype(np.float16) if name == "q5_1" else numbers
        PROGRAMS.check(
            f"blocks_{name}",
            [
                packed,
            ],
            expected,
            Tolerance(0, 0),
        )


def test_rows_are_taken_before_they_are_decoded():
    packed, numbers = _packed("q4_1", 5, 3)
    index = np.array([4, 0, 4, -1])
    PROGRAMS.check("rows_of_blocks", [packed, index], numbers[index], Tolerance(0, 0))


@each(["u4_f32", "u8_f32"])
def test_dequantize_blocks_with_scales_of_32_bits(name: str):
    rng = np.random.default_rng(0)
    bits = int(name[1])
    blocks = encode_integers(
        rng.integers(0, 1 << bits, (3, 64)), rng.standard_normal((3, 2)), rng.integers(0, 1 << bits, (3, 2)), bits
    )
    PROGRAMS.check(f"blocks_{name}", [blocks.packed], blocks.decoded(), Tolerance(0, 0))
