"""Neural-network layers that are neither activations nor sums of products."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, Float64Type, FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import integer, number
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.base import known_dims
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, floordiv, product
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class DropoutOp(Operator):
    """The tensor itself: elements are only dropped when a model is trained.

    ```mlir
    %0 = relax.nn.dropout %x rate = 0.5
    ```

    C1: the dtype is a floating-point one.
    C2: the rate is at least 0 and below 1.
    """

    name = "relax.nn.dropout"

    rate = prop_def(FloatAttr[Float64Type], default_value=number(0.5))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, rate: float = 0.5):
        super().__init__([x], {"rate": number(rate)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.require_domain(0, Domain.FLOAT)  # C1
        if not 0 <= inference.number("rate") < 1:
            inference.fail(f"expected a rate of at least 0 and below 1, got {inference.number('rate')}")  # C2
        return (inference.tensor(0),)


@op_definition
class BatchFlattenOp(Operator):
    """All dimensions but the first as one.

    ```mlir
    %0 = relax.nn.batch_flatten %x
    ```

    C1: the rank is at least 1.
    """

    name = "relax.nn.batch_flatten"

    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        if x.dims is None:
            return (x.with_shape((None, None)),)
        if not x.dims:
            inference.fail(f"expected rank 1 or more, got {x}")  # C1
        rest = known_dims(x.dims[1:])
        return (x.with_shape((x.dims[0], None if rest is None else product(rest))),)


@op_definition
class PixelShuffleOp(Operator):
    """Channels laid out in space: from `[..., c * r * r, h, w]` to `[..., c, h * r, w * r]`.

    ```mlir
    %0 = relax.nn.pixel_shuffle %x upscale_factor = 2
    ```

    C1: the rank is at least 3.
    C2: the factor is at least 1.
    C3: the channels are a multiple of the factor's square.
    """

    name = "relax.nn.pixel_shuffle"

    upscale_factor = prop_def(IntegerAttr[I64])
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, upscale_factor: int):
        super().__init__([x], {"upscale_factor": integer(upscale_factor)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, factor = inference.tensor(0), inference.integer("upscale_factor")
        if factor < 1:
            inference.fail(f"expected a factor of at least 1, got {factor}")  # C2
        if x.dims is None:
            return (x,)
        if len(x.dims) < 3:
            inference.fail(f"expected rank 3 or more, got {x}")  # C1
        *outer, channels, height, width = x.dims
        inference.require_divisible(channels, factor * factor, f"channels in multiples of {factor * factor}")  # C3
        left = None if channels is None else floordiv(channels, factor * factor)
        return (x.with_shape((*outer, left, _times(height, factor), _times(width, factor))),)


def _times(dim: Dim | None, factor: int) -> Dim | None:
    return None if dim is None else factor * dim
