"""How padding may be shared.

PD1: along every dimension that is not padded.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.padding import PadOp


@shards(PadOp)
def pad(op: PadOp) -> Factors:
    """PD1."""
    rank, widths = len(dims(op.x)), op.pad_width.get_values()
    labels = named("d", rank, [at for at in range(rank) if widths[2 * at] or widths[2 * at + 1]])
    return Factors([labels], [labels])
