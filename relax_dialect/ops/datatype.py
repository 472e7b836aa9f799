"""Conversion between element types."""

from __future__ import annotations

from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType


@irdl_op_definition
class AstypeOp(Operator, HasFolderInterface):
    """Every element converted to a dtype; a float becomes an integer by dropping its fraction.

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
        from relax_dialect.canonicalization.reading import is_only_read

        return (self.x,) if self.x.type == self.result.type and is_only_read(self.result) else None
