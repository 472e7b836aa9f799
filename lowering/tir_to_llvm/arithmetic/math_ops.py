"""Lowerings of the math dialect: our own code, else LLVM intrinsics, else the C library's functions.

Half floats are computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import IntegerAttr, f32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue

from lowering.llvm.function_builder import element_type, lane_count
from lowering.llvm.llvm_builder import CONTRACT, NO_FLAGS, LLVMBuilder
from lowering.tir_to_llvm.arithmetic.arith_ops import Lower, fast_math, result_element
from lowering.tir_to_llvm.arithmetic.scalars import convert_float, from_integer, math_type
from lowering.tir_to_llvm.math.expansion import EXPANSIONS, scaled_exp
from lowering.tir_to_llvm.math.floats import BINARY32, Floats, fmod
from lowering.tir_to_llvm.math.logarithms import HYPERBOLIC_INVERSES, LOGARITHMS
from lowering.tir_to_llvm.math.power import ROOTS, cbrt, number_of, power, root_power
from lowering.tir_to_llvm.math.trigonometric import INVERSES, TRIGONOMETRIC
from tir_dialect.ops.arithmetic import FmodOp, GreaterOp, ScaledExpOp


def _greater(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    lhs, rhs = operands
    return b.select(b.compare_floats("ogt", lhs, rhs), lhs, rhs)


def _scaled_exp(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    (x,) = operands
    return scaled_exp(Floats(b, x.type), x)


ROW_LOWERINGS: dict[type[Operation], Lower] = {GreaterOp: _greater, ScaledExpOp: _scaled_exp}


FUSED: dict[str, Callable[..., SSAValue]] = {**TRIGONOMETRIC, "math.powf": power}
"""Functions whose code for f64 needs fused multiply-add: others take what a rounded product loses from the library."""

OWN: dict[str, Callable[..., SSAValue]] = {
    **EXPANSIONS,
    **LOGARITHMS,
    **INVERSES,
    **HYPERBOLIC_INVERSES,
    **FUSED,
    "math.cbrt": cbrt,
}
"""Functions of f32 and f64 that we compute ourselves, by the name of the op."""


def _in_math_type(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> list[SSAValue]:
    type_ = result_element(op)
    return [convert_float(b, operand, type_, math_type(type_)) for operand in operands]


def _rounded(b: LLVMBuilder, op: Operation, value: SSAValue) -> SSAValue:
    type_ = result_element(op)
    return convert_float(b, value, math_type(type_), type_)


def _intrinsic(name: str, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    wide = _in_math_type(b, op, operands)
    expanded = _expanded(b, op, wide)
    if expanded is not None:
        return _rounded(b, op, expanded)
    return _rounded(b, op, b.overloaded(f"llvm.{name}", wide, wide[0].type, fast_math(b, op)))


def _fma(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """Rounds once; with the flag `contract` where the processor can, and not by a function of the C library."""
    flags = op.properties.get("fastmath")
    may = isinstance(flags, arith.FastMathFlagsAttr) and FastMathFlag.ALLOW_CONTRACT in flags.data
    return _intrinsic("fmuladd" if may else "fma", b, op, operands)


def _powf(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """A power; a square is a product and a power of a half a root, which is what they round to, others are of roots."""
    number = number_of(op.operands[1])
    base = _in_math_type(b, op, operands)[0]
    if number == 2.0:
        return _rounded(b, op, b.make(llvm.FMulOp, (base, base), base.type, {"fastmathFlags": NO_FLAGS}))
    if number is not None and (number == 0.5 or (number in ROOTS and element_type(base.type) == f32)):
        return _rounded(b, op, root_power(Floats(b, base.type), base, number))
    return _intrinsic("pow", b, op, operands)


def call_libm(b: LLVMBuilder, name: str, operands: Sequence[SSAValue]) -> SSAValue:
    """A function of the C library on f32 or f64 operands, element by element; `name` is the one for f64."""
    type_ = operands[0].type
    element = element_type(type_)
    symbol = f"{name}f" if element == f32 else name
    b.module.declare(symbol, [element] * len(operands), element, pure=True)
    lanes = lane_count(type_)
    if lanes is None:
        return b.call(symbol, operands, type_)
    result = b.undefined(type_)
    for lane in range(lanes):
        value = b.call(symbol, [b.extract(operand, lane) for operand in operands], element)
        result = b.make(llvm.InsertElementOp, (result, value, b.integer(lane)), type_)
    return result


def _expanded(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue | None:
    """Our own code for a function, if there is some."""
    expansion, f = OWN.get(op.name), Floats(b, operands[0].type)
    if expansion is None or (f.format != BINARY32 and op.name in FUSED and "fma" not in b.module.extensions):
        return None
    b.crowded |= f.format.integer.width.data * (lane_count(f.type) or 1) > b.module.vector_bits
    return expansion(f, *operands)


def _libm(name: str, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    wide = _in_math_type(b, op, operands)
    expanded = _expanded(b, op, wide)
    return _rounded(b, op, call_libm(b, name, wide) if expanded is None else expanded)


def _fmod(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """The exact remainder, which the C library makes where a product is rounded."""
    (x, y), library = operands, partial(call_libm, b, "fmod", operands)
    return fmod(Floats(b, x.type), x, y, library) if "fma" in b.module.extensions else library()


def _rsqrt(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    (value,) = _in_math_type(b, op, operands)
    root = b.overloaded("llvm.sqrt", (value,), value.type)
    one = b.float(1.0, value.type)
    return _rounded(b, op, b.make(llvm.FDivOp, (one, root), value.type, {"fastmathFlags": CONTRACT}))


def _fpowi(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """An integer power by the C library's `pow`, which is exact in its exponent."""
    base, exponent = operands
    type_ = result_element(op)
    wide = convert_float(b, base, type_, math_type(type_))
    power = from_integer(b, exponent, element_type(wide.type), signed=True)
    return _rounded(b, op, b.overloaded("llvm.pow", (wide, power), wide.type))


def _absi(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return _with_flag("abs", b, op, operands)


def _with_flag(name: str, b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """An intrinsic whose second operand, false, asks for a result also at the edge (0, or the least integer)."""
    (value,) = operands
    return b.overloaded(f"llvm.{name}", (value, b.false()), value.type)


def _ctpop(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return b.overloaded("llvm.ctpop", operands, operands[0].type)


def _ipowi(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """An integer power by repeated squaring; a negative exponent gives 0 but for the bases 1 and -1."""
    base, exponent = operands
    type_, known = base.type, _known_integer(op.operands[1])
    if known is not None and 0 < known <= _UNROLLED:
        return _product(b, base, known)
    zero, one = b.integer(0, type_), b.integer(1, type_)
    head, body, exit_block = b.new_block([type_] * 3), b.new_block(), b.new_block()
    b.branch(head, one, base, b.overloaded("llvm.abs", (exponent, b.false()), type_))
    b.start(head)
    result, square, rest = head.args
    b.branch_if(b.any_lane(b.compare("ne", rest, zero)), body, exit_block)
    b.start(body)
    is_odd = b.compare("ne", b.make(llvm.AndOp, (rest, one), type_), zero)
    next_result = b.select(is_odd, b.wrapping(llvm.MulOp, result, square), result)
    b.branch(head, next_result, b.wrapping(llvm.MulOp, square, square), b.make(llvm.LShrOp, (rest, one), type_))
    b.start(exit_block)
    is_unit = b.compare("ule", b.wrapping(llvm.AddOp, base, one), b.integer(2, type_))
    inverse = b.select(is_unit, b.select(b.compare("eq", base, zero), zero, result), zero)
    return b.select(b.compare("slt", exponent, zero), inverse, result)


_UNROLLED = 16
"""The greatest exponent in the code for which products are written out, at most six."""


def _known_integer(value: SSAValue) -> int | None:
    """The integer that a value is in the code."""
    known = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return known.value.data if isinstance(known, IntegerAttr) else None


def _product(b: LLVMBuilder, base: SSAValue, exponent: int) -> SSAValue:
    """A power with a positive exponent, by squares."""
    if exponent == 1:
        return base
    root = _product(b, base, exponent // 2)
    square = b.wrapping(llvm.MulOp, root, root)
    return b.wrapping(llvm.MulOp, square, base) if exponent % 2 else square


_INTRINSICS: dict[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.CeilOp: "ceil",
    math.CopySignOp: "copysign",
    math.CosOp: "cos",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.FloorOp: "floor",
    math.LogOp: "log",
    math.Log10Op: "log10",
    math.Log2Op: "log2",
    math.RoundOp: "round",
    math.RoundEvenOp: "roundeven",
    math.SinOp: "sin",
    math.SqrtOp: "sqrt",
    math.TruncOp: "trunc",
}

_LIBM: dict[type[Operation], str] = {
    math.AcosOp: "acos",
    math.AcoshOp: "acosh",
    math.AsinOp: "asin",
    math.AsinhOp: "asinh",
    math.AtanOp: "atan",
    math.Atan2Op: "atan2",
    math.AtanhOp: "atanh",
    math.CbrtOp: "cbrt",
    math.CoshOp: "cosh",
    math.ErfOp: "erf",
    math.ExpM1Op: "expm1",
    math.Log1pOp: "log1p",
    math.SinhOp: "sinh",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
}

MATH_LOWERINGS: dict[type[Operation], Lower] = {
    **{op: partial(_intrinsic, name) for op, name in _INTRINSICS.items()},
    **{op: partial(_libm, name) for op, name in _LIBM.items()},
    math.AbsIOp: _absi,
    math.CountLeadingZerosOp: partial(_with_flag, "ctlz"),
    math.CountTrailingZerosOp: partial(_with_flag, "cttz"),
    math.CtPopOp: _ctpop,
    math.FmaOp: _fma,
    math.FPowIOp: _fpowi,
    math.IPowIOp: _ipowi,
    math.PowFOp: _powf,
    math.RsqrtOp: _rsqrt,
    FmodOp: _fmod,
}
"""Every op of the math dialect, and the remainder of floats."""
