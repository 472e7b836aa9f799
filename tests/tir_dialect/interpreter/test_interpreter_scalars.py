"""Scalar arithmetic against NumPy, dtype by dtype, at the values where machines differ from mathematics."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.support.tir import run_text

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SIGNED = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
UNSIGNED = {"ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}

BINARY = """
tir.prim_func @f[%n](%X: !tir.buffer<[n], {source}>, %Y: !tir.buffer<[n], {source}>, %Z: !tir.buffer<[n], {target}>) {{
  tir.for (%i) in (%n) {{
    %x = tir.load %X[%i]
    %y = tir.load %Y[%i]
    {body}
    tir.store %z, %Z[%i]
  }}
}}
"""


def binary(body, x, y, source, target=None, out=None):
    out = np.empty_like(x) if out is None else out
    run_text(BINARY.format(source=source, target=target or source, body=body), x, y, out)
    return out


def integers(dtype, count=40):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max], dtype)
    return np.concatenate([edges, rng.integers(info.min, info.max, count, dtype, endpoint=True)])


def floats(dtype, count=40):
    rng = np.random.default_rng(2)
    edges = [0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 3.0, np.inf, -np.inf, np.nan, 1e-4, 3e4]
    return np.concatenate([edges, rng.normal(0, 10, count)]).astype(dtype)


def assert_same(got, expected):
    """Equal, or both NaN; of any dtype."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype.kind not in "iub":
        got, expected = got.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(got, expected)


def pairs(values):
    return np.repeat(values, len(values)), np.tile(values, len(values))


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize(
    ("op", "reference"),
    [
        ("arith.addi", np.add),
        ("arith.subi", np.subtract),
        ("arith.muli", np.multiply),
        ("arith.minsi", np.minimum),
        ("arith.maxsi", np.maximum),
        ("arith.andi", np.bitwise_and),
        ("arith.ori", np.bitwise_or),
        ("arith.xori", np.bitwise_xor),
    ],
)
def test_signed_integers_wrap(name, op, reference):
    x, y = pairs(integers(SIGNED[name], 10))
    with np.errstate(all="ignore"):
        assert_same(binary(f"%z = {op} %x, %y : {name}", x, y, name), reference(x, y))


@pytest.mark.parametrize("name", SIGNED)
def test_signed_division(name):
    x, y = pairs(integers(SIGNED[name], 10))
    x, y = x[y != 0], y[y != 0]
    keep = ~((y == -1) & (x == np.iinfo(x.dtype).min))
    x, y = x[keep], y[keep]
    quotient = np.array(
        [int(abs(int(a)) // abs(int(b))) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y, strict=True)]
    )
    assert_same(binary(f"%z = arith.divsi %x, %y : {name}", x, y, name), quotient)
    rest = [int(a) - int(q) * int(b) for a, b, q in zip(x, y, quotient, strict=True)]
    assert_same(binary(f"%z = arith.remsi %x, %y : {name}", x, y, name), rest)
    assert_same(binary(f"%z = arith.floordivsi %x, %y : {name}", x, y, name), x // y)
    ceil = [-(-int(a) // int(b)) for a, b in zip(x, y, strict=True)]
    assert_same(binary(f"%z = arith.ceildivsi %x, %y : {name}", x, y, name), ceil)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers(name):
    scalar = name.replace("u", "")
    x, y = pairs(integers(UNSIGNED[name], 10))
    assert_same(binary(f"%z = arith.addi %x, %y : {scalar}", x, y, name), x + y)
    assert_same(binary(f"%z = arith.maxui %x, %y : {scalar}", x, y, name), np.maximum(x, y))
    x, y = x[y != 0], y[y != 0]
    assert_same(binary(f"%z = arith.divui %x, %y : {scalar}", x, y, name), x // y)
    assert_same(binary(f"%z = arith.remui %x, %y : {scalar}", x, y, name), x % y)


@pytest.mark.parametrize("name", ["i8", "i32", "ui8", "ui32"])
def test_shifts(name):
    scalar, dtype = name.replace("u", ""), (SIGNED | UNSIGNED)[name]
    x = integers(dtype, 10)
    y = np.arange(len(x), dtype=dtype) % (8 * x.itemsize)
    right = "arith.shrui" if name.startswith("u") else "arith.shrsi"
    assert_same(binary(f"%z = {right} %x, %y : {scalar}", x, y, name), x >> y)
    assert_same(binary(f"%z = arith.shli %x, %y : {scalar}", x, y, name), x << y)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    ("op", "reference"),
    [
        ("arith.addf", np.add),
        ("arith.subf", np.subtract),
        ("arith.mulf", np.multiply),
        ("arith.divf", np.divide),
        ("arith.maximumf", np.maximum),
        ("arith.minimumf", np.minimum),
        ("arith.maxnumf", np.fmax),
        ("arith.minnumf", np.fmin),
    ],
)
def test_floats_round_to_their_type(name, op, reference):
    x, y = pairs(floats(FLOATS[name], 10))
    with np.errstate(all="ignore"):
        expected = reference(x, y)
    assert expected.dtype == x.dtype
    assert_same(binary(f"%z = {op} %x, %y : {name}", x, y, name), expected)


@pytest.mark.parametrize("op", ["maximumf", "minimumf"])
def test_signed_zeros_are_ordered(op):
    x, y = np.array([0.0, -0.0], np.float32), np.array([-0.0, 0.0], np.float32)
    result = binary(f"%z = arith.{op} %x, %y : f32", x, y, "f32")
    assert list(np.signbit(result)) == [op == "minimumf"] * 2


PREDICATES = {
    "oeq": lambda x, y: x == y,
    "ogt": lambda x, y: x > y,
    "oge": lambda x, y: x >= y,
    "olt": lambda x, y: x < y,
    "ole": lambda x, y: x <= y,
    "one": lambda x, y: (x < y) | (x > y),
    "ord": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
    "ueq": lambda x, y: ~((x < y) | (x > y)),
    "ugt": lambda x, y: ~(x <= y),
    "uge": lambda x, y: ~(x < y),
    "ult": lambda x, y: ~(x >= y),
    "ule": lambda x, y: ~(x > y),
    "une": lambda x, y: x != y,
    "uno": lambda x, y: np.isnan(x) | np.isnan(y),
}


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparison_of_floats(predicate):
    x, y = pairs(floats(np.float32, 5))
    out = np.empty(x.shape, np.bool_)
    binary(f"%z = arith.cmpf {predicate}, %x, %y : f32", x, y, "f32", "i1", out)
    assert_same(out, PREDICATES[predicate](x, y))


@pytest.mark.parametrize(
    ("predicate", "reference"),
    [("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater)],
)
@pytest.mark.parametrize("name", ["i16", "ui16"])
def test_comparison_of_integers(predicate, reference, name):
    sign = "" if predicate in ("eq", "ne") else name[0].replace("i", "s")
    x, y = pairs(integers((SIGNED | UNSIGNED)[name], 5))
    out = np.empty(x.shape, np.bool_)
    binary(f"%z = arith.cmpi {sign}{predicate}, %x, %y : i16", x, y, name, "i1", out)
    assert_same(out, reference(x, y))


MATH = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "roundeven": np.rint, "absf": np.abs,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": lambda x: np.where(np.isfinite(x), np.copysign(np.floor(np.abs(x) + 0.5), x), x),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", MATH)
@pytest.mark.parametrize("name", FLOATS)
def test_math_functions(function, name):
    x = floats(FLOATS[name])
    with np.errstate(all="ignore"):
        expected = MATH[function](x.astype(np.float64)).astype(x.dtype)
    result = binary(f"%z = math.{function} %x : {name}", x, x, name)
    tolerance = {"f64": 1e-14}.get(name, 0.0)
    np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=tolerance)


def test_erf_at_known_values():
    x = np.array([0.0, 1.0, -1.0, np.inf, np.nan], np.float64)
    result = binary("%z = math.erf %x : f64", x, x, "f64")
    np.testing.assert_allclose(result, [0.0, 0.8427007929497149, -0.8427007929497149, 1.0, np.nan], rtol=1e-15)


@pytest.mark.parametrize(
    ("function", "reference"), [("powf", np.power), ("atan2", np.arctan2), ("copysign", np.copysign)]
)
def test_binary_math_functions(function, reference):
    x, y = pairs(floats(np.float32, 5))
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    assert_same(binary(f"%z = math.{function} %x, %y : f32", x, y, "f32"), expected)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_fma_rounds_once(name):
    dtype = FLOATS[name]
    step = np.finfo(dtype).eps
    x = np.array([1 + step, 1.0, np.inf, 3.0, 0.1], dtype)
    y = np.array([1 + step, 1.0, 0.0, -2.0, 10.0], dtype)
    result = binary(f"%m = arith.constant -1.0 : {name} %z = math.fma %x, %y, %m : {name}", x, y, name)
    assert np.isnan(result[2])
    for a, b, got in zip(x[[0, 1, 3, 4]], y[[0, 1, 3, 4]], result[[0, 1, 3, 4]], strict=True):
        error = abs(Fraction(float(a)) * Fraction(float(b)) - 1 - Fraction(float(got)))
        assert 2 * error <= Fraction(float(np.spacing(abs(got))))


@pytest.mark.parametrize(
    ("op", "reference"),
    [
        ("ctpop", lambda v: v.bit_count()),
        ("ctlz", lambda v: 8 - v.bit_length()),
        ("cttz", lambda v: 8 if v == 0 else (v & -v).bit_length() - 1),
    ],
)
def test_bit_counts(op, reference):
    x = np.arange(256).astype(np.uint8)
    expected = [reference(int(v)) for v in x]
    assert_same(binary(f"%z = math.{op} %x : i8", x, x, "ui8"), expected)


CASTS = [
    ("arith.extsi %x : i8 to i32", "i8", "i32"),
    ("arith.extui %x : i8 to i32", "ui8", "i32"),
    ("arith.trunci %x : i32 to i8", "i32", "i8"),
    ("arith.sitofp %x : i32 to f32", "i32", "f32"),
    ("arith.uitofp %x : i32 to f32", "ui32", "f32"),
    ("arith.sitofp %x : i64 to f32", "i64", "f32"),
    ("arith.sitofp %x : i16 to bf16", "i16", "bf16"),
    ("arith.uitofp %x : i8 to f16", "ui8", "f16"),
    ("arith.extf %x : f16 to f64", "f16", "f64"),
    ("arith.truncf %x : f64 to f32", "f64", "f32"),
    ("arith.truncf %x : f32 to f16", "f32", "f16"),
    ("arith.truncf %x : f32 to bf16", "f32", "bf16"),
]
ALL = FLOATS | SIGNED | UNSIGNED


@pytest.mark.parametrize(("cast", "source", "target"), CASTS)
def test_casts(cast, source, target):
    x = floats(FLOATS[source]) if source in FLOATS else integers(ALL[source])
    with np.errstate(all="ignore"):
        expected = x.astype(ALL[target])
    out = np.empty(x.shape, ALL[target])
    assert_same(binary(f"%z = {cast}", x, x, source, target, out), expected)


def test_float_to_integer_rounds_towards_zero_and_saturates():
    x = np.array([1.9, -1.9, 300.0, -300.0, np.nan, np.inf, -np.inf, 0.0], np.float32)
    out = np.empty(x.shape, np.int8)
    binary("%z = arith.fptosi %x : f32 to i8", x, x, "f32", "i8", out)
    assert_same(out, [1, -1, 127, -128, 0, 127, -128, 0])
    out = np.empty(x.shape, np.uint8)
    binary("%z = arith.fptoui %x : f32 to i8", x, x, "f32", "ui8", out)
    assert_same(out, [1, 0, 255, 0, 0, 255, 0, 0])


def test_bool_casts():
    x = np.array([True, False])
    for cast, target, expected in [
        ("arith.extui %x : i1 to i8", "i8", [1, 0]),
        ("arith.extsi %x : i1 to i8", "i8", [-1, 0]),
        ("arith.uitofp %x : i1 to f32", "f32", [1.0, 0.0]),
    ]:
        out = np.empty(2, ALL[target])
        binary(f"%z = {cast}", x, x, "i1", target, out)
        assert_same(out, expected)


def test_bitcast():
    x = floats(np.float32)
    out = np.empty(x.shape, np.int32)
    binary("%z = arith.bitcast %x : f32 to i32", x, x, "f32", "i32", out)
    assert_same(out, x.view(np.int32))


def test_select_and_index_arithmetic():
    text = """
    tir.prim_func @f[%n](%Z: !tir.buffer<[n], i64>) {
      %c3 = arith.constant 3 : index
      %c0 = arith.constant 0 : index
      tir.for (%i) in (%n) {
        %r = arith.remsi %i, %c3 : index
        %z = arith.cmpi eq, %r, %c0 : index
        %minus = arith.subi %c0, %i : index
        %v = arith.select %z, %i, %minus : index
        %w = arith.index_cast %v : index to i64
        tir.store %w, %Z[%i]
      }
    }
    """
    out = np.empty(7, np.int64)
    run_text(text, out)
    assert list(out) == [0, -1, -2, 3, -4, -5, 6]


@pytest.mark.parametrize("name", ["i8", "i64"])
def test_what_numpy_says_of_division_by_zero_and_overflow(name):
    low = np.iinfo(SIGNED[name]).min
    x, y = np.array([5, -5, low, 0, low], SIGNED[name]), np.array([0, 0, 0, 0, -1], SIGNED[name])
    with np.errstate(all="ignore"):
        quotients, rests = x // y, x % y
    for op in ("divsi", "floordivsi", "ceildivsi"):
        assert_same(binary(f"%z = arith.{op} %x, %y : {name}", x, y, name), quotients)
    assert_same(binary(f"%z = arith.remsi %x, %y : {name}", x, y, name), rests)
    for op in ("divui", "remui", "ceildivui"):
        assert_same(binary(f"%z = arith.{op} %x, %y : {name}", x[:4], y[:4], name), np.zeros(4))
