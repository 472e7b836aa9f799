"""`simplify-arithmetic`: elementwise operators with a known operand that are another, cheaper one, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import array_of
from lowering.rewriting import Canonicalize, op_rewrite_pattern
from relax_dialect.analysis.effects import may_be_view
from relax_dialect.ops.binary import AddOp, BinaryOp, DivideOp, MultiplyOp, PowerOp, SubtractOp
from relax_dialect.ops.unary import UnaryOp
from relax_dialect.ops.values import ConstantOp
from tir_dialect.weights import tensor_attr

MOST_EXPONENT = 125
"""Powers of two within this are normal numbers of `f32`, and so are their reciprocals."""

Number: TypeAlias = "int | float"
Simplified: TypeAlias = "SSAValue | list[Operation] | None"
"""A value that is there already, new ops of which the last has the value, or nothing."""


class SimplifyArithmeticPass(ModulePass):
    """Replaces elementwise operators by cheaper equivalents.

    Before:

    ```mlir
    %0 = relax.multiply %x, %one
    %1 = relax.power %0, %two
    %2 = relax.divide %1, %eight
    ```

    After:

    ```mlir
    %1 = relax.multiply %x, %x
    %2 = relax.multiply %1, %eighth
    ```

    The rules, with a constant all of whose elements are one number:

    * `x * 1`, `x / 1`, `x - 0`, `x ** 1` are `x`, and so is `x + 0` of integers (of floats, `-0 + 0` is not `-0`)
    * `x / c` is `x * (1 / c)` if `c` is a power of two with a normal reciprocal: both are exact
    * `x ** 2` is `x * x`, `x ** 3` is `x * x * x`
    * `f(f(x))` is `x` for an `f` that undoes itself, and `f(x)` for an `f` that changes nothing the second time

    An operator that changes the shape, or whose result or operand somebody may write into, stays, and so does one that
    copies an argument which is returned. Idempotent.
    """

    name = "simplify-arithmetic"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [Canonicalize(UnaryOp), ApplyNumber()])


class ApplyNumber(RewritePattern):
    """An operator with a number is a cheaper one, or nothing: `x * 1  ->  x`, `x / 4  ->  x * 0.25`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: BinaryOp, rewriter: PatternRewriter) -> None:
        rule = _RULES.get(type(op))
        if rule is None:
            return
        for value, other in ((op.x, op.y), (op.y, op.x)):
            # The number that all elements of a constant are.
            array = array_of(other)
            if array is None or not array.size or array.dtype.kind == "b" or not (array == array.reshape(-1)[0]).all():
                number = None
            else:
                first = array.reshape(-1)[0]
                number = int(first) if array.dtype.kind in "iu" else float(first)
            if number is not None and (value is op.x or op.SCALAR.commutative):
                _replace(op, rule(value, other, number), rewriter)
                return


def _replace(op: BinaryOp, found: Simplified, rewriter: PatternRewriter) -> None:
    """Replaces an op by what has its type, unless somebody may write into a value that is not copied any more."""
    if isinstance(found, SSAValue):
        if found.type == op.result.type and may_be_view(op.result, found):
            rewriter.replace(op, [], [found])
    elif found is not None and found[-1].result_types == op.result_types:
        rewriter.replace(op, found)


def _add(x: SSAValue, other: SSAValue, number: Number) -> Simplified:
    nothing = number == 0 and (isinstance(number, int) or math.copysign(1, number) < 0)
    return x if nothing else None


def _subtract(x: SSAValue, other: SSAValue, number: Number) -> Simplified:
    nothing = number == 0 and (isinstance(number, int) or math.copysign(1, number) > 0)
    return x if nothing else None


def _multiply(x: SSAValue, other: SSAValue, number: Number) -> Simplified:
    return x if number == 1 else None


def _divide(x: SSAValue, other: SSAValue, number: Number) -> Simplified:
    if number == 1:
        return x
    owner = other.owner
    if not isinstance(owner, ConstantOp) or owner.array is None or isinstance(number, int) or not math.isfinite(number):
        return None
    kind = owner.array.dtype
    mantissa, exponent = math.frexp(number)
    if kind.name not in ("float32", "float64") or abs(mantissa) != 0.5 or abs(exponent) > MOST_EXPONENT:
        return None
    reciprocal = ConstantOp(tensor_attr(np.full(owner.array.shape, 1 / number, kind)))
    return [reciprocal, MultiplyOp(x, reciprocal)]


def _power(x: SSAValue, other: SSAValue, number: Number) -> Simplified:
    if number == 1:
        return x
    if number not in (2, 3):
        return None
    square = MultiplyOp(x, x)
    return [square] if number == 2 else [square, MultiplyOp(square, x)]


_RULES: dict[type[BinaryOp], Callable[[SSAValue, SSAValue, Number], Simplified]] = {
    AddOp: _add,
    SubtractOp: _subtract,
    MultiplyOp: _multiply,
    DivideOp: _divide,
    PowerOp: _power,
}
"""What an operator is if its second operand, or either of a commutative one, is a number everywhere."""
