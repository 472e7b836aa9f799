"""Conversion between element types: of values, of bytes, and of floating-point numbers and scaled integers, one by
one and in blocks.
"""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, Signedness, StringAttr, f32
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def

from relax_dialect.external import may_be_view
from relax_dialect.inference import ZERO, Inference
from relax_dialect.ops.fields import integer
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import ShapeType, TensorType
from relax_dialect.traits import Checked, Unpacks
from tir_dialect.block_formats import FORMATS, BlockFormat
from tir_dialect.dims import DimLike, floordiv, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr


@op_definition
class AstypeOp(Operator, HasFolderInterface):
    """Every element converted to a dtype.

    A float becomes an integer by dropping its fraction; outside of the range it is the end of the range, and NaN is 0.
    An integer that is too wide loses its upper bits, and a number is a true `i1` if it is not 0.

    ```mlir
    %0 = relax.astype %x dtype = f16
    ```

    C1: the dtype is in the dtype table.
    """

    name = "relax.astype"

    dtype = prop_def(Attribute)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, dtype: Attribute):
        super().__init__([x], {"dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        return (inference.tensor(0).with_dtype(inference.dtype("dtype")),)  # C1

    def fold(self) -> tuple[SSAValue] | None:
        """To the dtype that the elements have, unless somebody may write into the copy: `astype %x f32  ->  %x`."""
        return (self.x,) if self.x.type == self.result.type and may_be_view(self.result, self.x) else None


@op_definition
class ReinterpretOp(Operator):
    """The bytes of a tensor, from one on, as elements of another shape and dtype.

    ```mlir
    %0 = relax.reinterpret %x, %shape dtype = i8 offset = 4 * n
    ```

    The offset counts bytes; bytes of a number stand in little-endian order, a byte that is not 0 is a true `i1`. The
    result has memory of its own. Mirrors TVM `relax.memory.view`, whose result shares the memory of its operand.

    C1: the dtype is in the dtype table.
    C2: the offset is not negative, and a multiple of the size of an element of the result.
    C3: the operand has all bytes of the result.
    C4: no size is negative.
    """

    name = "relax.reinterpret"

    dtype = opt_prop_def(Attribute)
    offset = prop_def(DimAttr, default_value=DimAttr(0))
    x = operand_def(TensorType)
    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        shape: SSAValue | Operation,
        dtype: Attribute | None = None,
        *,
        offset: DimLike = 0,
    ):
        """Without a dtype, the result has the operand's."""
        super().__init__([x, shape], {"dtype": dtype, "offset": DimAttr(offset)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, shape, offset = inference.tensor(0), inference.sizes(1), inference.dim("offset")  # C4
        dtype = x.dtype if inference.get("dtype", Attribute) is None else inference.dtype("dtype")  # C1
        inference.require_at_most(ZERO, offset, "an offset that is not negative")  # C2
        if dtype is not None:
            size = byte_size(dtype)
            inference.require_divisible(offset, size, f"an offset in multiples of {size} bytes")  # C2
            old, new = x.known_dims, shape.known_dims
            if old is not None and new is not None and x.dtype is not None:
                there = byte_size(x.dtype) * product(old)
                inference.require_at_most(offset + size * product(new), there, "bytes that the operand has")  # C3
        return (TensorType(shape.dims, dtype, x.device),)


class QuantizationBase(Operator, ABC):
    """What both directions have in common: a scale and a zero point, as scalars or with one element per position along
    an axis.

    C1: the axis is within the rank.
    C2: scale and zero point are scalars, or have rank 1 and the dimension at the axis.
    """

    dtype = prop_def(Attribute)
    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))
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
