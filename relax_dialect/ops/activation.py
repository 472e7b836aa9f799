"""Activation functions and softmax."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar

from xdsl.dialects.builtin import I64, Float64Type, FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.binary import maximum, minimum
from relax_dialect.ops.fields import ExactNumber, exact_number, integer, number
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.unary import UnaryOp, erf, sigmoid
from relax_dialect.scalars import Domain, Scalar, numpy
from relax_dialect.struct_info.types import TensorType
from tir_dialect.ops.assembly_format import op_definition

SQRT_HALF = 0.7071067811865476
"""`1 / sqrt(2)`."""

SQRT_2_OVER_PI = 0.7978845608028654
"""`sqrt(2 / pi)`."""

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""The constants with which selu keeps mean 0 and variance 1 (Klambauer et al., 2017)."""


def relu(x: Any) -> Any:
    """`max(x, 0)` on arrays."""
    return maximum(x, x.dtype.type(0))


def gelu(x: Any) -> Any:
    """`x * Phi(x)` on arrays, `Phi` being the distribution function of the normal distribution."""
    return _with_share(x, erf(abs(x * SQRT_HALF)))


def gelu_tanh(x: Any) -> Any:
    """The approximation of gelu by tanh on arrays."""
    size = abs(x)
    return _with_share(x, numpy().tanh(SQRT_2_OVER_PI * (size + 0.044715 * size * size * size)))


def _with_share(x: Any, share: Any) -> Any:
    """`x / 2 * (1 + f(x))`, given `f(|x|)` of an odd function; +0 of both zeros."""
    half = x / 2
    return (half + abs(half) * share).astype(x.dtype)


def silu(x: Any) -> Any:
    """`x * sigmoid(x)` on arrays."""
    return x * sigmoid(x)


def selu(x: Any) -> Any:
    """`scale * (x if x > 0 else alpha * (exp(x) - 1))` on arrays."""
    np = numpy()
    return (SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(minimum(x, x.dtype.type(0))))).astype(x.dtype)


@op_definition
class ReluOp(UnaryOp):
    """`max(x, 0)`."""

    name = "relax.nn.relu"
    SCALAR: ClassVar = Scalar("relu", relu, idempotent=True)


@op_definition
class GeluOp(UnaryOp):
    """`x * Phi(x)`, the Gaussian error linear unit."""

    name = "relax.nn.gelu"
    SCALAR: ClassVar = Scalar("gelu", gelu, domain=Domain.FLOAT)


@op_definition
class GeluTanhOp(UnaryOp):
    """gelu by its tanh approximation."""

    name = "relax.nn.gelu_tanh"
    SCALAR: ClassVar = Scalar("gelu_tanh", gelu_tanh, domain=Domain.FLOAT)


@op_definition
class SiluOp(UnaryOp):
    """`x * sigmoid(x)`."""

    name = "relax.nn.silu"
    SCALAR: ClassVar = Scalar("silu", silu, domain=Domain.FLOAT)


@op_definition
class SeluOp(UnaryOp):
    """The scaled exponential linear unit."""

    name = "relax.nn.selu"
    SCALAR: ClassVar = Scalar("selu", selu, domain=Domain.FLOAT)


@op_definition
class LeakyReluOp(Operator):
    """`x` where it is positive, `alpha * x` elsewhere.

    ```mlir
    %0 = relax.nn.leakyrelu %x alpha = 0.1
    ```

    C1: the dtype is a floating-point one.
    """

    name = "relax.nn.leakyrelu"

    alpha = prop_def(FloatAttr[Float64Type], default_value=number(0.01))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, alpha: float = 0.01):
        super().__init__([x], {"alpha": number(alpha)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.require_domain(0, Domain.FLOAT)  # C1
        return (inference.tensor(0),)


@op_definition
class SoftplusOp(Operator):
    """`log(1 + exp(beta * x)) / beta`, and `x` where `beta * x` is above the threshold.

    ```mlir
    %0 = relax.nn.softplus %x beta = 1.0 threshold = 20.0
    ```

    C1: the dtype is a floating-point one.
    """

    name = "relax.nn.softplus"

    beta = prop_def(FloatAttr[Float64Type], default_value=number(1.0))
    threshold = prop_def(FloatAttr[Float64Type], default_value=number(20.0))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, beta: float = 1.0, threshold: float = 20.0):
        super().__init__([x], {"beta": number(beta), "threshold": number(threshold)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.require_domain(0, Domain.FLOAT)  # C1
        return (inference.tensor(0),)


@op_definition
class PreluOp(Operator):
    """`x` where it is positive, `slope * x` elsewhere, with one slope per position along an axis.

    ```mlir
    %0 = relax.nn.prelu %x, %slope axis = 1
    ```

    C1: the dtypes are equal and floating-point.
    C2: the slopes have rank 1.
    C3: the axis is within the rank.
    C4: there are as many slopes as positions, or one.
    """

    name = "relax.nn.prelu"

    axis = prop_def(IntegerAttr[I64], default_value=integer(1))
    x = operand_def(TensorType)
    slope = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, slope: SSAValue | Operation, axis: int = 1):
        super().__init__([x, slope], {"axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, slope = inference.tensor(0), inference.tensor(1)
        inference.require_domain(0, Domain.FLOAT)  # C1
        inference.common_dtype((0, 1))  # C1
        if slope.rank not in (1, None):
            inference.fail(f"operand #1 expected rank 1, got {slope}")  # C2
        if x.dims is not None:
            axis = inference.axis(inference.integer("axis"), len(x.dims))  # C3
            if slope.dims is not None:
                inference.require_expands(slope.dims[0], x.dims[axis])  # C4
        return (x,)


@op_definition
class ClipOp(Operator):
    """`min(max(x, low), high)`.

    ```mlir
    %0 = relax.clip %x min = 0.0 max = 6.0
    ```

    Of integers, the bounds are converted to their dtype.

    C1: the dtype is numeric.
    C2: the lower bound is not greater than the upper one.
    """

    name = "relax.clip"

    min = prop_def(ExactNumber)
    max = prop_def(ExactNumber)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, min: float, max: float):
        super().__init__([x], {"min": exact_number(min), "max": exact_number(max)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.require_domain(0, Domain.NUMERIC)  # C1
        low, high = inference.number("min"), inference.number("max")
        if low > high:
            inference.fail(f"expected min to be at most max, got {low} and {high}")  # C2
        return (inference.tensor(0),)


class SoftmaxBase(Operator, ABC):
    """A distribution along an axis: `%0 = relax.nn.softmax %x axis = -1`.

    C1: the dtype is a floating-point one.
    C2: the axis is within the rank.
    """

    EVALUATE: ClassVar[Callable[..., Any]]
    """The function, called with the array and the axis."""

    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, axis: int = -1):
        super().__init__([x], {"axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        inference.require_domain(0, Domain.FLOAT)  # C1
        if x.rank is not None:
            inference.axis(inference.integer("axis"), x.rank)  # C2
        return (x,)


def softmax(x: Any, axis: int) -> Any:
    """`exp(x) / sum(exp(x))` along an axis of an array, without overflow."""
    np = numpy()
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int) -> Any:
    """The logarithm of softmax along an axis of an array, without overflow."""
    np = numpy()
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@op_definition
class SoftmaxOp(SoftmaxBase):
    """`exp(x) / sum(exp(x))` along the axis."""

    name = "relax.nn.softmax"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(softmax)


@op_definition
class LogSoftmaxOp(SoftmaxBase):
    """The logarithm of softmax along the axis."""

    name = "relax.nn.log_softmax"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(log_softmax)
