"""Powers and cube roots of f32 and f64, at most 2 ulp off, with the special values of IEEE 754's `pow`.

`x**y = e**(y * log x)` needs some 65 digits of the logarithm: it is the sum of two f64 numbers. With
`s = (m - 1) / (m + 1)`, `log m = 2 * s + s**3 * (2/3 + s**2 * p(s**2))`; all but p is computed in double-double
arithmetic, whose products are exact by fused multiply-add (Dekker, 1971).
"""

from __future__ import annotations

import math
from math import inf

from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, i32, i64
from xdsl.ir import SSAValue

from lowering.llvm.function_builder import like
from lowering.tir_to_llvm.math.expansion import LOG2_E, coefficients, grown, scale_exponent
from lowering.tir_to_llvm.math.floats import (
    BINARY32,
    ROUNDING,
    Floats,
    chosen,
    doubles,
    exponent_of,
    floor,
    has_registers,
    has_registers_of_doubles,
    mantissa_of,
    narrowed,
    scaled,
    widened,
)
from lowering.tir_to_llvm.math.logarithms import split_mantissa
from lowering.tir_to_llvm.math.tables import power_by_table

LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
"""The first has 42 bits: its multiples by exponents are exact."""

TWO_THIRDS, TWO_THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17
LOG = (
    *(0.39999999999999725, 0.2857142857157751, 0.22222222191190769, 0.18181821532656953),
    *(0.15384406258126412, 0.13341156961515024, 0.11592154149270917, 0.12572777252849812),
)
"""p for s up to 1/5, a minimax fit of ours (Remez' exchange algorithm with 60 digits): below 2e-21 of the logarithm."""

_GREATEST = 750.0
"""`e**750` is more than any f64, `e**-750` less."""


def power_of_doubles(f: Floats, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x**y` for positive finite x and finite y."""
    high, low = _log(f, x)
    product = f.mul(y, high)
    rest = f.fused(y, low, _lost_by_product(f, y, high, product))
    bounded = f.clamp(product, -_GREATEST, _GREATEST)
    is_inside = f.b.compare_floats("oeq", bounded, product)
    return _exp(f, bounded, f.b.select(is_inside, rest, f.number(0.0)))


def _exp(f: Floats, x: SSAValue, rest: SSAValue) -> SSAValue:
    """`e**(x + rest)`, where the rest is small."""
    known, bias = coefficients(f), scale_exponent(f)
    offset = f.number(f.format.rounding + bias)
    rounded = f.fused(x, f.number(LOG2_E), offset)
    n = f.sub(rounded, offset)
    r = f.fused(n, f.number(-known.ln2_low), f.fused(n, f.number(-known.ln2_high), x))
    r = f.add(r, rest)
    return grown(f, f.fma(f.polynomial(r, known.exp), f.mul(r, r), r), rounded)


def _log(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The natural logarithm as a number and what it lacks."""
    exponent, t = split_mantissa(f, x)
    s, s_low = _quotient(f, t)
    # `s**3 * (2/3 + s**2 * p(s**2))` in two parts.
    square = f.mul(s, s)
    square_low = f.fused(f.add(s, s), s_low, _lost_by_product(f, s, s, square))
    first, more = f.number(TWO_THIRDS), f.mul(f.polynomial(square, LOG), square)
    q = f.add(first, more)
    q_low = f.add(f.sub(more, f.sub(q, first)), f.number(TWO_THIRDS_LOW))
    u, u_low = _product(f, s, s_low, square, square_low)
    v, v_low = _product(f, u, u_low, q, q_low)
    # The terms are added from the largest to the smallest, so that what each sum loses is known (Dekker, 1971).
    high = f.mul(exponent, f.number(LN2_HIGH))
    low = f.fused(exponent, f.number(LN2_LOW), f.add(f.add(s_low, s_low), v_low))
    for term in (f.add(s, s), v):
        total = f.add(high, term)
        low = f.add(low, f.sub(term, f.sub(total, high)))
        high = total
    return high, low


def _quotient(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`t / (2 + t)` in two parts."""
    two = f.number(2.0)
    divisor = f.add(t, two)
    divisor_low = f.sub(t, f.sub(divisor, two))
    inverse = f.div(f.number(1.0), divisor)
    s = f.mul(t, inverse)
    minus = f.sub(f.number(-0.0), s)
    return s, f.mul(f.fused(minus, divisor_low, f.fused(minus, divisor, t)), inverse)


def _product(f: Floats, x: SSAValue, x_low: SSAValue, y: SSAValue, y_low: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The product of two sums of two numbers."""
    product = f.mul(x, y)
    return product, f.fused(x, y_low, f.fused(x_low, y, _lost_by_product(f, x, y, product)))


def _lost_by_product(f: Floats, x: SSAValue, y: SSAValue, product: SSAValue) -> SSAValue:
    return f.fused(x, y, f.sub(f.number(-0.0), product))


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


INVERSE = (0.9999494552612305, -0.3329913914203644, 0.2263202667236328, -0.18659506738185883, 0.1107228621840477)
INVERSE_64 = (
    *(1.0000018255345582, -0.3331903794679979, 0.22189100159170566, -0.1782492429887437, 0.15660646940357362),
    -0.09004155068643849,
)
"""`(1 + t)**(-1/3)` for `1 + t` from sqrt(1/2) to 3/2: minimax fits of ours (Remez' exchange algorithm with 50 digits),
to 2**-14 and 2**-16.
"""
RECIPROCALS = (
    *(0.9384210109710693, 0.8422079086303711, 0.761906087398529, 0.6975723505020142, 0.6366650462150574),
    *(0.5901530981063843, 0.5485409498214722, 0.5174347758293152),
)
"""Of the middles of eighths from 1 to 2, chosen so that the roots of 1/2, 1 and 2 over one are f32 to 2**-29."""
_ROOTS = tuple(math.cbrt(2.0**rest / number) for rest in (0, 1, 2, -1) for number in RECIPROCALS)
_ROOT = (0.333333283662796, -0.11111040413379669, 0.06183112412691116, -0.04161328077316284)
"""`((1 + r)**(1/3) - 1) / r` for r from -0.062 to 0.056, to 2**-22."""
_STEP, _STEP_64 = (2 / 3,), (2 / 3, 5 / 9, 40 / 81)
"""The series of `((1 - h)**(-2/3) - 1) / h`."""


def cbrt(f: Floats, x: SSAValue) -> SSAValue:
    """`2**n * c` with `c = a**(1/3)`, where `|x| = 2**(3 * n) * a` and a is from 0.35 to 3.

    An estimate y of `1 / c` is a polynomial; `z = a * y**2` is c but for a factor `(1 - h)**(2/3)`, `h = 1 - z * y`.
    """
    if has_registers(f):
        # `2**n * c * (1 + r)**(1/3)`, where `1 + r` is the mantissa over the middle of its eighth, and c
        # is in a table.
        b, mantissa, exponent = f.b, mantissa_of(f, x, from_one=True), exponent_of(f, x)
        eighth = b.make(llvm.LShrOp, (f.bits(mantissa), f.integer(f.format.fraction - 3)), f.integers)
        r = f.fused(mantissa, chosen(f, RECIPROCALS * 2, eighth), f.number(-1.0))
        n, _ = _third(f, exponent, 0)
        # The units of what n leaves stand above the last three digits, which say the eighth.
        rest = f.fused(n, f.number(-3.0), f.add(exponent, f.number(f.format.rounding / 8)))
        index = b.make(llvm.OrOp, (f.bits(rest), b.make(llvm.AndOp, (eighth, f.integer(7)), f.integers)), f.integers)
        root = chosen(f, _ROOTS, index)
        return f.with_sign(scaled(f, f.fused(root, f.mul(f.polynomial(r, _ROOT), r), root), n), x)
    b, size = f.b, f.magnitude(x)
    exponent, t = split_mantissa(f, size)
    n, rounded = _third(f, exponent, f.format.bias)
    rest = f.fma(n, f.number(-3.0), exponent)
    first, step = (INVERSE, _STEP) if f.format == BINARY32 else (INVERSE_64, _STEP_64)
    y = f.mul(f.polynomial(t, first), _one_of(f, rest, 2 ** (1 / 3), 1.0, 2 ** (-1 / 3)))
    a = f.mul(f.add(t, f.number(1.0)), _one_of(f, rest, 0.5, 1.0, 2.0))
    z = f.mul(a, f.mul(y, y))
    h = f.fma(f.sub(f.number(-0.0), z), y, f.number(1.0))
    root = f.fma(f.mul(z, h), f.polynomial(h, step), z)
    result = f.with_sign(_times_power(f, root, n, rounded), x)
    # Zeros, which become large, infinities and NaN.
    from_zero = f.integers_op(llvm.SubOp, f.bits(size), f.integer(1))
    is_special = b.compare("uge", from_zero, f.integer(f.format.infinity_bits - 1))
    return b.select(is_special, x, result)


def _third(f: Floats, exponent: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """The whole number n that is nearest to a third, and a number with `n + bias` in its lowest bits."""
    offset = f.number(f.format.rounding + bias)
    rounded = f.fma(exponent, f.number(1 / 3), offset)
    return f.sub(rounded, offset), rounded


def _one_of(f: Floats, rest: SSAValue, below: float, middle: float, above: float) -> SSAValue:
    """A number for -1, 0 and 1."""
    numbers = [f.number(each) for each in (below, middle, above)]
    least = f.b.select(f.b.compare_floats("olt", rest, f.number(0.0)), numbers[0], numbers[1])
    return f.b.select(f.b.compare_floats("ogt", rest, f.number(0.0)), numbers[2], least)


def _times_power(f: Floats, value: SSAValue, n: SSAValue, rounded: SSAValue) -> SSAValue:
    """`value * 2**n`, a normal number, whose biased exponent stands in the lowest bits of `rounded`."""
    if has_registers_of_doubles(f):
        return scaled(f, value, n)
    power = f.b.make(llvm.ShlOp, (f.bits(rounded), f.integer(f.format.fraction)), f.integers)
    return f.mul(value, f.from_bits(power))
