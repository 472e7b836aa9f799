"""Tensors whose elements go where an index map says."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import axes
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import element
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.ops.index_maps import MapIndicesOp, mapped
from tir_dialect import te
from tir_dialect.dims import product


@legalizes(MapIndicesOp)
def map_indices(kernel: Kernel, op: MapIndicesOp) -> te.Tensor:
    """The value in all positions, unless each has an element; then every element to its own."""
    x, shape, dtype = kernel.tensor(op.x), kernel.shape(op.result), str(kernel.dtype(op.result))
    is_full = DEFAULT_PROVER.equal(product(x.shape), product(shape)) is True

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        if not is_full:
            with b.block("pad_value", *axes(shape)) as position:
                b.store(outs[0], position, element(op.pad_value.value.data, x.dtype))
        with b.block("map_indices", *axes(x.shape)) as index:
            b.store(outs[0], mapped(op.index_map.data, index), x[index])

    return te.extern([(shape, dtype)], [x], body, name="map_indices")[0]
