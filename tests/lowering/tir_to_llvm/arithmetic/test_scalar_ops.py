"""Every op of arith and math, on every type it takes, in every kind of loop, against the reference."""

import math
from collections.abc import Sequence
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import find, parse
from tests.support.sweeps import in_turn

pytestmark = pytest.mark.sampled(6)

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
COUNT = 45
ALL_LOOPS = ["serial", "vectorized", "parallel"]
LOOPS = [*ALL_LOOPS[:2], pytest.param("parallel", marks=pytest.mark.slow)]
"""What runs in parallel computes as what is serial, whatever the op: a quick run shows it with a few."""


def with_types(ops: Sequence[str]) -> list[object]:
    """Pairs of an op and a type of floats: code for those of 16 bits is that of `f32` between conversions."""
    return [*product(ops, ["f32", "f64"]), *in_turn(ops, ["f16", "bf16"])]


def elementwise(op: str, inputs: list[str], output: str, loop: str) -> str:
    """`out[i] = op(x0[i], x1[i], ...)`; `op` uses %x0, %x1 and defines %r."""
    params = [f"%X{k}: !tir.buffer<[{COUNT}], {type_}>" for k, type_ in enumerate(inputs)]
    loads = "\n".join(f"    %x{k} = tir.load %X{k}[%i]" for k in range(len(inputs)))
    kind = "" if loop == "serial" else loop
    return f"""
tir.prim_func @f({", ".join(params)}, %Y: !tir.buffer<[{COUNT}], {output}>) {{
  %count = arith.constant {COUNT} : index
  tir.for {kind} (%i) in (%count) {{
{loads}
    {op}
    tir.store %r, %Y[%i]
  }}
}}"""


def float_values(dtype: type, seed: int, special: bool = True) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(COUNT) * 10.0 ** rng.integers(-3, 4, COUNT)
    if special:
        edges = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-7, 65504.0, 3.0]
        values[rng.permutation(COUNT)[: len(edges)]] = edges
    return values.astype(dtype)


def integer_values(dtype: type, seed: int, low: int | None = None, high: int | None = None) -> np.ndarray:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    low, high = info.min if low is None else low, info.max if high is None else high
    values = rng.integers(low, high, COUNT, dtype=dtype, endpoint=True)
    small = rng.permutation(COUNT)[:20]
    values[small] = rng.integers(max(low, -5), min(high, 5), 20, endpoint=True)
    edges = [edge for edge in (info.min, info.max, 0, -1, 1) if low <= edge <= high]
    values[rng.permutation(COUNT)[: len(edges)]] = edges
    return values


@pytest.mark.sampled(12)
@pytest.mark.parametrize("loop", ALL_LOOPS)
@pytest.mark.parametrize(
    ("op", "type_"), with_types(["addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"])
)
def test_float_arithmetic(op: str, type_: str, loop: str, same_as_interpreter):
    text = elementwise(f"%r = arith.{op} %x0, %x1 : {type_}", [type_, type_], type_, loop)
    x, y = float_values(FLOATS[type_], 1), float_values(FLOATS[type_], 2)
    same_as_interpreter(text, [x, y, np.zeros_like(x)], {})


@pytest.mark.sampled(24)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize(
    "op", ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui", "shli", "shrsi", "shrui"]
)
def test_integer_arithmetic(op: str, type_: str, loop: str, same_as_interpreter):
    text = elementwise(f"%r = arith.{op} %x0, %x1 : {type_}", [type_, type_], type_, loop)
    x = integer_values(INTEGERS[type_], 1)
    y = integer_values(INTEGERS[type_], 2, 0, 70) if op.startswith("sh") else integer_values(INTEGERS[type_], 2)
    same_as_interpreter(text, [x, y, np.zeros_like(x)], {})


DIVISIONS = ["divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("op", DIVISIONS)
def test_integer_division(op: str, type_: str, loop: str, same_as_interpreter):
    """What is divided by 0 gives 0, the smallest integer by -1 itself; nothing traps."""
    text = elementwise(f"%r = arith.{op} %x0, %x1 : {type_}", [type_, type_], type_, loop)
    x, y = integer_values(INTEGERS[type_], 3), integer_values(INTEGERS[type_], 4)
    x[:2], y[:4] = np.iinfo(x.dtype).min, (-1, 0, 0, 0)
    same_as_interpreter(text, [x, y, np.zeros_like(x)], {})


@pytest.mark.sampled(6)
@pytest.mark.parametrize("divisor", [0, 1, -1, 2, -2, 3, -3, 8, 100])
@pytest.mark.parametrize("op", DIVISIONS)
def test_division_by_constants(op: str, divisor: int, same_as_interpreter):
    op = f"%c = arith.constant {divisor} : i32\n    %r = arith.{op} %x0, %c : i32"
    x = integer_values(np.int32, 5)
    same_as_interpreter(elementwise(op, ["i32"], "i32", "serial"), [x, np.zeros_like(x)], {})


@pytest.mark.sampled(6)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", ["i8", "i64"])
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_integer_comparisons(predicate: str, type_: str, loop: str, same_as_interpreter):
    text = elementwise(f"%r = arith.cmpi {predicate}, %x0, %x1 : {type_}", [type_, type_], "i1", loop)
    x, y = integer_values(INTEGERS[type_], 1), integer_values(INTEGERS[type_], 2)
    y[::4] = x[::4]
    same_as_interpreter(text, [x, y, np.zeros(COUNT, bool)], {})


FLOAT_PREDICATES = [
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("predicate", "type_"), in_turn(FLOAT_PREDICATES, [*FLOATS], every=2))
def test_float_comparisons(predicate: str, type_: str, loop: str, same_as_interpreter):
    text = elementwise(f"%r = arith.cmpf {predicate}, %x0, %x1 : {type_}", [type_, type_], "i1", loop)
    x, y = float_values(FLOATS[type_], 1), float_values(FLOATS[type_], 2)
    y[::4] = x[::4]
    same_as_interpreter(text, [x, y, np.zeros(COUNT, bool)], {})


@pytest.mark.parametrize("loop", ALL_LOOPS)
@pytest.mark.parametrize("type_", ["bf16", "f32", "i8", "i1"])
def test_select_and_logic(type_: str, loop: str, same_as_interpreter):
    text = elementwise(f"%r = arith.select %x0, %x1, %x2 : {type_}", ["i1", type_, type_], type_, loop)
    rng = np.random.default_rng(0)
    condition = rng.integers(0, 2, COUNT).astype(bool)
    dtype = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "i1": bool}[type_]
    x, y = (rng.integers(0, 2, COUNT).astype(dtype) for _ in range(2))
    same_as_interpreter(text, [condition, x, y, np.zeros_like(x)], {})


CONVERSIONS = (
    [("extf", "f16", "f32"), ("extf", "bf16", "f32"), ("extf", "bf16", "f64"), ("extf", "f32", "f64")]
    + [("truncf", "f32", "f16"), ("truncf", "f32", "bf16"), ("truncf", "f64", "f32"), ("truncf", "f64", "f16")]
    + [("fptosi", f, i) for f in FLOATS for i in INTEGERS]
    + [("fptoui", f, i) for f in FLOATS for i in INTEGERS]
    + [("sitofp", i, f) for f in FLOATS for i in INTEGERS]
    + [("uitofp", i, f) for f in FLOATS for i in INTEGERS]
    + [("extsi", "i8", "i32"), ("extui", "i8", "i64"), ("trunci", "i64", "i8"), ("extui", "i1", "i8")]
    + [("uitofp", "i1", "f32"), ("bitcast", "f32", "i32"), ("bitcast", "bf16", "i16"), ("bitcast", "i16", "f16")]
)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("op", "source", "target"), CONVERSIONS)
def test_conversions(op: str, source: str, target: str, loop: str, same_as_interpreter):
    text = elementwise(f"%r = arith.{op} %x0 : {source} to {target}", [source], target, loop)
    types = {**FLOATS, **INTEGERS, "i1": np.bool_}
    if source in FLOATS:
        x = float_values(FLOATS[source], 6)
    elif source == "i1":
        x = np.arange(COUNT) % 3 == 0
    else:
        x = integer_values(INTEGERS[source], 6)
    same_as_interpreter(text, [x, np.zeros(COUNT, types[target])], {})


@pytest.mark.parametrize("loop", ALL_LOOPS)
@pytest.mark.parametrize("type_", FLOATS)
def test_negation_and_constants(type_: str, loop: str, same_as_interpreter):
    op = f"%c = arith.constant 0.3 : {type_}\n    %n = arith.negf %x0 : {type_}\n    %r = arith.addf %n, %c : {type_}"
    x = float_values(FLOATS[type_], 8)
    same_as_interpreter(elementwise(op, [type_], type_, loop), [x, np.zeros_like(x)], {})


EXACT_MATH = ["absf", "ceil", "floor", "round", "roundeven", "trunc", "sqrt"]
CLOSE_MATH = [
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
    *("cosh", "tanh", "asinh", "acosh", "atanh", "erf", "cbrt", "rsqrt"),
]
TOLERANCE = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-6, "f64": 1e-14}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("op", "type_"), with_types(EXACT_MATH))
def test_exact_math(op: str, type_: str, loop: str, same_as_interpreter):
    x = float_values(FLOATS[type_], 9)
    same_as_interpreter(elementwise(f"%r = math.{op} %x0 : {type_}", [type_], type_, loop), [x, np.zeros_like(x)], {})


@pytest.mark.sampled(24)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("op", "type_"), with_types(CLOSE_MATH))
def test_math(op: str, type_: str, loop: str, close_to_interpreter):
    x = np.linspace(-3, 3, COUNT).astype(FLOATS[type_])
    text = elementwise(f"%r = math.{op} %x0 : {type_}", [type_], type_, loop)
    close_to_interpreter(text, [x, np.zeros_like(x)], {}, rtol=TOLERANCE[type_])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("op", "type_"), with_types(["powf", "atan2", "copysign"]))
def test_binary_math(op: str, type_: str, loop: str, close_to_interpreter):
    x, y = np.linspace(0.1, 3, COUNT).astype(FLOATS[type_]), np.linspace(-2, 2, COUNT).astype(FLOATS[type_])
    text = elementwise(f"%r = math.{op} %x0, %x1 : {type_}", [type_, type_], type_, loop)
    close_to_interpreter(text, [x, y, np.zeros_like(x)], {}, rtol=TOLERANCE[type_])


@pytest.mark.parametrize("loop", ALL_LOOPS)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_fma(type_: str, loop: str, same_as_interpreter):
    x, y, z = (float_values(FLOATS[type_], seed) for seed in range(3))
    text = elementwise(f"%r = math.fma %x0, %x1, %x2 : {type_}", [type_] * 3, type_, loop)
    same_as_interpreter(text, [x, y, z, np.zeros_like(x)], {})


def test_what_may_be_fused_is_left_to_the_processor():
    text = elementwise("%r = math.fma %x0, %x0, %x0 fastmath<contract> : f32", ["f32"], "f32", "serial")
    lowered = llvm_text(lower_prim_funcs([find(parse(text))], LoweringOptions()))
    assert "llvm.fmuladd.f32" in lowered
    assert "llvm.fma." not in lowered


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("op", ["absi", "ctlz", "cttz", "ctpop"])
def test_integer_math(op: str, type_: str, loop: str, same_as_interpreter):
    x = integer_values(INTEGERS[type_], 7)
    same_as_interpreter(elementwise(f"%r = math.{op} %x0 : {type_}", [type_], type_, loop), [x, np.zeros_like(x)], {})


@pytest.mark.parametrize("loop", ALL_LOOPS)
@pytest.mark.parametrize("type_", INTEGERS)
def test_integer_power(type_: str, loop: str, same_as_interpreter):
    """Of bases of all sizes and small ones, with a few large exponents; what overflows wraps."""
    x, y = integer_values(INTEGERS[type_], 7), integer_values(INTEGERS[type_], 8, -3, 9)
    x[::3], y[::19] = integer_values(INTEGERS[type_], 9, -2, 3)[::3], 100
    text = elementwise(f"%r = math.ipowi %x0, %x1 : {type_}", [type_, type_], type_, loop)
    same_as_interpreter(text, [x, y, np.zeros_like(x)], {})


@pytest.mark.parametrize("exponent", [-2, -1, 0, 1, 2, 3, 7, 16, 17, 100])
def test_integer_power_with_a_known_exponent(exponent: int, same_as_interpreter):
    x = np.concatenate([integer_values(np.int32, 7, -9, 9)[: COUNT // 2], integer_values(np.int32, 7)[COUNT // 2 :]])
    op = f"%c = arith.constant {exponent} : i32\n    %r = math.ipowi %x0, %c : i32"
    same_as_interpreter(elementwise(op, ["i32"], "i32", "vectorized"), [x, np.zeros_like(x)], {})


def test_integer_powers_of_lanes():
    """Are computed side by side, as long as any lane has a digit; products with a small exponent are written out."""
    text = elementwise("%r = math.ipowi %x0, %x1 : i32", ["i32", "i32"], "i32", "vectorized")
    assert "llvm.vector.reduce.or" in llvm_text(lower_prim_funcs([find(parse(text))], LoweringOptions()))
    op = "%c = arith.constant 10 : i32\n    %r = math.ipowi %x0, %c : i32"
    text = llvm_text(lower_prim_funcs([find(parse(elementwise(op, ["i32"], "i32", "serial")))], LoweringOptions()))
    assert text.count(" mul i32 ") == 4


@pytest.mark.parametrize("loop", ALL_LOOPS)
def test_float_power_of_integers(loop: str, close_to_interpreter):
    x, y = np.linspace(-2, 2, COUNT, dtype="f4"), np.arange(COUNT, dtype="i4") % 7 - 3
    text = elementwise("%r = math.fpowi %x0, %x1 : f32, i32", ["f32", "i32"], "f32", loop)
    x[x == 0] = 1
    close_to_interpreter(text, [x, y, np.zeros_like(x)], {}, rtol=1e-6)


@pytest.mark.parametrize("loop", ALL_LOOPS)
@pytest.mark.parametrize("type_", ["ui8", "ui16", "ui32", "ui64"])
def test_unsigned_buffers(type_: str, loop: str, same_as_interpreter):
    bits = type_[1:]
    dtype = np.dtype(f"uint{bits[1:]}")
    x = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, COUNT, dtype=dtype, endpoint=True)
    op = f"%c = arith.constant 3 : {bits}\n    %r = arith.divui %x0, %c : {bits}"
    same_as_interpreter(elementwise(op, [type_], type_, loop), [x, np.zeros_like(x)], {})
    wide = elementwise(f"%r = arith.uitofp %x0 : {bits} to f64", [type_], "f64", loop)
    same_as_interpreter(wide, [x, np.zeros(COUNT)], {})
