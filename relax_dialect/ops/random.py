"""Random numbers as functions of a seed and a position: Philox 4x32 with ten rounds (Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", 2011).

What a position gives depends on nothing but its number and the seed, so that all positions can be computed in any
order, by any number of threads, with one result. The same text computes on arrays of NumPy and on tensor expressions:
both are unsigned integers of 64 bits here, of which 32 are used.
"""

from __future__ import annotations

from abc import ABC
from typing import Any

from xdsl.dialects.builtin import I64, Float64Type, FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import integer, number
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dtypes import finite_range
from tir_dialect.ops.assembly_format import op_definition


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
