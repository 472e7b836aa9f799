"""Elementary functions of f32 by tables in registers: short polynomials, one for each of some intervals.

AVX-512 chooses one of 16 or 32 numbers for every lane in one instruction, so that the coefficients of each lane's
interval cost no access to memory. The polynomials are ours: least squares over Chebyshev's nodes of each interval, in
the distance from its middle; those of the interval around 0 are odd. Vectors of other machines and scalars take the
longer formulas of `math.expansion`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.avx512 import chosen, scaled
from lowering.tir_to_llvm.math.floats import Floats

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
