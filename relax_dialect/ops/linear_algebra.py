"""Linear algebra."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.base import Shape
from relax_dialect.struct_info.types import TensorType


@irdl_op_definition
class MatmulOp(Operator):
    """The matrix product, batched over leading dimensions that broadcast, as NumPy's `matmul`.

    ```mlir
    %0 = relax.matmul %x, %y
    %1 = relax.matmul %x, %y out_dtype = f32
    ```

    A vector on the left is a row, on the right a column, and its dimension is not in the result. With `out_dtype`
    products are summed in that dtype. Mirrors TVM `relax.matmul`.

    C1: the dtypes are equal.
    C2: neither operand is a scalar.
    C3: the contracted dimensions are equal.
    C4: the leading dimensions broadcast.
    """

    name = "relax.matmul"

    out_dtype = opt_prop_def(Attribute)
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, y: SSAValue | Operation, out_dtype: Attribute | None = None):
        super().__init__([x, y], {"out_dtype": out_dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = inference.common_dtype((0, 1))  # C1
        if inference.get("out_dtype", Attribute) is not None:
            dtype = inference.dtype("out_dtype")
        shape = _matmul_shape(inference, inference.tensor(0).dims, inference.tensor(1).dims)
        return (TensorType(shape, dtype, inference.common_device()),)


def _matmul_shape(inference: Inference, x: Shape, y: Shape) -> Shape:
    if (x is not None and len(x) == 0) or (y is not None and len(y) == 0):
        inference.fail("expected operands of rank 1 or more, got a scalar")  # C2
    if x is None or y is None:
        return None
    row, inner = x[-2:-1], x[-1]
    column = y[-1:] if len(y) > 1 else ()
    inference.require_equal(inner, y[-2] if len(y) > 1 else y[0], "equal contracted dimensions")  # C3
    batch = inference.broadcast_shapes(x[:-2], y[:-2])  # C4
    return (*(batch or ()), *row, *column)
