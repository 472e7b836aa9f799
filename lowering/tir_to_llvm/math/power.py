"""Powers of f32 and f64: at most 2 ulp off, with the special values of IEEE 754's `pow`."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.avx512 import has_registers
from lowering.tir_to_llvm.math.floats import Floats, doubles, floor, widened
from lowering.tir_to_llvm.math.formats import BINARY32
from lowering.tir_to_llvm.math.power_double import power_of_doubles
from lowering.tir_to_llvm.math.power_single import exp2, log2
from lowering.tir_to_llvm.math.power_tables import power_by_table


def power(f: Floats, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x**y = 2**(y * log2 |x|)`; what is asked of signs, zeros and infinities only where a lane has one."""
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
