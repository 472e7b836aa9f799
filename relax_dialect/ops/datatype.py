"""Conversion between element types, of values and of bytes."""

from __future__ import annotations

from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import ZERO, Inference
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import DimLike, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.assembly_format import op_definition


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
        from relax_dialect.analysis.effects import may_be_view

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
