"""Elements that stand several times side by side."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.legalize.indices import axes
from tir_dialect import te
from tir_dialect.dims import Dim, constant


def repeated(x: te.Tensor, shape: Sequence[Dim], axis: int, times: int, name: str) -> te.Tensor:
    """Each element `times` times along an axis; `shape` is that of the result.

    Whole rows are found by a quotient. Copies within a row are stored beside each other, so that no place of an element
    is computed: neighbours in memory stay neighbours.
    """
    if axis < x.ndim - 1 or times < 2:
        return te.compute(shape, lambda *i: x[(*i[:axis], i[axis] // times, *i[axis + 1 :])], name=name)

    def copy(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block(name, *axes([*x.shape, constant(times)])) as i:
            b.store(outs[0], (*i[:axis], i[axis] * times + i[-1]), x[i[:-1]])

    return te.extern([(shape, x.dtype)], [x], copy, name=name)[0]
