"""Tensors made from a shape, a rule or a seed: constants, ranges, triangles, windows of signals, and random numbers by
Philox 4x32 with ten rounds (Salmon et al., 2011).

What a position gives depends on nothing but its number and the seed, so that all positions can be computed in any
order, by any number of threads, with one result. The same text computes on arrays of NumPy and on tensor expressions:
both are unsigned integers of 64 bits here, of which 32 are used.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import I64, DenseArrayBase, Float64Type, FloatAttr, IntegerAttr, UnitAttr, f32, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import DEFAULT_PROVER, Inference
from relax_dialect.ops.fields import flag, integer, number, numbers
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import DimLike, ceildiv, maximum
from tir_dialect.dtypes import finite_range
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr


def _dtype_or(inference: Inference, dtype: Attribute | None) -> Attribute | None:
    """The property `dtype` if it is present, else the one given."""
    return inference.dtype("dtype") if inference.get("dtype", Attribute) is not None else dtype


@op_definition
class FullOp(Operator):
    """A tensor of one value: a scalar tensor or a prim.

    ```mlir
    %0 = relax.full %shape, %value dtype = f32
    ```

    Without `dtype` it is the value's.

    C1: the value is a prim or a tensor of rank 0.
    C2: no size is negative.
    """

    name = "relax.full"

    dtype = opt_prop_def(Attribute)
    shape = operand_def(ShapeType)
    value = operand_def(TensorType | PrimType)
    result = result_def(TensorType)

    def __init__(self, shape: SSAValue | Operation, value: SSAValue | Operation, dtype: Attribute | None = None):
        super().__init__([shape, value], {"dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = _dtype_or(inference, _scalar_dtype(inference, 1))
        return (TensorType(inference.sizes(0).dims, dtype),)  # C2


def _scalar_dtype(inference: Inference, index: int) -> Attribute | None:
    value = inference.operand(index)
    if isinstance(value, PrimType):
        return value.dtype
    if not isinstance(value, TensorType) or value.rank not in (0, None):
        inference.fail(f"operand #{index} expected a prim or a tensor of rank 0, got {value}")  # C1
    return value.dtype


@op_definition
class FullLikeOp(Operator):
    """A tensor of one value with the shape of another tensor.

    ```mlir
    %0 = relax.full_like %x, %value dtype = f32
    ```

    Without `dtype` it is that of `x`.

    C1: the value is a prim or a tensor of rank 0.
    """

    name = "relax.full_like"

    dtype = opt_prop_def(Attribute)
    x = operand_def(TensorType)
    value = operand_def(TensorType | PrimType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, value: SSAValue | Operation, dtype: Attribute | None = None):
        super().__init__([x, value], {"dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        _scalar_dtype(inference, 1)  # C1
        x = inference.tensor(0)
        return (x.with_dtype(_dtype_or(inference, x.dtype)),)


class FilledOp(Operator, ABC):
    """A tensor of one constant: `%0 = relax.zeros %shape dtype = f32`.

    C1: no size is negative.
    """

    VALUE: ClassVar[int]

    dtype = prop_def(Attribute)
    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(self, shape: SSAValue | Operation, dtype: Attribute):
        super().__init__([shape], {"dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        return (TensorType(inference.sizes(0).dims, inference.dtype("dtype")),)  # C1


@op_definition
class ZerosOp(FilledOp):
    """A tensor of zeros."""

    name = "relax.zeros"
    VALUE: ClassVar[int] = 0


@op_definition
class OnesOp(FilledOp):
    """A tensor of ones."""

    name = "relax.ones"
    VALUE: ClassVar[int] = 1


class FilledLikeOp(Operator, ABC):
    """A tensor of one constant with the shape of another: `%0 = relax.zeros_like %x`; without `dtype` also with its
    dtype.
    """

    VALUE: ClassVar[int]

    dtype = opt_prop_def(Attribute)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, dtype: Attribute | None = None):
        super().__init__([x], {"dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        return (x.with_dtype(_dtype_or(inference, x.dtype)),)


@op_definition
class ZerosLikeOp(FilledLikeOp):
    """A tensor of zeros like another."""

    name = "relax.zeros_like"
    VALUE: ClassVar[int] = 0


@op_definition
class OnesLikeOp(FilledLikeOp):
    """A tensor of ones like another."""

    name = "relax.ones_like"
    VALUE: ClassVar[int] = 1


@op_definition
class ArangeOp(Operator):
    """The numbers `start`, `start + step`, ... before `stop`.

    ```mlir
    %0 = relax.arange %start, %stop, %step dtype = i64
    ```

    Without `dtype` it is that of the operands. Of symbolic integers the length is known if the step is a constant.

    C1: the operands are prims of one dtype.
    C2: the step is not 0.
    """

    name = "relax.arange"

    dtype = opt_prop_def(Attribute)
    start = operand_def(PrimType)
    stop = operand_def(PrimType)
    step = operand_def(PrimType)
    result = result_def(TensorType)

    def __init__(
        self,
        start: SSAValue | Operation,
        stop: SSAValue | Operation,
        step: SSAValue | Operation,
        dtype: Attribute | None = None,
    ):
        super().__init__([start, stop, step], {"dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        start, stop, step = (inference.prim(index) for index in range(3))
        if not start.dtype == stop.dtype == step.dtype:
            inference.fail(f"expected operands of one dtype, got {start.dtype}, {stop.dtype} and {step.dtype}")  # C1
        length = None
        stride = None if step.value is None else step.value.constant_value
        if stride == 0:
            inference.fail("expected a step that is not 0")  # C2
        if start.value is not None and stop.value is not None and stride is not None:
            span = stop.value - start.value if stride > 0 else start.value - stop.value
            length = DEFAULT_PROVER.simplify(maximum(ceildiv(span, abs(stride)), 0))
        return (TensorType((length,), _dtype_or(inference, start.dtype)),)


class TriangleOp(Operator, ABC):
    """A batch of matrices with zeros on one side of a diagonal: `%0 = relax.tril %x k = 1`.

    Diagonal `k` is `k` positions above the main one.

    C1: the rank is at least 2.
    """

    NUMPY_NAME: ClassVar[str]

    k = prop_def(DimAttr, default_value=DimAttr(0))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, k: DimLike = 0):
        super().__init__([x], {"k": DimAttr(k)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        if x.rank is not None and x.rank < 2:
            inference.fail(f"expected rank 2 or more, got {x}")  # C1
        return (x,)


@op_definition
class TrilOp(TriangleOp):
    """The lower triangle: zeros above the diagonal."""

    name = "relax.tril"
    NUMPY_NAME: ClassVar[str] = "tril"


@op_definition
class TriuOp(TriangleOp):
    """The upper triangle: zeros below the diagonal."""

    name = "relax.triu"
    NUMPY_NAME: ClassVar[str] = "triu"


@op_definition
class EyeOp(Operator):
    """A matrix with ones on a diagonal, `k` positions above the main one, and zeros elsewhere.

    ```mlir
    %0 = relax.eye rows = n columns = m k = 1 dtype = f32
    ```

    C1: neither number is negative.
    """

    name = "relax.eye"

    rows = prop_def(DimAttr)
    columns = prop_def(DimAttr)
    k = prop_def(IntegerAttr[I64], default_value=integer(0))
    dtype = prop_def(Attribute)
    result = result_def(TensorType)

    def __init__(self, rows: DimLike, columns: DimLike, k: int = 0, *, dtype: Attribute):
        super().__init__([], {"rows": DimAttr(rows), "columns": DimAttr(columns), "k": integer(k), "dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        return (TensorType((inference.size("rows"), inference.size("columns")), inference.dtype("dtype")),)  # C1


@op_definition
class EyeLikeOp(Operator):
    """A matrix with ones on a diagonal and the shape of another; without `dtype` also its dtype.

    ```mlir
    %0 = relax.eye_like %x k = 1
    ```

    C1: the rank is 2.
    """

    name = "relax.eye_like"

    k = prop_def(IntegerAttr[I64], default_value=integer(0))
    dtype = opt_prop_def(Attribute)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, k: int = 0, dtype: Attribute | None = None):
        super().__init__([x], {"k": integer(k), "dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        if x.rank not in (2, None):
            inference.fail(f"expected rank 2, got {x}")  # C1
        return (x.with_dtype(_dtype_or(inference, x.dtype)),)


@op_definition
class CosineWindowOp(Operator):
    """A window that is a sum of cosines with alternating signs: `a[0] - a[1] cos(t) + a[2] cos(2 t) - ...`.

    ```mlir
    %0 = relax.cosine_window length = n coefficients = [0.5, 0.5] periodic
    ```

    `t` goes from 0 to 2 pi: with `periodic` the end is one position after the last one, else at it; a symmetric window
    of one position is at 0. `[0.5, 0.5]` is the Hann window, `[0.54, 0.46]` about the Hamming window, `[0.42, 0.5,
    0.08]` the Blackman window.

    C1: the dtype is a floating-point one.
    C2: there is at least one coefficient.
    C3: the length is not negative.
    """

    name = "relax.cosine_window"

    length = prop_def(DimAttr)
    coefficients = prop_def(DenseArrayBase.constr(f64))
    periodic = opt_prop_def(UnitAttr)
    dtype = prop_def(Attribute, default_value=f32)
    result = result_def(TensorType)

    def __init__(
        self, length: DimLike, coefficients: Sequence[float], *, periodic: bool = False, dtype: Attribute = f32
    ):
        properties = {
            "length": DimAttr(length),
            "coefficients": numbers(coefficients),
            "periodic": flag(periodic),
            "dtype": dtype,
        }
        super().__init__([], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = inference.dtype("dtype")
        if not Domain.FLOAT.admits(dtype):
            inference.fail(f"dtype expected a floating-point dtype, got {dtype}")  # C1
        if len(inference.require("coefficients", DenseArrayBase)) == 0:
            inference.fail("expected at least one coefficient")  # C2
        return (TensorType((inference.size("length"),), dtype),)  # C3


class RandomOp(Operator, ABC):
    """A tensor of independent random numbers: `%0 = relax.random.uniform %seed, %shape dtype = f32`.

    A pure function: the same seed gives the same numbers, on any machine, with any number of threads, in every mode but
    for rounding. Whoever wants others gives another seed, for instance one that is a parameter. The streams of a seed
    are independent of each other. An element comes of the seed, the stream and its position in row-major order by
    Philox 4x32-10, with 24 or 32 random bits, those of `f64` with 53.

    C1: the seed is an `i64`.
    C2: no size is negative.
    C3: the dtype is floating-point.
    C4: the stream is not negative.
    """

    dtype = prop_def(Attribute, default_value=f32)
    stream = prop_def(IntegerAttr[I64], default_value=integer(0))
    seed = operand_def(PrimType)
    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        seed = inference.prim(0)
        if seed.dtype not in (i64, None):
            inference.fail(f"operand #0 expected the dtype i64, got {seed}")  # C1
        if inference.integer("stream") < 0:
            inference.fail(f"stream expected a number that is not negative, got {inference.integer('stream')}")  # C4
        dtype = inference.dtype("dtype")
        if not Domain.FLOAT.admits(dtype):
            inference.fail(f"dtype expected {Domain.FLOAT.value}, got {dtype}")  # C3
        cls.check_parameters(inference, dtype)
        return (TensorType(inference.sizes(1).dims, dtype),)  # C2

    @classmethod
    def check_parameters(cls, inference: Inference, dtype: Attribute) -> None:
        """Fails for numbers that describe no distribution over the numbers of a dtype."""


@op_definition
class RandomUniformOp(RandomOp):
    """Numbers from `low` to `high`, all equally likely.

    ```mlir
    %0 = relax.random.uniform %seed, %shape low = -1.0 high = 1.0 dtype = f32
    ```

    `low` can come up; `high` cannot, but for rounding.

    C1: `high` is not below `low`, and both and their distance are finite numbers of the dtype.
    """

    name = "relax.random.uniform"

    low = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    high = prop_def(FloatAttr[Float64Type], default_value=number(1.0))

    def __init__(
        self,
        seed: SSAValue | Operation,
        shape: SSAValue | Operation,
        *,
        low: float = 0.0,
        high: float = 1.0,
        dtype: Attribute = f32,
        stream: int = 0,
    ):
        properties = {"low": number(low), "high": number(high), "dtype": dtype, "stream": integer(stream)}
        super().__init__([seed, shape], properties)

    @classmethod
    def check_parameters(cls, inference: Inference, dtype: Attribute) -> None:
        low, high = inference.number("low"), inference.number("high")
        least, greatest = finite_range(dtype)
        if not (least <= low <= high <= greatest and high - low <= greatest):
            inference.fail(f"expected low <= high, at a distance that {dtype} has, got {low} and {high}")  # C1


@op_definition
class RandomNormalOp(RandomOp):
    """Normally distributed numbers.

    ```mlir
    %0 = relax.random.normal %seed, %shape mean = 0.0 scale = 2.0 dtype = f64
    ```

    `scale` is the standard deviation. By the formula of Box and Muller.

    C1: mean and scale are finite numbers of the dtype, and the scale is not negative.
    """

    name = "relax.random.normal"

    mean = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    scale = prop_def(FloatAttr[Float64Type], default_value=number(1.0))

    def __init__(
        self,
        seed: SSAValue | Operation,
        shape: SSAValue | Operation,
        *,
        mean: float = 0.0,
        scale: float = 1.0,
        dtype: Attribute = f32,
        stream: int = 0,
    ):
        properties = {"mean": number(mean), "scale": number(scale), "dtype": dtype, "stream": integer(stream)}
        super().__init__([seed, shape], properties)

    @classmethod
    def check_parameters(cls, inference: Inference, dtype: Attribute) -> None:
        mean, scale = inference.number("mean"), inference.number("scale")
        least, greatest = finite_range(dtype)
        if not (least <= mean <= greatest and 0 <= scale <= greatest):
            inference.fail(
                f"expected a mean, and a scale of at least 0, that {dtype} has, got {mean} and {scale}"
            )  # C1


ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW = 0xFFFFFFFF


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Four words of 32 bits for a counter and a key of such words."""
    a, b, c, d = counter
    left, right = key
    for _ in range(ROUNDS):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (second >> 32) ^ b ^ left, second & _LOW, (first >> 32) ^ d ^ right, first & _LOW
        left, right = (left + _WEYL[0]) & _LOW, (right + _WEYL[1]) & _LOW
    return a, b, c, d


def words(seed: Any, stream: int, position: Any) -> tuple[Any, Any, Any, Any]:
    """Four words of 32 bits for a position in a stream of a seed, of 64 bits each."""
    none = position & 0
    counter = position & _LOW, position >> 32, none + (stream & _LOW), none + (stream >> 32)
    return philox(counter, (seed & _LOW, seed >> 32))


def fraction(high: Any, low: Any) -> Any:
    """An integer of 53 bits from two words; over `2 ** 53` it is in [0, 1)."""
    return ((high >> 5) << 26) | (low >> 6)
