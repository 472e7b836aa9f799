"""Conversions between all dtypes against NumPy, in every mode."""

import gguf
import numpy as np
import pytest
import tvm_ffi

from relax_dialect.builder import BlockBuilder
from tests.operators.support import DTYPES, Programs, Tolerance, random, wide
from tests.support.programs import IDENTICAL, run_everywhere
from tests.support.rules import each
from tests.support.sweeps import in_turn, turns
from tir_dialect.block_arrays import encode_integers
from tir_dialect.block_formats import FORMATS
from tir_dialect.dtypes import numpy_dtype, parse_dtype

LOSSES = [("i64", "i8"), ("i32", "ui16"), ("ui64", "i32"), ("i16", "ui64")]
ROUNDED = ("f16", "bf16", "f64", "i1")
NAMED = {f"{source}_{target}" for source, target in (*LOSSES, *(("f32", target) for target in ROUNDED))}
CONVERSIONS = [*turns(DTYPES, [*DTYPES], every=2)]
PROGRAMS = Programs(
    {
        f"{source}_{target}": (f"%x: !relax.tensor<[n], {source}>", f"relax.astype %x dtype = {target}")
        for source, target, _ in CONVERSIONS
    },
    {f"{source}_{target}" for source, target, quick in CONVERSIONS if not quick} - NAMED,
)


@pytest.mark.parametrize(("source", "target"), in_turn(DTYPES, [*DTYPES], every=2))
def test_conversion(source: str, target: str):
    """Values that both dtypes hold, but for fractions."""
    unsigned = target.startswith("ui")
    x = random(source, 20, low=0 if unsigned else -100, high=100)
    PROGRAMS.check(f"{source}_{target}", [x], x.astype(DTYPES[target]))
    PROGRAMS.check(f"{source}_{target}", [x[:0]], x[:0].astype(DTYPES[target]))


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


INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "i4", "ui4", "i2", "ui2")
REALS = ("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2")
SATURATED = Programs(
    {
        f"{source}_{target}": (f"%x: !relax.tensor<[n], {source}>", f"relax.astype %x dtype = {target}")
        for source in REALS
        for target in INTEGERS
    }
    | {
        f"folded_{target}": (
            "",
            "%c = relax.constant dense<[1.0e30, -1.0e30, -0.9, 128.0, 255.9]> : tensor<5xf32>;"
            f" relax.astype %c dtype = {target}",
        )
        for target in INTEGERS
    }
    | {"full": ("%s: !relax.shape<[n]>, %v: !relax.prim<f64>", "relax.full %s, %v dtype = i8")}
)


def _saturated(x: np.ndarray, target: str) -> np.ndarray:
    """Floats rounded towards zero, at the ends of the range where they are outside, and 0 for NaN."""
    bits, signed = int(target.lstrip("ui")), target.startswith("i")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def number(value: float) -> int:
        if value != value:
            return 0
        return low if value <= low else high if value >= high else int(value)

    numbers = [number(float(value)) for value in x]
    return np.array(numbers, np.int64 if signed else np.uint64).astype(numpy_dtype(parse_dtype(target)))


@pytest.mark.parametrize("source", REALS)
def test_floats_that_are_no_integers_of_a_dtype(source: str):
    """In scalar code, in vectors, and in constants."""
    near = [2.0**bits + by for bits in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64) for by in (-1, -0.5, 0, 1)]
    sizes = [0.0, 0.5, 0.9, 1.5, 1e30, 448.0, float("inf"), *near]
    kind = numpy_dtype(parse_dtype(source))
    with np.errstate(all="ignore"):
        x = np.array([*sizes, *(-size for size in sizes), float("nan")]).astype(kind)
    for target in INTEGERS:
        SATURATED.check(f"{source}_{target}", [x], _saturated(x, target), IDENTICAL)
        for single in (x[:1], x[6:7], x[-1:]):
            SATURATED.check(f"{source}_{target}", [single], _saturated(single, target), IDENTICAL)


def test_constants_that_are_no_integers_of_a_dtype():
    for target in INTEGERS:
        expected = _saturated(np.array([1e30, -1e30, -0.9, 128, 255.9]), target)
        SATURATED.check(f"folded_{target}", [], expected, IDENTICAL)
    for value, number in ((1e30, 127), (-1e30, -128), (float("-inf"), -128), (-1.5, -1)):
        SATURATED.check("full", [tvm_ffi.Shape([3]), value], np.full(3, number, np.int8), IDENTICAL)
    builder = BlockBuilder()
    with builder.function("main", {}):
        builder.emit_func_output(builder.const(np.array([300.0, -1.5, np.nan]), "ui8"))
    np.testing.assert_array_equal(run_everywhere(builder.get(), "main", [], IDENTICAL), [255, 0, 0])


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


MATRIX = "%x: !relax.tensor<[n, m], {}>"
SCALAR = "%s: !relax.tensor<[], f32>, %z: !relax.tensor<[], {}>"
COLUMNS = "%s: !relax.tensor<[m], f32>, %z: !relax.tensor<[m], i8>"
PACKED = "%p: !relax.tensor<[n, b], ui8>"
QUANTIZATION_INTEGERS = ("i8", "ui8", "i32", "i64")
QUANTIZATION_PROGRAMS = Programs(
    {
        **{
            d: (f"{MATRIX.format('f32')}, {SCALAR.format('i8')}", f"relax.quantize %x, %s, %z dtype = {d}")
            for d in QUANTIZATION_INTEGERS
        },
        "columns": (f"{MATRIX.format('f32')}, {COLUMNS}", "relax.quantize %x, %s, %z axis = 1 dtype = i8"),
        "rows": (
            f"{MATRIX.format('f16')}, %s: !relax.tensor<[k], f16>, %z: !relax.tensor<[1], i32>",
            "relax.quantize %x, %s, %z axis = 0 dtype = ui8",
        ),
        **{
            f"back_{d}": (f"{MATRIX.format(d)}, {SCALAR.format(d)}", "relax.dequantize %x, %s, %z dtype = f32")
            for d in QUANTIZATION_INTEGERS
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
@pytest.mark.parametrize("dtype", QUANTIZATION_INTEGERS)
def test_quantize(dtype: str, shape: tuple[int, int]):
    x, scale, zero = random("f32", *shape, low=-9, high=9), np.asarray(0.0625, np.float32), np.asarray(-3, np.int8)
    QUANTIZATION_PROGRAMS.check(dtype, [x, scale, zero], _quantized(x, scale, zero, dtype))
    large = np.array([[1e30, -1e30, 0.09375, -0.03125]], np.float32)
    QUANTIZATION_PROGRAMS.check(dtype, [large, scale, zero], _quantized(large, scale, zero, dtype))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_scale_for_each_place(shape: tuple[int, int]):
    x, scale = random("f32", *shape, low=-9, high=9), random("f32", shape[1], seed=1, low=0.125, high=2)
    zero = random("i8", shape[1], seed=2)
    QUANTIZATION_PROGRAMS.check("columns", [x, scale, zero], _quantized(x, scale, zero, "i8"))
    y, steps = random("f16", *shape), random("f16", shape[0], 1, seed=3, low=0.125, high=1)
    one = np.array([100], np.int32)
    QUANTIZATION_PROGRAMS.check("rows", [y, steps.reshape(-1), one], _quantized(y, steps, one, "ui8"))
    q = random("i8", *shape, low=-128, high=127)
    expected = (q.astype(np.float32) - zero) * scale
    QUANTIZATION_PROGRAMS.check("back_columns", [q, scale, zero], expected.astype(np.float16))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", QUANTIZATION_INTEGERS)
def test_dequantize(dtype: str, shape: tuple[int, int]):
    x, zero = random(dtype, *shape, low=-100, high=100), np.asarray(100, DTYPES[dtype])
    scale = np.asarray(0.3, np.float32)
    expected = (wide(x).astype(np.int64) - 100).astype(np.float32) * scale
    QUANTIZATION_PROGRAMS.check(f"back_{dtype}", [x, scale, zero], expected)
    if dtype == "i8":
        origin = np.asarray(0.5, np.float32)
        QUANTIZATION_PROGRAMS.check(
            "back_float", [x, scale, origin], (x - 0.5) * np.float64(scale), Tolerance(1e-12, 1e-12)
        )


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
        QUANTIZATION_PROGRAMS.check(
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
    QUANTIZATION_PROGRAMS.check("rows_of_blocks", [packed, index], numbers[index], Tolerance(0, 0))


@each(["u4_f32", "u8_f32"])
def test_dequantize_blocks_with_scales_of_32_bits(name: str):
    rng = np.random.default_rng(0)
    bits = int(name[1])
    blocks = encode_integers(
        rng.integers(0, 1 << bits, (3, 64)), rng.standard_normal((3, 2)), rng.integers(0, 1 << bits, (3, 2)), bits
    )
    QUANTIZATION_PROGRAMS.check(f"blocks_{name}", [blocks.packed], blocks.decoded(), Tolerance(0, 0))
