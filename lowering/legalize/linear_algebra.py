"""Linear algebra."""

from __future__ import annotations

from lowering.legalize.broadcasting import broadcast_index
from lowering.legalize.context import legalizes
from lowering.legalize.kernel import Kernel
from lowering.legalize.scalars import widen
from relax_dialect.ops.linear_algebra import MatmulOp
from tir_dialect import te


@legalizes(MatmulOp)
def matmul(kernel: Kernel, op: MatmulOp) -> te.Tensor:
    """Sums of products over the contracted axis, in the dtype of the result; 16-bit floats are summed in `f32`."""
    x, y = kernel.tensor(op.x), kernel.tensor(op.y)
    shape, dtype = kernel.shape(op.result), str(kernel.dtype(op.result))
    rows, columns = int(x.ndim > 1), int(y.ndim > 1)
    rank = len(shape) - rows - columns
    r = te.reduce_axis(x.shape[-1], "r")

    def element(*i: te.Expr) -> te.Expr:
        batch, row, column = i[:rank], i[rank : rank + rows], i[len(i) - columns :]
        left = x[(*broadcast_index(x.shape[:-2], shape[:rank], batch), *row, r)]
        right = y[(*broadcast_index(y.shape[:-2], shape[:rank], batch), r, *column)]
        return te.cast(te.sum(widen(te.cast(left, dtype)) * widen(te.cast(right, dtype)), r), dtype)

    return te.compute(shape, element, name="matmul")
