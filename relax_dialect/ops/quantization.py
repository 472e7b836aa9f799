"""Conversion between floating-point numbers and scaled integers, one by one and in blocks."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, Signedness, StringAttr, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import integer
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from relax_dialect.traits import Checked, Unpacks
from tir_dialect.block_formats import FORMATS, BlockFormat
from tir_dialect.dims import floordiv
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


@op_definition
class DequantizeBlocksOp(Operator):
    """The numbers that blocks of bytes stand for: from `[rows, bytes of a row]` to `[rows, columns]`.

    ```mlir
    %0 = relax.dequantize_blocks %packed format = "q4_1"
    ```

    The formats are those of GGUF files (`tir_dialect/block_formats.py`). A row is a sequence of whole blocks: 20 bytes
    are 32 columns of `q4_1`. Numbers are decoded in `f32` and rounded to the dtype.

    C1: the operand is `ui8` of rank 1 or more.
    C2: the format is one of the table.
    C3: the last dimension is a multiple of the bytes of a block.
    C4: the dtype is a floating-point one.
    """

    name = "relax.dequantize_blocks"

    traits = traits_def(Checked(), Unpacks())

    format = prop_def(StringAttr)
    dtype = prop_def(Attribute, default_value=f32)
    packed = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, packed: SSAValue | Operation, format: str, dtype: Attribute = f32):
        super().__init__([packed], {"format": StringAttr(format), "dtype": dtype})

    @property
    def block_format(self) -> BlockFormat:
        """How a block is decoded."""
        return FORMATS[self.format.data]

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        packed, name = inference.tensor(0), inference.string("format")
        if packed.dtype not in (None, _BYTE) or packed.rank == 0:
            inference.fail(f"operand #0 expected ui8 of rank 1 or more, got {packed}")  # C1
        if name not in FORMATS:
            inference.fail(f"format expected one of {', '.join(FORMATS)}, got {name}")  # C2
        dtype, block_format = inference.dtype("dtype"), FORMATS[name]
        if not Domain.FLOAT.admits(dtype):
            inference.fail(f"dtype expected a floating-point dtype, got {dtype}")  # C4
        if packed.dims is None:
            return (packed.with_dtype(dtype),)
        *outer, row = packed.dims
        whole = f"a row of blocks of {block_format.bytes} bytes"
        inference.require_divisible(row, block_format.bytes, whole)  # C3
        columns = None if row is None else floordiv(row, block_format.bytes) * block_format.elements
        return (packed.with_dtype(dtype).with_shape((*outer, columns)),)


_BYTE = IntegerType(8, Signedness.UNSIGNED)
