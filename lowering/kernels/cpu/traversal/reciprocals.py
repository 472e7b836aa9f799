"""Multiplication by reciprocals instead of division by a row-invariant divisor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body, number_like
from lowering.kernels.cpu.emit.code import Code

LEAST_DIVISOR, GREATEST_DIVISOR = 2.0**-126, 2.0**126
"""Between these the reciprocal of an f32, and the product with it, loses at most the last bit."""


def with_reciprocals(code: Code, bodies: Sequence[Body]) -> Iterator[None]:
    """Where to emit the row: twice if divisors might have no reciprocal, with products, and with divisions."""
    unsafe = [value for body in bodies for value in body.unsafe_divisors]
    if not unsafe:
        yield
        return
    with code.when(_are_normal(code, unsafe)) as branch:
        yield
    for body in bodies:
        body.multiply = False
    with code.otherwise(branch):
        yield


def _are_normal(code: Code, divisors: Sequence[SSAValue]) -> SSAValue:
    tests: list[SSAValue] = []
    for value in divisors:
        low, high = (code.value(arith.ConstantOp(number_like(end, value))) for end in (LEAST_DIVISOR, GREATEST_DIVISOR))
        # A divisor that comes of a sum of positive numbers; any other is divided by.
        tests += [code.value(arith.CmpfOp(value, low, "oge")), code.value(arith.CmpfOp(value, high, "ole"))]
    result = tests[0]
    for test in tests[1:]:
        result = code.both(result, test)
    return result
