"""Elementary functions of f32 by tables in registers: short polynomials, one for each of some intervals.

AVX-512 chooses one of 16 or 32 numbers for every lane in one instruction, so that the coefficients of each lane's
interval cost no access to memory. The polynomials are ours: least squares over Chebyshev's nodes of each interval, in
the distance from its middle; those of the interval around 0 are odd. Vectors of other machines and scalars take the
longer formulas of `math.expansion`.

`x**y = e**(y * log x)` needs some 33 digits of the logarithm, which two f32 numbers hold. With c in the middle of an
interval, `log (2**e * m) = e * ln 2 + log c + log (1 + r)` and `r = (m - c) / c`; the difference is exact. The middles
are chosen so that `1 / c` is an f32 to 2e-11, and `log c` a multiple of 2**-16 to 8e-7. Mantissas are from 3/4 to 3/2,
and intervals those of their first five digits; the two beside 1, where a logarithm is small, have c = 1.

With m from 3/4 to 3/2 and `r = m / c - 1`, `log (2**e * m) = e * log 2 + log c + r * q(r)`, where the first four digits
of m choose c, and q is a polynomial. The two intervals beside 1, where a logarithm is small, have c = 1. The
reciprocals of c are f32 numbers whose three logarithms are such numbers too, to a fiftieth of a unit; those of f64 are
f64 numbers whose natural logarithms are, to a thousandth.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.floats import BINARY32, Floats, bounded, chosen, exponent_of, mantissa_of, scaled

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.4286068203094172e-06  # the first has 16 bits: multiples of it are exact

# Adding it rounds a float of less than 2**22 to an integer, which then stands in the lowest bits.
ROUNDING = 12582912.0

ERF_STEP, ERF_END = 0.2548, 3.93
TANH_STEP, TANH_END = 0.2875, 9.05
"""The width of an interval, and from where on the function is 1."""


def _table(text: str) -> tuple[tuple[float, ...], ...]:
    """The coefficients, lowest degree first, one for each interval, from the bits of f32 numbers."""
    return tuple(
        tuple(struct.unpack(">f", bytes.fromhex(word))[0] for word in block.split()) for block in text.split("\n\n")
    )


ERF = _table("""
    00000000 3e9014c0 3f0765b3 3f38667e 3f59bb9a 3f6dac30 3f7829a8 3f7d041d
    3f7efda1 3f7fb281 3f7feb6b 3f7ffb2a 3f7ffeff 3f7fffd1 3f7ffff8 3f7fffff

    3e0375d4 3f875a7b 3f5ecc67 3f210a39 3ecc73fa 3e63f63a 3ddf3920 3d3ff75c
    3c90fbd3 3bc0550a 3ae01334 39e544a1 38ce0449 37a294ca 36615c34 35092bae

    00000000 be89f3c5 bee31380 bef632a6 bed060e7 be913630 be2aa1bc bdab320d
    bd13c472 bc5c8730 bb8ebc5a baa0a5e7 b99d7aa1 b886a21a b748f9b8 b60311de

    bec0933b be9d0932 be0ec67e 3d10cd56 3e12ddfa 3e2aada7 3e08b48c 3dab923d
    3d30a512 3c988b6f 3bdfc86a 3b0c86b2 3a17e600 390dd8a4 37e58014 36a13546

    00000000 3e03fa63 3e3bc274 3e164b34 3d8026ab bc3e9b0d bd3e7980 bd3fe169
    bd02c7a7 bc8a2791 bbed874d bb2a2b41 ba4dfee5 b9548460 b83bf537 b70ee98b

    3de5d7de 3da09ffa 3b97955b bd61184e bd8b8743 bd343a51 bc40aeb6 3c051a38
    3c5533cd 3c21c165 3baf8715 3b15be59 3a50d8eb 39730593 386edd37 3746ccec

    00000000 bd26eb82 bd4a11d3 bccc5637 3bd2d6e8 3cb149c9 3c958d38 3bf8e22b
    b9aeab07 bb468b23 bb2a27e7 babb704c ba1c798c b951914d b8676d2a b7627cb5
""")
TANH = _table("""
    00000000 3e8f462a 3f04de9d 3f329236 3f515855 3f64a852 3f703f10 3f7703b2
    3f7ae799 3f7d1ecc 3f7e6026 3f7f15ad 3f7f7c0a 3f7fb5b7 3f7fd630 3f7fe878
    3f7ff2c2 3f7ff88c 3f7ffbcf 3f7ffda4 3f7ffeac 3f7fff41 3f7fff94 3f7fffc3
    3f7fffde 3f7fffed 3f7ffff5 3f7ffffa 3f7ffffd 3f7ffffe 3f7fffff 3f800000

    3f800000 3f6bf422 3f3b09ad 3f03705a 3ea99d4e 3e4f0f00 3df44d8e 3d8d3eef
    3d216d7d 3cb74390 3c4f43ea 3be9e82f 3b83d39e 3b147d5d 3aa731d2 3a3c3708
    39d3da2b 396e710e 39062dce 389702b0 3829f38d 37bf4441 37574120 36f24005
    368850c5 36196934 35aca677 35424d66 34daab77 347617d7 340a7a52 339bd823

    00000000 be840e09 bec22744 beb75e61 be8ab3f4 be38f180 bde544e4 bd8849c3
    bd1e36f6 bcb533d1 bc4df33b bbe91215 bb838faa bb145246 baa71684 ba3c25bb
    b9d3cf35 b96e6a1d b9062b9c b897014c b829f2ab b7bf43b2 b75740c5 b6f23fcb
    b68850b3 b6196928 b5aca670 b5424d61 b4daab73 b47617d4 b40a7a50 b39bd821

    beaaa95b be70b239 bd3f6c41 3da11e14 3de38ca2 3dc0583d 3d85ba4c 3d28d88f
    3cca8353 3c6c26d3 3c078de3 3b9a4475 3b2eb502 3ac54fe3 3a5e7f82 39faae66
    398d25f1 391ee7de 38b2dea0 384952fb 37e29620 377f02f9 370f7fc8 36a17f44
    3635c06a 35cc8bb6 356632c2 350188a7 3491c756 34240f89 33b8a2ac 334fca53

    00000000 3e1b6031 3e1a448c 3d841c1c ba118b73 bcc2035d bcc44ca7 bc901f15
    bc3a032c bbe16386 bb8416d4 bb180d72 baad4c12 ba446aae b9ddee2a b97a5254
    b90d08ce b89ed572 b832d2ff b7c94baa b762918e b6ff002e b68f7ee9 b6217ec8
    b5b5c00e b54c8bab b4e63273 b48188fe b411c82f b3a41124 b338a5be b2cfce14

    3e06f210 3d6603d3 bd397294 bd732da9 bcf04e80 bbbeadb3 3b580116 3b9b7ad1
    3b767ebe 3b23a645 3ac8d7ea 3a6ce927 3a08d079 399c3646 39313a7f 38c85c45
    38620fe9 37fec6d9 378f7abd 37218bd7 36b5da2e 364cb041 35e6602f 3581a3f1
    3511e65d 34a433f0 3438c9d5 33cffb9d 336a1454 3303bc51 32944617 3226ed01

    00000000 bd91280d bd0da2ad 3c41eab3 3c92fc32 3c12f3fc 3b1b73ab b94eeee6
    ba465c41 ba2def7d b9ee98f0 b99475be b9304d5c b8cc5648 b869bed5 b804bb8b
    b796245e b7297471 b6bf0484 b6572a9b b5f24229 b58855db b5197de0 b4acb932
    b442848e b3dab7b6 b3769f6b b30a3466 b29b0845 b22da9a0 b1c22fd2 b1592cd5
""")

EXP = tuple(2.0 ** (number / 16) for number in range(16))
EXP_ROUNDING = 1.5 * 2.0**19
"""Adding it rounds a float of less than 2**18 to sixteenths, whose number then stands in the lowest bits."""

_SIXTEENTH = 19
"""Where the bit of a sixteenth is if those of whole numbers are the exponent of a float."""


def _without_sixteenths(root: float, number: int) -> float:
    """A root, scaled by `2**64`, from whose bits those of its number are taken."""
    (bits,) = struct.unpack("=i", struct.pack("=f", root * 2.0**64))
    (found,) = struct.unpack("=f", struct.pack("=i", bits - (number << _SIXTEENTH)))
    return found


_SCALED_EXP = tuple(_without_sixteenths(root, number) for number, root in enumerate(EXP))


def exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x = 2**floor(n) * 2**(n - floor(n)) * e**r` for n in sixteenths, for x from -104 to 89."""
    rounded, n, grown = _exp_parts(f, x)
    root = chosen(f, EXP, f.bits(rounded))
    return scaled(f, f.fma(root, grown, root), n)


def scaled_exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x * 2**64` for x from -104 to 0: n is added to the exponent of a root, whose bits lack its sixteenths."""
    rounded, _, grown = _exp_parts(f, x)
    number = f.bits(rounded)
    sixteenths = f.b.make(llvm.ShlOp, (number, f.integer(_SIXTEENTH)), f.integers)
    root = f.from_bits(f.integers_op(llvm.AddOp, f.bits(chosen(f, _SCALED_EXP, number)), sixteenths))
    return f.fma(root, grown, root)


def _exp_parts(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """A number with n in its lowest bits, n in sixteenths, and `e**r - 1` of the rest of the logarithm."""
    rounded = f.fma(x, f.number(LOG2_E), f.number(EXP_ROUNDING))
    n = f.sub(rounded, f.number(EXP_ROUNDING))
    r = f.fma(n, f.number(-LN2_LOW), f.fma(n, f.number(-LN2_HIGH), x))
    return rounded, n, f.fma(f.fma(r, f.number(1 / 6), f.number(0.5)), f.mul(r, r), r)


def erf(f: Floats, x: SSAValue) -> SSAValue:
    """The error function; around 0 it is `x + x * p(x)`, since 1.128 has too few bits."""
    size = f.at_most(f.magnitude(x), ERF_END)
    indices, rest = _intervals(f, size, ERF_STEP)
    is_near = f.b.compare_floats("oeq", size, rest)  # Not a bound of its own, which might round otherwise
    middle = f.b.select(is_near, rest, chosen(f, ERF[0], indices))
    return f.with_sign(f.fma(_polynomial(f, ERF[1:], indices, rest), rest, middle), x)


def tanh(f: Floats, x: SSAValue) -> SSAValue:
    """The hyperbolic tangent."""
    size = f.at_most(f.magnitude(x), TANH_END)
    indices, rest = _intervals(f, size, TANH_STEP)
    return f.with_sign(_polynomial(f, TANH, indices, rest), x)


def _intervals(f: Floats, x: SSAValue, step: float) -> tuple[SSAValue, SSAValue]:
    """The number of the interval that each x is in, in the lowest bits, and how far its middle is."""
    rounded = f.fma(x, f.number(1 / step), f.number(ROUNDING))
    number = f.sub(rounded, f.number(ROUNDING))
    return f.bits(rounded), f.fma(number, f.number(-step), x)


def _polynomial(f: Floats, table: Sequence[Sequence[float]], indices: SSAValue, x: SSAValue) -> SSAValue:
    """`c0 + c1 * x + ...` with the coefficients of each lane's interval."""
    result = chosen(f, table[-1], indices)
    for coefficients in reversed(table[:-1]):
        result = f.fma(result, x, chosen(f, coefficients, indices))
    return result


# fmt: off
CENTRES = (
    1.0, 1.0418366193771362, 1.0783250331878662, 1.1111128330230713, 1.1370630264282227,
    1.167941927909851, 1.1994760036468506, 1.238306999206543, 1.2667443752288818, 1.2987644672393799,
    1.3268280029296875, 1.364962100982666, 1.3862245082855225, 1.424652099609375, 1.4514877796173096,
    1.4878822565078735, 0.75445955991745, 0.7769256830215454, 0.789425253868103, 0.8075541853904724,
    0.8195457458496094, 0.839224100112915, 0.8511663675308228, 0.8647415637969971, 0.8824162483215332,
    0.8999986052513123, 0.9156233668327332, 0.9273641705513, 0.9434064626693726, 0.9598433971405029,
    0.9736804962158203, 1.0,
)
# fmt: on
_RECIPROCALS = tuple(1 / centre for centre in CENTRES)
_LOGARITHMS = tuple(math.log(centre) for centre in CENTRES)
_HIGH = tuple(round(number * 2**16) / 2**16 for number in _LOGARITHMS)
_LOW = tuple(number - high for number, high in zip(_LOGARITHMS, _HIGH, strict=True))
_CUBIC = (0.3333333432674408, -0.2500015199184418, 0.19997373223304749, -0.16028524935245514)
_EXP_SQUARE = (0.5000101923942566, 0.16666971147060394)
_GREATEST = 120.0
"""`e**120` is more than any f32, `e**-120` less."""


def power_by_table(f: Floats, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x**y` for x that are not negative, vectors that `has_registers` says; any number if one of them is NaN."""
    high, low = _log(f, x)
    product = f.mul(y, high)
    rest = f.fused(y, high, f.sub(f.number(-0.0), product))
    rest = bounded(f, f.fused(y, low, rest), 1.0)
    return _exp(f, bounded(f, product, _GREATEST), rest)


def _log(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The natural logarithm of x as a number and what it lacks."""
    b, minus_half = f.b, f.number(-0.5)
    mantissa, exponent = mantissa_of(f, x), exponent_of(f, x)
    is_half = b.compare_floats("olt", mantissa, f.number(1.0))
    exponent = b.select(is_half, f.add(exponent, f.number(1.0)), exponent)
    indices = b.make(llvm.LShrOp, (f.bits(mantissa), f.integer(18)), f.integers)
    distance, inverse = f.sub(mantissa, chosen(f, CENTRES, indices)), chosen(f, _RECIPROCALS, indices)
    r = f.mul(distance, inverse)
    low = f.fused(distance, inverse, f.sub(f.number(-0.0), r))
    square = f.mul(r, r)
    # log (1 + r) is r - r**2 / 2, whose parts are exact, and a cubic rest.
    near = f.fused(minus_half, square, r)
    lost = f.fused(minus_half, square, f.sub(r, near))
    low = f.fused(minus_half, f.fused(r, r, f.sub(f.number(-0.0), square)), low)
    low = f.add(f.fused(f.mul(r, square), f.polynomial(r, _CUBIC), low), lost)
    whole = f.fused(exponent, f.number(LN2_HIGH), chosen(f, _HIGH, indices))
    high = f.add(whole, near)
    rest = f.fused(exponent, f.number(LN2_LOW), chosen(f, _LOW, indices))
    return high, f.add(f.add(f.sub(near, f.sub(high, whole)), rest), low)


def _exp(f: Floats, x: SSAValue, rest: SSAValue) -> SSAValue:
    """`e**(x + rest)`, as `tables.exp` has it."""
    rounded = f.fused(f.add(x, rest), f.number(LOG2_E), f.number(EXP_ROUNDING))
    n = f.sub(rounded, f.number(EXP_ROUNDING))
    r = f.fused(n, f.number(-LN2_LOW), f.fused(n, f.number(-LN2_HIGH), x))
    r = f.add(r, rest)
    grown = f.fma(f.polynomial(r, _EXP_SQUARE), f.mul(r, r), r)
    root = chosen(f, EXP, f.bits(rounded))
    return scaled(f, f.fma(root, grown, root), n)


# fmt: off
_LOG_RECIPROCALS = (
    1.0, 0.9167045950889587, 0.8633744716644287, 0.8230487108230591,
    0.7771744132041931, 0.7471097707748413, 0.7132992744445801, 0.6804729700088501,
    1.3050925731658936, 1.2481718063354492, 1.2035245895385742, 1.1623603105545044,
    1.1264903545379639, 1.07907235622406, 1.0495269298553467, 1.0,
)
# fmt: on
_NATURAL = (1.0, -0.5, 0.33334434032440186, -0.25007498264312744, 0.18868274986743927)
_BINARY = (1.4426950216293335, -0.7213475108146667, 0.48095962405204773, -0.3609920144081116, 0.263662189245224)
_DECIMAL = (0.4342944920063019, -0.21714724600315094, 0.14474835991859436, -0.10853388905525208, 0.08615352213382721)
"""Minimax fits of `log (1 + r) / r` for r from -1/32 to 1/16: below 3e-9, 1.4e-8 and 2.4e-8 relative."""
_TAIL = (-0.5, 0.3333355188369751, -0.24999327957630157, 0.19788692891597748, -0.13525108993053436)
"""Of the natural logarithm for r from -1/32 to 1/8, without the first: below 1.3e-9 relative."""
_RECIPROCALS_64 = (
    *(1.0, 0.9143715441396356, 0.8648089590468255, 0.8206520785545481, 0.7805520329424057),
    *(0.7442439725930361, 0.7111989833142731, 0.6807427182137799, 1.3063574058692107, 1.2547063736441488),
    *(1.207817567551654, 1.163815522678134, 1.1226991213702329, 1.0849137789153804, 1.0493571668215729),
    1.0,
)
_NATURAL_64 = (
    *(1.0, -0.49999999999999994, 0.3333333333333332, -0.2500000000004853, 0.2000000000029989),
    *(-0.16666666544426625, 0.14285712881250925, -0.12500122883325976, 0.11113411019048865),
    *(-0.09963739771746226, 0.0790441353855035),
)
"""The same as `_NATURAL`, below 2e-18 relative: a minimax fit (Remez' exchange algorithm with 60 digits)."""
LOG10_2_HIGH, LOG10_2_LOW = 0.301025390625, 4.605038981195214e-06


def log(f: Floats, x: SSAValue) -> SSAValue:
    """The natural logarithm: the f32 nearest to `log 2` is 2e-9 off."""
    return _logarithm(f, x, math.e, _NATURAL if f.format == BINARY32 else _NATURAL_64, (math.log(2.0),))


def log2(f: Floats, x: SSAValue) -> SSAValue:
    """The logarithm to the base 2."""
    return _logarithm(f, x, 2.0, _BINARY, (1.0,))


def log10(f: Floats, x: SSAValue) -> SSAValue:
    """The logarithm to the base 10."""
    return _logarithm(f, x, 10.0, _DECIMAL, (LOG10_2_LOW, LOG10_2_HIGH))


def _logarithm(f: Floats, x: SSAValue, base: float, quotient: Sequence[float], of_two: Sequence[float]) -> SSAValue:
    """A logarithm, that of 2 as parts of increasing size; of 0 and infinity the exponent is infinite, and decides."""
    mantissa, exponent, indices = _parts(f, x)
    reciprocals = _LOG_RECIPROCALS if f.format == BINARY32 else _RECIPROCALS_64
    whole = chosen(f, [-math.log(each) / math.log(base) for each in reciprocals], indices)
    for part in of_two:
        whole = f.fused(exponent, f.number(part), whole)
    r = f.fused(mantissa, chosen(f, reciprocals, indices), f.number(-1.0))
    return f.fused(r, f.polynomial(r, quotient), whole)


def log_of_sum(f: Floats, x: SSAValue, lost: SSAValue, *, keeps_rest: bool) -> SSAValue:
    """`log(x + lost)` for a small second part, of which `r` may lose something that is added in the end if so.

    From 1 to 9/8 c is 1, so that a logarithm is the sum of others only where it is greater than what they lack.
    """
    mantissa, exponent, indices = _parts(f, x)
    reciprocals = (1.0, 1.0, *_LOG_RECIPROCALS[2:])
    inverse = chosen(f, reciprocals, indices)
    lost = scaled(f, lost, f.sub(f.number(-0.0), exponent))
    first = f.fused(mantissa, inverse, f.number(-1.0))
    r = f.fused(lost, inverse, first)
    whole = f.fused(exponent, f.number(math.log(2.0)), chosen(f, [-math.log(each) for each in reciprocals], indices))
    part = f.mul(f.polynomial(r, _TAIL), r)
    if not keeps_rest:
        return f.add(whole, f.fused(part, r, r))
    rest = f.fused(lost, inverse, f.sub(first, r))
    return f.add(whole, f.add(f.fused(part, r, rest), r))


def _parts(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Mantissa and exponent, and the number of the mantissa's interval in the lowest bits."""
    mantissa, exponent = mantissa_of(f, x, nan_below_zero=True), exponent_of(f, x)
    is_half = f.b.compare_floats("olt", mantissa, f.number(1.0))
    exponent = f.b.select(is_half, f.add(exponent, f.number(1.0)), exponent)
    digits = f.b.make(llvm.LShrOp, (f.bits(mantissa), f.integer(f.format.fraction - 4)), f.integers)
    return mantissa, exponent, digits
