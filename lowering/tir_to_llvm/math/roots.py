"""Powers whose exponent is a number in the code: products and square roots in place of a logarithm."""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.floats import Floats

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
