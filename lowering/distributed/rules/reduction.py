"""How reductions may be shared.

R1: along every dimension that stays.
R2: `sum`, `prod`, `max` and `min` along a reduced dimension: each worker has a term. Of empty tiles there is no
greatest element, so that workers have to divide the dimension.
R3: running sums and products along every dimension but their axis.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.reduction import (
    CumprodOp,
    CumsumOp,
    MaxOp,
    MeanOp,
    MedianOp,
    MinOp,
    ProdOp,
    ReductionOp,
    ScanOp,
    StdOp,
    SumOp,
    VarianceOp,
)

_TERMS: dict[type[ReductionOp], str] = {SumOp: "sum", ProdOp: "prod", MaxOp: "max", MinOp: "min"}


def reduction(op: ReductionOp) -> Factors:
    """R1, R2."""
    rank = len(dims(op.x))
    axes = range(rank) if op.axes is None else [axis % rank for axis in op.axes.get_values()]
    by = _TERMS.get(type(op))
    operand = named("d", rank, () if by else list(axes))
    kept = [None if at in axes else f"d{at}" for at in range(rank) if op.keepdims is not None or at not in axes]
    return Factors([operand], [tuple(kept)], {f"d{axis}": by for axis in axes} if by else {})


for _op in (*_TERMS, MeanOp, VarianceOp, StdOp, MedianOp):
    shards(_op)(reduction)


def scan(op: ScanOp) -> Factors | None:
    """R3; without an axis the elements are in one row."""
    rank = len(dims(op.x))
    if op.axis is None:
        return None
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])


for _op in (CumsumOp, CumprodOp):
    shards(_op)(scan)
