"""Conversion between floating-point numbers and scaled integers."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import integer
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.ops.assembly_format import op_definition


class QuantizationBase(Operator, ABC):
    """What both directions have in common: a scale and a zero point, as scalars or with one element per position along
    an axis.

    C1: the axis is within the rank.
    C2: scale and zero point are scalars, or have rank 1 and the dimension at the axis.
    """

    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))

    @classmethod
    def require_parameters(cls, inference: Inference) -> TensorType:
        """The type of the data; fails if scale or zero point do not fit it."""
        x = inference.tensor(0)
        axis = None if not x.dims else inference.axis(inference.integer("axis"), len(x.dims))  # C1
        for index in (1, 2):
            parameter = inference.tensor(index)
            if parameter.rank not in (0, 1, None):
                inference.fail(f"operand #{index} expected a scalar or rank 1, got {parameter}")  # C2
            if parameter.dims and x.dims and axis is not None:
                inference.require_expands(parameter.dims[0], x.dims[axis])  # C2
        return x


@op_definition
class QuantizeOp(QuantizationBase):
    """`clip(round(x / scale) + zero_point)`, clipped to the range of the dtype, ties rounded to even.

    ```mlir
    %0 = relax.quantize %x, %scale, %zero_point axis = 1 dtype = i8
    ```

    C1: `x` and the scale are floating-point.
    C2: the dtype is an integer one.
    """

    name = "relax.quantize"

    dtype = prop_def(Attribute)
    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation,
        zero_point: SSAValue | Operation,
        dtype: Attribute,
        axis: int = -1,
    ):
        super().__init__([x, scale, zero_point], {"dtype": dtype, "axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = cls.require_parameters(inference)
        inference.require_domain(0, Domain.FLOAT)  # C1
        inference.require_domain(1, Domain.FLOAT)  # C1
        dtype = inference.dtype("dtype")
        if not Domain.INTEGER.admits(dtype):
            inference.fail(f"dtype expected an integer dtype, got {dtype}")  # C2
        return (x.with_dtype(dtype),)


@op_definition
class DequantizeOp(QuantizationBase):
    """`(x - zero_point) * scale`.

    ```mlir
    %0 = relax.dequantize %x, %scale, %zero_point axis = 1 dtype = f32
    ```

    C1: `x` is an integer tensor and the scale floating-point.
    C2: the dtype is a floating-point one.
    """

    name = "relax.dequantize"

    dtype = prop_def(Attribute)
    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation,
        zero_point: SSAValue | Operation,
        dtype: Attribute,
        axis: int = -1,
    ):
        super().__init__([x, scale, zero_point], {"dtype": dtype, "axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = cls.require_parameters(inference)
        inference.require_domain(0, Domain.INTEGER)  # C1
        inference.require_domain(1, Domain.FLOAT)  # C1
        dtype = inference.dtype("dtype")
        if not Domain.FLOAT.admits(dtype):
            inference.fail(f"dtype expected a floating-point dtype, got {dtype}")  # C2
        return (x.with_dtype(dtype),)
