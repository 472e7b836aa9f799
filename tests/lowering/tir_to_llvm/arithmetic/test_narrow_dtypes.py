"""Floats of 8 bits and less, integers below 8 bits: conversion, arithmetic and memory, with the bits of `ml_dtypes`."""

import numpy as np
import pytest

from tests.support.narrow import INTEGERS, NARROW, SMALL_FLOATS, converted, every_value, f32_sample, same_bits
from tests.support.sweeps import in_turn
from tir_dialect import dtypes
from tir_dialect.dtypes import numpy_dtype, parse_dtype

pytestmark = pytest.mark.sampled(6)

LOOPS = ["serial", "vectorized"]


LANES = 32
"""Of a vectorized loop: several registers of f32. LLVM takes ten times as long for the widest that there is."""


def elementwise(count: int, body: str, inputs: list[str], output: str, loop: str, lanes: int = LANES) -> str:
    """`out[i] = f(x0[i], x1[i], ...)`, where `body` defines %r; a vectorized loop has so many lanes, the last fewer."""
    params = [f"%X{k}: !tir.buffer<[{count}], {type_}>" for k, type_ in enumerate(inputs)]
    loads = "\n".join(f"    %x{k} = tir.load %X{k}[%i]" for k in range(len(inputs)))
    code = f"{loads}\n    {body}\n    tir.store %r, %Y[%i]"
    parts = (
        [(0, 1, count)] if loop == "serial" else [(0, count // lanes, lanes), (count - count % lanes, 1, count % lanes)]
    )
    kind = "" if loop == "serial" else loop
    loops = "".join(
        f"""
  %start{start} = arith.constant {start} : index
  %rows{start} = arith.constant {rows} : index
  %width{start} = arith.constant {width} : index
  tir.for (%row) in (%rows{start}) {{
    %skipped = arith.muli %row, %width{start} : index
    %first = arith.addi %start{start}, %skipped : index
    tir.for {kind} (%lane) in (%width{start}) {{
    %i = arith.addi %first, %lane : index
{code}
    }}
  }}"""
        for start, rows, width in parts
        if rows * width
    )
    return f"tir.prim_func @f({', '.join(params)}, %Y: !tir.buffer<[{count}], {output}>) {{{loops}\n}}"


@pytest.fixture
def computed(both):
    """Runs an elementwise kernel both ways on arrays; the native result, once the two have the same bits."""

    def run(
        body: str, inputs: list[str], output: str, arrays: list[np.ndarray], loop: str, lanes: int = LANES
    ) -> np.ndarray:
        text = elementwise(arrays[0].size, body, inputs, output, loop, lanes)
        result = np.zeros(arrays[0].size, numpy_dtype(parse_dtype(output)))
        native, reference = both(text, [*arrays, result], {})
        assert same_bits(native[-1], reference[-1])
        return native[-1]

    return run


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", SMALL_FLOATS)
def test_every_small_float_is_exact_in_f32(type_: str, loop: str, computed):
    x = every_value(type_)
    result = computed(f"%r = arith.extf %x0 : {type_} to f32", [type_], "f32", [x], loop, lanes=x.size)
    assert same_bits(result, x.astype(np.float32))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", SMALL_FLOATS)
def test_f32_is_rounded_as_ml_dtypes_round(type_: str, loop: str, computed):
    x = f32_sample(type_, 2000)
    result = computed(f"%r = arith.truncf %x0 : f32 to {type_}", ["f32"], type_, [x], loop, lanes=x.size)
    assert same_bits(result, converted(x, type_), nans=True)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("source", "target"), in_turn(SMALL_FLOATS, [*SMALL_FLOATS, "f16", "bf16", "f64"], every=3))
def test_small_floats_become_each_other_and_halves(source: str, target: str, computed):
    x = every_value(source)
    wide = target if target == "f64" else "f32"
    body = f"%w = arith.extf %x0 : {source} to {wide}\n    "
    body += f"%r = arith.{'addf %w, %w : f64' if wide == target else f'truncf %w : f32 to {target}'}"
    result = computed(body, [source], target, [x], "vectorized")
    wide_x = x.astype(numpy_dtype(parse_dtype(wide)))
    assert same_bits(result, wide_x + wide_x if wide == target else converted(wide_x, target)), target


@pytest.mark.sampled(8)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("op", "type_"), in_turn(["addf", "subf", "mulf", "divf", "maximumf", "minimumf"], SMALL_FLOATS, every=3)
)
def test_arithmetic_is_that_of_f32_rounded_after_each_op(op: str, type_: str, loop: str, computed):
    values = every_value(type_)
    x = np.random.default_rng(1).permutation(np.tile(values, -(-300 // values.size)))
    y = np.random.default_rng(2).permutation(x)
    result = computed(f"%r = arith.{op} %x0, %x1 : {type_}", [type_, type_], type_, [x, y], loop)
    compute = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}.get(op)
    if compute is not None:
        with np.errstate(all="ignore"):
            assert same_bits(result, compute(x, y))


OTHER_OPS = [
    "%r = arith.negf %x0 : {0}",
    "%r = math.absf %x0 : {0}",
    "%r = math.floor %x0 : {0}",
    "%r = math.sqrt %x0 : {0}",
    "%c = arith.constant 1.5 : {0}\n    %r = arith.mulf %x0, %c : {0}",
    "%c = arith.cmpf ole, %x0, %x1 : {0}\n    %r = arith.select %c, %x0, %x1 : {0}",
    "%r = math.fma %x0, %x1, %x1 : {0}",
]


@pytest.mark.parametrize(("body", "type_"), in_turn(OTHER_OPS, SMALL_FLOATS, every=3))
def test_other_ops_of_small_floats(body: str, type_: str, computed):
    x = every_value(type_)
    computed(body.format(type_), [type_, type_], type_, [x, x[::-1].copy()], "vectorized")


@pytest.mark.parametrize("type_", SMALL_FLOATS)
def test_bits_of_small_floats(type_: str, computed):
    x, bits = every_value(type_), dtypes.lookup(parse_dtype(type_)).bits
    if bits in (4, 8):
        integers = computed(f"%r = arith.bitcast %x0 : {type_} to i{bits}", [type_], f"i{bits}", [x], "vectorized")
        np.testing.assert_array_equal(integers.view(np.uint8), x.view(np.uint8))
        result = computed(f"%r = arith.bitcast %x0 : i{bits} to {type_}", [f"i{bits}"], type_, [integers], "serial")
        assert same_bits(result, x)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("type_", "integer"), in_turn(SMALL_FLOATS, ["i2", "i4", "i8", "i32", "i64"]))
def test_integers_and_small_floats(integer: str, type_: str, computed):
    numbers = np.arange(-300, 300, 7).astype(numpy_dtype(parse_dtype(integer)))
    computed(f"%r = arith.sitofp %x0 : {integer} to {type_}", [integer], type_, [numbers], "vectorized")
    x = every_value(type_)
    computed(f"%r = arith.fptosi %x0 : {type_} to {integer}", [type_], integer, [x], "vectorized")
    computed(f"%r = arith.fptoui %x0 : {type_} to {integer}", [type_], integer, [x], "serial")


SIGNED = [name for name in INTEGERS if name.startswith("i")]
OPS = ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui", "shli", "shrsi", "shrui"]
DIVISIONS = ["divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", SIGNED)
@pytest.mark.parametrize("op", OPS + DIVISIONS)
def test_narrow_integers_wrap_around(op: str, type_: str, loop: str, computed):
    x, y = (grid.reshape(-1).copy() for grid in np.meshgrid(every_value(type_), every_value(type_)))
    result = computed(f"%r = arith.{op} %x0, %x1 : {type_}", [type_, type_], type_, [x, y], loop)
    assert (result.view(np.uint8) >> int(type_[1:]) == 0).all()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("type_", SIGNED)
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sge", "ult", "uge"])
def test_narrow_integers_compare(predicate: str, type_: str, loop: str, computed):
    x, y = (grid.reshape(-1).copy() for grid in np.meshgrid(every_value(type_), every_value(type_)))
    computed(f"%r = arith.cmpi {predicate}, %x0, %x1 : {type_}", [type_, type_], "i1", [x, y], loop)


@pytest.mark.parametrize("type_", SIGNED)
@pytest.mark.parametrize("op", ["extsi", "extui"])
def test_narrow_integers_are_extended_and_cut_off(op: str, type_: str, computed):
    x = every_value(type_)
    wide = computed(f"%r = arith.{op} %x0 : {type_} to i32", [type_], "i32", [x], "vectorized")
    assert wide.tolist() == (x if op == "extsi" else x.view(f"u{x.dtype.name}")).astype(np.int32).tolist()
    back = computed(f"%r = arith.trunci %x0 : i32 to {type_}", ["i32"], type_, [wide + 48], "vectorized")
    assert same_bits(back, x)


def test_upper_bits_of_bytes_count_for_nothing(computed):
    x = np.arange(256, dtype=np.uint8)
    for type_ in INTEGERS:
        scalar = type_.removeprefix("u")
        op = "extui" if type_.startswith("u") else "extsi"
        dtype = numpy_dtype(parse_dtype(type_))
        result = computed(f"%r = arith.{op} %x0 : {scalar} to i32", [type_], "i32", [x.view(dtype)], "vectorized")
        np.testing.assert_array_equal(result, x.view(dtype).astype(np.int32))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("type_", NARROW)
def test_vectors_with_masks(type_: str, both):
    text = f"""
tir.prim_func @f[%n](%X: !tir.buffer<[n], {type_}>, %Y: !tir.buffer<[n], {type_}>) {{
  %zero = arith.constant 0 : index
  %mask = vector.create_mask %n : vector<16xi1>
  %v = tir.load %X[%zero] mask %mask : vector<16x{type_.removeprefix("u")}>
  tir.store %v, %Y[%zero] mask %mask
}}"""
    for n in (0, 1, 7, 15):
        x = every_value(type_)[np.arange(n) % 4]
        native, reference = both(text, [x, np.zeros_like(x)], {"n": n})
        assert same_bits(native[1], reference[1])
        assert same_bits(native[1], x)
