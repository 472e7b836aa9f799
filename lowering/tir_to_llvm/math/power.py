"""Powers of f32 and f64: at most 2 ulp off, with the special values of IEEE 754's `pow`."""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, i32, i64
from xdsl.ir import SSAValue

from lowering.llvm.builder.vector_types import like
from lowering.tir_to_llvm.math.avx512 import has_registers
from lowering.tir_to_llvm.math.floats import BINARY32, ROUNDING, Floats, doubles, floor, narrowed, widened
from lowering.tir_to_llvm.math.power_double import power_of_doubles
from lowering.tir_to_llvm.math.power_tables import power_by_table

LOG2 = (2.885390081790203, 0.961796673199871, 0.5770836115955518, 0.41167113416805334, 0.34075935878764974)
EXP2 = (
    0.6931471880739241,
    0.24022651086455518,
    0.05550356889846614,
    0.00961803039175304,
    0.0013390981753592939,
    0.00015469862933134074,
)

_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD


def log2(d: Floats, x: SSAValue) -> SSAValue:
    """The logarithm of an f64 that is not negative, with `-inf` at 0, `inf` at `inf` and NaN at NaN.

    `log2 m` for m from sqrt(1/2) to sqrt(2) is a polynomial in `(m - 1) / (m + 1)`.
    """
    b, long = d.b, like(d.type, i64)
    bits = b.make(llvm.BitcastOp, (x,), long)
    above = b.wrapping(llvm.SubOp, bits, b.integer(_ROOT_HALF_BITS, long))
    exponent = b.make(llvm.AShrOp, (above, b.integer(52, long)), long)
    m = b.wrapping(llvm.SubOp, bits, b.make(llvm.ShlOp, (exponent, b.integer(52, long)), long))
    m = b.make(llvm.BitcastOp, (m,), d.type)
    s = d.div(d.sub(m, d.number(1.0)), d.add(m, d.number(1.0)))
    narrow = b.make(llvm.TruncOp, (exponent,), like(d.type, i32))
    result = d.fma(d.polynomial(d.mul(s, s), LOG2), s, b.make(llvm.SIToFPOp, (narrow,), d.type))
    result = b.select(b.compare_floats("oeq", x, d.number(0.0)), d.number(float("-inf")), result)
    return b.select(b.compare_floats("olt", x, d.number(float("inf"))), result, x)


def exp2(f: Floats, x: SSAValue) -> SSAValue:
    """`2**x` as an f32 for an f64; beyond the range of f32 0 or infinity."""
    d = doubles(f)
    b, long = d.b, like(d.type, i64)
    x = d.clamp(x, -200.0, 200.0)
    rounded = d.add(x, d.number(ROUNDING))
    r = d.sub(x, d.sub(rounded, d.number(ROUNDING)))
    value = d.fma(d.polynomial(r, EXP2), r, d.number(1.0))
    bits = b.make(llvm.BitcastOp, (rounded,), long)
    scale = b.make(llvm.ShlOp, (b.wrapping(llvm.AddOp, bits, b.integer(1023, long)), b.integer(52, long)), long)
    return narrowed(f, d.mul(value, b.make(llvm.BitcastOp, (scale,), d.type)))


ROOTS = (0.25, 0.5, 0.75)
"""The exponents that square roots make, as local response normalisation has them."""


def number_of(value: SSAValue) -> float | None:
    """The float that a value, or each lane of a vector, is in the code; `None` if it is none."""
    owner = value.owner
    if isinstance(owner, vector.BroadcastOp):
        return number_of(owner.source)
    known = owner.value if isinstance(owner, arith.ConstantOp) else None
    if isinstance(known, DenseIntOrFPElementsAttr) and known.is_splat():
        (known, *_) = known.get_attrs()
    return known.value.data if isinstance(known, FloatAttr) else None


def root_power(f: Floats, x: SSAValue, exponent: float) -> SSAValue:
    """`x**exponent` for one of `ROOTS`: a root itself for a half, else of f32, at most two units in the last place off.

    Special values are those of IEEE 754's `pow`: a zero gives a positive zero, both infinities give a positive one,
    other negative numbers NaN.
    """
    b = f.b
    is_least = b.compare_floats("oeq", x, f.number(-inf))
    base = b.select(is_least, f.number(inf), f.add(x, f.number(0.0)))
    if exponent == 0.75:
        return _three_quarters(f, base)
    root = _root(f, base)
    return root if exponent == 0.5 else _root(f, root)


def _three_quarters(f: Floats, x: SSAValue) -> SSAValue:
    """The root of `x * sqrt(x)`, after `x` has been brought to where that is a normal number, and back."""
    is_large = f.b.compare_floats("ogt", x, f.number(1.0))
    there, back = (
        f.b.select(is_large, f.number(2.0**large), f.number(2.0**small)) for large, small in ((-72, 72), (54, -54))
    )
    x = f.mul(x, there)
    return f.mul(_root(f, f.mul(x, _root(f, x))), back)


def _root(f: Floats, x: SSAValue) -> SSAValue:
    return f.b.overloaded("llvm.sqrt", (x,), f.type)


def power(f: Floats, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x**y = 2**(y * log2 |x|)`; what is required of signs, zeros and infinities only where a lane has one."""
    b, result, infinity = f.b, _power_of_size(f, f.magnitude(x), y), f.format.infinity_bits
    # In bits: floating-point comparisons become tests of classes, which take LLVM more instructions.
    from_zero = f.integers_op(llvm.SubOp, f.bits(x), f.integer(1))
    is_special = _or(
        f,
        b.compare("uge", from_zero, f.integer(infinity - 1)),
        b.compare("uge", f.bits(f.magnitude(y)), f.integer(infinity)),
    )
    special, plain, after = b.new_block(), b.new_block(), b.new_block([f.type])
    b.branch_if(b.any_lane(is_special), special, plain)
    b.start(plain)
    b.branch(after, result)
    b.start(special)
    b.branch(after, _with_special_values(f, x, y, result))
    b.start(after)
    return after.args[0]


def _power_of_size(f: Floats, size: SSAValue, y: SSAValue) -> SSAValue:
    """The power of a number that is not negative; in f64 of positive finite numbers to finite ones."""
    if f.format != BINARY32:
        return power_of_doubles(f, size, y)
    if has_registers(f):
        return power_by_table(f, size, y)
    d = doubles(f)
    return exp2(f, d.mul(widened(f, y), log2(d, widened(f, size))))


def _at_the_ends(f: Floats, size: SSAValue, y: SSAValue, result: SSAValue) -> SSAValue:
    """The power of 0 and of infinity, and with infinite exponents: 0 or infinity."""
    b, zero, infinite = f.b, f.number(0.0), f.number(float("inf"))
    is_end = _or(f, b.compare_floats("oeq", size, zero), b.compare_floats("oeq", size, infinite))
    is_end = _or(f, is_end, b.compare_floats("oeq", f.magnitude(y), infinite))
    above, falls = b.compare_floats("ogt", size, f.number(1.0)), b.compare_floats("olt", y, zero)
    grows = b.make(llvm.XOrOp, (above, falls), above.type)
    return b.select(is_end, b.select(grows, infinite, zero), result)


def _with_special_values(f: Floats, x: SSAValue, y: SSAValue, result: SSAValue) -> SSAValue:
    """A power of x, given that of |x|."""
    b, size, one = f.b, f.magnitude(x), f.number(1.0)
    if f.format != BINARY32:
        result = _at_the_ends(f, size, y, result)
    whole, half = floor(f, y), f.mul(y, f.number(0.5))
    is_odd = _and(f, b.compare_floats("oeq", whole, y), b.compare_floats("one", floor(f, half), half))
    is_negative = b.compare("slt", f.bits(x), f.integer(0))
    result = b.select(_and(f, is_negative, is_odd), f.sub(f.number(-0.0), result), result)
    below = _and(f, b.compare_floats("olt", x, f.number(0.0)), b.compare_floats("one", size, f.number(float("inf"))))
    result = b.select(_and(f, below, b.compare_floats("one", whole, y)), f.number(float("nan")), result)
    result = b.select(b.compare_floats("uno", x, y), f.number(float("nan")), result)
    is_endless = b.compare_floats("oeq", f.magnitude(y), f.number(float("inf")))
    is_unit = _and(f, b.compare_floats("oeq", size, one), is_endless)
    for gives_one in (is_unit, b.compare_floats("oeq", x, one), b.compare_floats("oeq", y, f.number(0.0))):
        result = b.select(gives_one, one, result)
    return result


def _and(f: Floats, left: SSAValue, right: SSAValue) -> SSAValue:
    return f.b.make(llvm.AndOp, (left, right), left.type)


def _or(f: Floats, left: SSAValue, right: SSAValue) -> SSAValue:
    return f.b.make(llvm.OrOp, (left, right), left.type)
