"""Binary elementwise operators with broadcasting, and the ternary ones: one row each."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.operator import ElementwiseOp
from relax_dialect.scalars import Domain, Scalar, numpy, ufunc
from relax_dialect.struct_info.types import TensorType
from tir_dialect.ops.assembly_format import op_definition


class BroadcastOp(ElementwiseOp, ABC):
    """Applies a scalar function to the elements of tensors that are broadcast to one shape, as NumPy does.

    Two dimensions go together if they are equal or one is 1. Where that can be proved, the result's dimension is
    known; where it is provably wrong, the op is; else it is `broadcast(n, m)`, and a check remains for run time.

    C1: the dtypes are equal; there is no promotion.
    C2: the dtype is in the function's domain.
    C3: the shapes broadcast.
    """

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = inference.common_dtype(range(len(inference.operand_types)))  # C1
        inference.require_domain(0, cls.SCALAR.domain)  # C2
        shape = inference.broadcast_all()  # C3
        return (TensorType(shape, cls.SCALAR.result_dtype(dtype), inference.common_device()),)


class BinaryOp(BroadcastOp, ABC):
    """A function of two tensors: `%0 = relax.add %x, %y`. See `BroadcastOp` for shapes."""

    x = operand_def(TensorType)
    y = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, y: SSAValue | Operation):
        super().__init__([x, y])


def divide(x: Any, y: Any) -> Any:
    """`x / y` on arrays; the quotient of integers is rounded toward zero."""
    np = numpy()
    if np.issubdtype(x.dtype, np.inexact) or x.dtype.kind == "V":
        return np.divide(x, y)
    quotient = np.floor_divide(x, y)
    is_below = (quotient * y != x) & ((x < 0) != (y < 0)) & (y != 0)
    return (quotient + is_below).astype(x.dtype)


def power(x: Any, y: Any) -> Any:
    """`x ** y` on arrays; of integers rounded toward zero, and 0 for 0 to a negative power."""
    np = numpy()
    if x.dtype.kind == "u":
        return np.power(x, y)
    if x.dtype.kind != "i":
        # NumPy takes the root where all exponents are one half: IEEE 754 has positive powers of -0 and -inf.
        is_root = (y == 0.5) & ((x == 0) | (x == -np.inf))
        return np.where(is_root, abs(x), np.power(x, y))
    unit = np.where((y & 1) == 1, x, 1)
    inverse = np.where(abs(x) == 1, unit, 0)
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0))).astype(x.dtype)


def maximum(x: Any, y: Any) -> Any:
    """The greater of both on arrays, NaN if one is; +0 is greater than -0, of which NumPy gives either."""
    np = numpy()
    found = np.maximum(x, y)
    return found if x.dtype.kind in "iub" else np.where((x == y) & (x == 0), x + y, found)


def minimum(x: Any, y: Any) -> Any:
    """The lesser of both on arrays, NaN if one is; -0 is less than +0, of which NumPy gives either."""
    np = numpy()
    found = np.minimum(x, y)
    return found if x.dtype.kind in "iub" else np.where((x == y) & (x == 0), -(-x - y), found)


def multiply_add(x: Any, y: Any, z: Any) -> Any:
    """`x * y + z` on arrays; of floats rounded once."""
    np = numpy()
    if x.dtype.kind in "iub":
        return np.add(np.multiply(x, y), z)
    from tir_dialect.interpreter.numerics import multiply_add_lanes

    lanes = np.broadcast_arrays(x, y, z)
    return np.reshape(multiply_add_lanes(*(each.ravel() for each in lanes)), lanes[0].shape)


@op_definition
class AddOp(BinaryOp):
    """`x + y`."""

    name = "relax.add"
    SCALAR: ClassVar = Scalar("add", ufunc("add"), commutative=True, associative=True, identity=0)


@op_definition
class Atan2Op(BinaryOp):
    """The angle of the point (y, x), signs of both arguments considered: `arctan2(x, y)`."""

    name = "relax.atan2"
    SCALAR: ClassVar = Scalar("atan2", ufunc("arctan2"), domain=Domain.FLOAT)


@op_definition
class BitwiseAndOp(BinaryOp):
    """`x & y`."""

    name = "relax.bitwise_and"
    SCALAR: ClassVar = Scalar(
        "bitwise_and", ufunc("bitwise_and"), domain=Domain.BITS, commutative=True, associative=True, idempotent=True
    )


@op_definition
class BitwiseOrOp(BinaryOp):
    """`x | y`."""

    name = "relax.bitwise_or"
    SCALAR: ClassVar = Scalar(
        "bitwise_or", ufunc("bitwise_or"), domain=Domain.BITS, commutative=True, associative=True, idempotent=True
    )


@op_definition
class BitwiseXorOp(BinaryOp):
    """`x ^ y`."""

    name = "relax.bitwise_xor"
    SCALAR: ClassVar = Scalar(
        "bitwise_xor", ufunc("bitwise_xor"), domain=Domain.BITS, commutative=True, associative=True
    )


@op_definition
class DivideOp(BinaryOp):
    """`x / y`; of integers, the quotient rounded toward zero, and 0 if y is 0."""

    name = "relax.divide"
    SCALAR: ClassVar = Scalar("divide", divide, identity=1)


@op_definition
class EqualOp(BinaryOp):
    """`x == y`."""

    name = "relax.equal"
    SCALAR: ClassVar = Scalar("equal", ufunc("equal"), domain=Domain.ANY, predicate=True, commutative=True)


@op_definition
class FloorDivideOp(BinaryOp):
    """The greatest integer that is not greater than `x / y`, a zero with its sign; of integers, 0 if y is 0."""

    name = "relax.floor_divide"
    SCALAR: ClassVar = Scalar("floor_divide", ufunc("floor_divide"), identity=1)


@op_definition
class FloorModOp(BinaryOp):
    """What is left of x after floor division: the sign is that of y, also of 0; of integers, 0 if y is 0."""

    name = "relax.floor_mod"
    SCALAR: ClassVar = Scalar("floor_mod", ufunc("mod"))


@op_definition
class GreaterOp(BinaryOp):
    """`x > y`."""

    name = "relax.greater"
    SCALAR: ClassVar = Scalar("greater", ufunc("greater"), predicate=True)


@op_definition
class GreaterEqualOp(BinaryOp):
    """`x >= y`."""

    name = "relax.greater_equal"
    SCALAR: ClassVar = Scalar("greater_equal", ufunc("greater_equal"), predicate=True)


@op_definition
class LeftShiftOp(BinaryOp):
    """`x << y`."""

    name = "relax.left_shift"
    SCALAR: ClassVar = Scalar("left_shift", ufunc("left_shift"), domain=Domain.INTEGER, identity=0)


@op_definition
class LessOp(BinaryOp):
    """`x < y`."""

    name = "relax.less"
    SCALAR: ClassVar = Scalar("less", ufunc("less"), predicate=True)


@op_definition
class LessEqualOp(BinaryOp):
    """`x <= y`."""

    name = "relax.less_equal"
    SCALAR: ClassVar = Scalar("less_equal", ufunc("less_equal"), predicate=True)


@op_definition
class LogAddExpOp(BinaryOp):
    """`log(exp(x) + exp(y))`, without overflow."""

    name = "relax.log_add_exp"
    SCALAR: ClassVar = Scalar("log_add_exp", ufunc("logaddexp"), domain=Domain.FLOAT, commutative=True)


@op_definition
class LogicalAndOp(BinaryOp):
    """`x and y`."""

    name = "relax.logical_and"
    SCALAR: ClassVar = Scalar(
        "logical_and", ufunc("logical_and"), domain=Domain.BOOL, commutative=True, associative=True, idempotent=True
    )


@op_definition
class LogicalOrOp(BinaryOp):
    """`x or y`."""

    name = "relax.logical_or"
    SCALAR: ClassVar = Scalar(
        "logical_or", ufunc("logical_or"), domain=Domain.BOOL, commutative=True, associative=True, idempotent=True
    )


@op_definition
class LogicalXorOp(BinaryOp):
    """`x != y` of truth values."""

    name = "relax.logical_xor"
    SCALAR: ClassVar = Scalar(
        "logical_xor", ufunc("logical_xor"), domain=Domain.BOOL, commutative=True, associative=True
    )


@op_definition
class MaximumOp(BinaryOp):
    """The greater of both, NaN if one is; +0 is greater than -0."""

    name = "relax.maximum"
    SCALAR: ClassVar = Scalar("maximum", maximum, commutative=True, associative=True, idempotent=True)


@op_definition
class MinimumOp(BinaryOp):
    """The lesser of both, NaN if one is; -0 is less than +0."""

    name = "relax.minimum"
    SCALAR: ClassVar = Scalar("minimum", minimum, commutative=True, associative=True, idempotent=True)


@op_definition
class ModOp(BinaryOp):
    """What is left of x after division toward zero: the sign is that of x; of integers, 0 if y is 0."""

    name = "relax.mod"
    SCALAR: ClassVar = Scalar("mod", ufunc("fmod"))


@op_definition
class MultiplyOp(BinaryOp):
    """`x * y`."""

    name = "relax.multiply"
    SCALAR: ClassVar = Scalar(
        "multiply", ufunc("multiply"), commutative=True, associative=True, identity=1, absorbing=0
    )


@op_definition
class NotEqualOp(BinaryOp):
    """`x != y`."""

    name = "relax.not_equal"
    SCALAR: ClassVar = Scalar("not_equal", ufunc("not_equal"), domain=Domain.ANY, predicate=True, commutative=True)


@op_definition
class PowerOp(BinaryOp):
    """`x ** y`; of integers rounded toward zero, and 0 for 0 to a negative power."""

    name = "relax.power"
    SCALAR: ClassVar = Scalar("power", power, identity=1)


@op_definition
class RightShiftOp(BinaryOp):
    """`x >> y`, arithmetic for signed integers."""

    name = "relax.right_shift"
    SCALAR: ClassVar = Scalar("right_shift", ufunc("right_shift"), domain=Domain.INTEGER, identity=0)


@op_definition
class SubtractOp(BinaryOp):
    """`x - y`."""

    name = "relax.subtract"
    SCALAR: ClassVar = Scalar("subtract", ufunc("subtract"), identity=0)


@op_definition
class EwiseFmaOp(BroadcastOp):
    """`x * y + z`, of floats rounded once: `%0 = relax.ewise_fma %x, %y, %z`."""

    name = "relax.ewise_fma"
    SCALAR: ClassVar = Scalar("ewise_fma", multiply_add)

    x = operand_def(TensorType)
    y = operand_def(TensorType)
    z = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, y: SSAValue | Operation, z: SSAValue | Operation):
        super().__init__([x, y, z])
