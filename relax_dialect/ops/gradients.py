"""Gradients of pooling: what each element of the data is worth to the windows that have it."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def

from relax_dialect.inference import Inference
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.pooling import WindowPoolOp
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import DimLike
from tir_dialect.ops.assembly_format import op_definition


class PoolGradientOp(WindowPoolOp, ABC):
    """The gradient of the data of a pooling, from that of its result: `%0 = relax.grad.max_pool2d_backward %x,
    %gradient pool_size = [2, 2] strides = [2, 2]`.

    Data and properties are those of the pooling. The result has the shape and layout of the data, the gradient those of
    the pooling's result.

    C1: data and gradient have one dtype, a floating-point one.
    C2: the gradient has the shape of the pooling's result.
    """

    # said again, as the fields of a class stand before those that it inherits
    x = operand_def(TensorType)
    gradient = operand_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        gradient: SSAValue | Operation,
        pool_size: Sequence[DimLike],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str | None = None,
        out_layout: str | None = None,
    ):
        """One size, stride, padding or dilation counts for all dimensions."""
        properties = self.window_fields(
            pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout
        )
        Operator.__init__(self, [x, gradient], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        for index in (0, 1):
            inference.require_domain(index, Domain.FLOAT)  # C1
        dtype = inference.common_dtype((0, 1))  # C1
        (pooled,) = super().infer(inference)
        x, gradient = inference.tensor(0), inference.tensor(1)
        if gradient.rank not in (None, pooled.rank):
            inference.fail(f"operand #1 expected rank {pooled.rank}, got {gradient}")
        for left, right in zip(gradient.dims or (), pooled.dims or (), strict=gradient.dims is not None):
            inference.require_equal(left, right, "a gradient with the shape of the pooling's result")  # C2
        data, _ = cls._layouts(inference)
        return (TensorType(x.dims or (None,) * len(data.letters), dtype, inference.common_device()),)


@op_definition
class MaxPool2dBackwardOp(PoolGradientOp):
    """Each window's gradient goes to its greatest element, the first one of equals; to none if the window has only
    padding.
    """

    name = "relax.grad.max_pool2d_backward"
    RANK: ClassVar[int] = 2


@op_definition
class AvgPool2dBackwardOp(PoolGradientOp):
    """Each window's gradient is shared by its elements, as many as its mean was divided by."""

    name = "relax.grad.avg_pool2d_backward"
    RANK: ClassVar[int] = 2
