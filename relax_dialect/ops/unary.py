"""Unary elementwise operators: one row each."""

from __future__ import annotations

import math
from abc import ABC
from typing import Any, ClassVar

from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, result_def

from relax_dialect.external import may_be_view
from relax_dialect.inference import Inference
from relax_dialect.ops.operator import ElementwiseOp
from relax_dialect.scalars import Domain, Scalar, numpy, ufunc
from relax_dialect.struct_info.types import TensorType
from tir_dialect.ops.assembly_format import op_definition


class UnaryOp(ElementwiseOp, HasFolderInterface, ABC):
    """Applies a scalar function to every element: `%0 = relax.exp %x`. The result has the operand's shape.

    C1: the operand's dtype is in the function's domain.
    """

    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        inference.require_domain(0, cls.SCALAR.domain)  # C1
        return (x.with_dtype(cls.SCALAR.result_dtype(x.dtype)),)

    def fold(self) -> tuple[SSAValue] | None:
        """Applied twice: `negative negative %x  ->  %x`, `floor floor %x  ->  floor %x`."""
        inner = self.x.owner
        if not isinstance(inner, UnaryOp) or type(inner) is not type(self):
            return None
        value = inner.x if self.SCALAR.involution else self.x if self.SCALAR.idempotent else None
        if value is None or value.type != self.result.type or not may_be_view(self.result, value):
            return None
        if not may_be_view(self.result, self.x):
            return None  # somebody writes between the two
        return (value,)


def rsqrt(x: Any) -> Any:
    """`1 / sqrt(x)` on arrays."""
    return numpy().reciprocal(numpy().sqrt(x))


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))` on arrays, without overflow."""
    np = numpy()
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def erf(x: Any) -> Any:
    """The error function on arrays, in double precision."""
    np = numpy()
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype)


@op_definition
class AbsOp(UnaryOp):
    """`|x|`."""

    name = "relax.abs"
    SCALAR: ClassVar = Scalar("abs", ufunc("abs"))


@op_definition
class AcosOp(UnaryOp):
    """`arccos(x)`."""

    name = "relax.acos"
    SCALAR: ClassVar = Scalar("acos", ufunc("arccos"), domain=Domain.FLOAT)


@op_definition
class AcoshOp(UnaryOp):
    """`arcosh(x)`."""

    name = "relax.acosh"
    SCALAR: ClassVar = Scalar("acosh", ufunc("arccosh"), domain=Domain.FLOAT)


@op_definition
class AsinOp(UnaryOp):
    """`arcsin(x)`."""

    name = "relax.asin"
    SCALAR: ClassVar = Scalar("asin", ufunc("arcsin"), domain=Domain.FLOAT)


@op_definition
class AsinhOp(UnaryOp):
    """`arsinh(x)`."""

    name = "relax.asinh"
    SCALAR: ClassVar = Scalar("asinh", ufunc("arcsinh"), domain=Domain.FLOAT)


@op_definition
class AtanOp(UnaryOp):
    """`arctan(x)`."""

    name = "relax.atan"
    SCALAR: ClassVar = Scalar("atan", ufunc("arctan"), domain=Domain.FLOAT)


@op_definition
class AtanhOp(UnaryOp):
    """`artanh(x)`."""

    name = "relax.atanh"
    SCALAR: ClassVar = Scalar("atanh", ufunc("arctanh"), domain=Domain.FLOAT)


@op_definition
class BitwiseNotOp(UnaryOp):
    """Every bit inverted; of `i1`, the negation."""

    name = "relax.bitwise_not"
    SCALAR: ClassVar = Scalar("bitwise_not", ufunc("invert"), domain=Domain.BITS, involution=True)


@op_definition
class CeilOp(UnaryOp):
    """The least integer that is not less than x."""

    name = "relax.ceil"
    SCALAR: ClassVar = Scalar("ceil", ufunc("ceil"), domain=Domain.FLOAT, idempotent=True)


@op_definition
class CosOp(UnaryOp):
    """`cos(x)`."""

    name = "relax.cos"
    SCALAR: ClassVar = Scalar("cos", ufunc("cos"), domain=Domain.FLOAT)


@op_definition
class CoshOp(UnaryOp):
    """`cosh(x)`."""

    name = "relax.cosh"
    SCALAR: ClassVar = Scalar("cosh", ufunc("cosh"), domain=Domain.FLOAT)


@op_definition
class ErfOp(UnaryOp):
    """The error function."""

    name = "relax.erf"
    SCALAR: ClassVar = Scalar("erf", erf, domain=Domain.FLOAT)


@op_definition
class ExpOp(UnaryOp):
    """`e ** x`."""

    name = "relax.exp"
    SCALAR: ClassVar = Scalar("exp", ufunc("exp"), domain=Domain.FLOAT)


@op_definition
class FloorOp(UnaryOp):
    """The greatest integer that is not greater than x."""

    name = "relax.floor"
    SCALAR: ClassVar = Scalar("floor", ufunc("floor"), domain=Domain.FLOAT, idempotent=True)


@op_definition
class IsFiniteOp(UnaryOp):
    """Whether x is neither infinite nor NaN."""

    name = "relax.isfinite"
    SCALAR: ClassVar = Scalar("isfinite", ufunc("isfinite"), domain=Domain.FLOAT, predicate=True)


@op_definition
class IsInfOp(UnaryOp):
    """Whether x is infinite."""

    name = "relax.isinf"
    SCALAR: ClassVar = Scalar("isinf", ufunc("isinf"), domain=Domain.FLOAT, predicate=True)


@op_definition
class IsNanOp(UnaryOp):
    """Whether x is NaN."""

    name = "relax.isnan"
    SCALAR: ClassVar = Scalar("isnan", ufunc("isnan"), domain=Domain.FLOAT, predicate=True)


@op_definition
class LogOp(UnaryOp):
    """The natural logarithm."""

    name = "relax.log"
    SCALAR: ClassVar = Scalar("log", ufunc("log"), domain=Domain.FLOAT)


@op_definition
class LogicalNotOp(UnaryOp):
    """`not x`."""

    name = "relax.logical_not"
    SCALAR: ClassVar = Scalar("logical_not", ufunc("logical_not"), domain=Domain.BOOL, involution=True)


@op_definition
class NegativeOp(UnaryOp):
    """`-x`."""

    name = "relax.negative"
    SCALAR: ClassVar = Scalar("negative", ufunc("negative"), involution=True)


@op_definition
class ReciprocalOp(UnaryOp):
    """`1 / x`."""

    name = "relax.reciprocal"
    SCALAR: ClassVar = Scalar("reciprocal", ufunc("reciprocal"), domain=Domain.FLOAT)


@op_definition
class RoundOp(UnaryOp):
    """The nearest integer, ties to even."""

    name = "relax.round"
    SCALAR: ClassVar = Scalar("round", ufunc("rint"), domain=Domain.FLOAT, idempotent=True)


@op_definition
class RsqrtOp(UnaryOp):
    """`1 / sqrt(x)`."""

    name = "relax.rsqrt"
    SCALAR: ClassVar = Scalar("rsqrt", rsqrt, domain=Domain.FLOAT)


@op_definition
class SigmoidOp(UnaryOp):
    """`1 / (1 + exp(-x))`."""

    name = "relax.sigmoid"
    SCALAR: ClassVar = Scalar("sigmoid", sigmoid, domain=Domain.FLOAT)


@op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1 as x is negative, zero or positive, as `np.sign`: +0 of both zeros, and NaN of NaN."""

    name = "relax.sign"
    SCALAR: ClassVar = Scalar("sign", ufunc("sign"), idempotent=True)


@op_definition
class SinOp(UnaryOp):
    """`sin(x)`."""

    name = "relax.sin"
    SCALAR: ClassVar = Scalar("sin", ufunc("sin"), domain=Domain.FLOAT)


@op_definition
class SinhOp(UnaryOp):
    """`sinh(x)`."""

    name = "relax.sinh"
    SCALAR: ClassVar = Scalar("sinh", ufunc("sinh"), domain=Domain.FLOAT)


@op_definition
class SqrtOp(UnaryOp):
    """The square root."""

    name = "relax.sqrt"
    SCALAR: ClassVar = Scalar("sqrt", ufunc("sqrt"), domain=Domain.FLOAT)


@op_definition
class SquareOp(UnaryOp):
    """`x * x`."""

    name = "relax.square"
    SCALAR: ClassVar = Scalar("square", ufunc("square"))


@op_definition
class TanOp(UnaryOp):
    """`tan(x)`."""

    name = "relax.tan"
    SCALAR: ClassVar = Scalar("tan", ufunc("tan"), domain=Domain.FLOAT)


@op_definition
class TanhOp(UnaryOp):
    """`tanh(x)`."""

    name = "relax.tanh"
    SCALAR: ClassVar = Scalar("tanh", ufunc("tanh"), domain=Domain.FLOAT)


@op_definition
class TruncOp(UnaryOp):
    """x without its fraction."""

    name = "relax.trunc"
    SCALAR: ClassVar = Scalar("trunc", ufunc("trunc"), domain=Domain.FLOAT, idempotent=True)
