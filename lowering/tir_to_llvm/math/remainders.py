"""The remainder of a division of floats, exact, by one quotient where that is a whole number without rounding."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.floats import Floats


def fmod(f: Floats, x: SSAValue, y: SSAValue, library: Callable[[], SSAValue]) -> SSAValue:
    """`x - trunc(x / y) * y`; by the `library` where a lane's quotient has more digits than the format.

    A quotient below those is rounded to the whole number below the exact one or to that above, never to less. What is
    left, or is too much, is a multiple of the divisor's last digit and less than the divisor: so fused multiply-add
    and a sum are exact.
    """
    b, size, divisor = f.b, f.magnitude(x), f.magnitude(y)
    quotient = f.div(size, divisor)
    known = (
        b.compare_floats("oge", quotient, f.number(2.0 ** (f.format.fraction + 1))),
        b.compare_floats("one", size, f.number(float("inf"))),
        b.compare_floats("one", divisor, f.number(0.0)),
    )
    is_long = known[0]
    for condition in known[1:]:
        is_long = b.make(llvm.AndOp, (is_long, condition), is_long.type)
    near, far, after = b.new_block(), b.new_block(), b.new_block([f.type])
    b.branch_if(f.b.any_lane(is_long), far, near)
    b.start(far)
    b.branch(after, library())
    b.start(near)
    b.branch(after, _rest(f, x, size, divisor, quotient))
    b.start(after)
    return after.args[0]


def _rest(f: Floats, x: SSAValue, size: SSAValue, divisor: SSAValue, quotient: SSAValue) -> SSAValue:
    b, zero = f.b, f.number(0.0)
    whole = b.overloaded("llvm.trunc", (quotient,), f.type)
    rest = f.fused(f.sub(f.number(-0.0), whole), divisor, size)
    rest = b.select(b.compare_floats("olt", rest, zero), f.add(rest, divisor), rest)
    # An infinite divisor leaves all: its product with 0 is NaN.
    rest = b.select(b.compare_floats("olt", size, divisor), size, rest)
    return f.with_sign(rest, x)
