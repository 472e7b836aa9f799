"""Linear algebra."""

from __future__ import annotations

from functools import reduce

from lowering.relax_to_tir.elementwise import narrow, widen
from lowering.relax_to_tir.indices import broadcast_index, broadcast_load
from lowering.relax_to_tir.kernel import Kernel, legalizes
from relax_dialect.ops.linear_algebra import EinsumOp, MatmulOp, OuterOp
from tir_dialect import te
from tir_dialect.dims import Dim, broadcast


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


@legalizes(OuterOp)
def outer(kernel: Kernel, op: OuterOp) -> te.Tensor:
    """All products."""
    x, y = kernel.tensor(op.x), kernel.tensor(op.y)
    return te.compute(kernel.shape(op.result), lambda *i: narrow(widen(x[i[0]]) * widen(y[i[1]]), x), name="outer")


@legalizes(EinsumOp)
def einsum(kernel: Kernel, op: EinsumOp) -> te.Tensor:
    """Sums of products over the letters that are not in the result."""
    tensors = [kernel.tensor(operand) for operand in op.inputs]
    groups, output = op.letters
    extents: dict[str, Dim] = {}
    for tensor, letters in zip(tensors, groups, strict=True):
        for letter, extent in zip(letters, tensor.shape, strict=True):
            known = extents.get(letter, extent)
            extents[letter] = extent if known is extent else broadcast(known, extent)
    extents.update(zip(output, kernel.shape(op.result), strict=True))
    summed = {letter: te.reduce_axis(extent, letter) for letter, extent in extents.items() if letter not in output}

    def element(*i: te.Expr) -> te.Expr:
        positions: dict[str, te.Expr] = {**summed, **dict(zip(output, i, strict=True))}
        factors: list[te.Expr] = []
        for tensor, letters in zip(tensors, groups, strict=True):
            shape, index = [extents[letter] for letter in letters], [positions[letter] for letter in letters]
            factors.append(widen(broadcast_load(tensor, shape, index)))
        value = reduce(lambda a, b: a * b, factors)
        return narrow(te.sum(value, list(summed.values())) if summed else value, tensors[0])

    return te.compute(kernel.shape(op.result), element, name="einsum")
