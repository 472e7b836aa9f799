"""How attention may be shared.

T1: along the batch.
T2: along the heads. Where a head of keys serves several of queries, workers have to divide both numbers.
T3: along the queries, unless a causal mask counts them.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, dims, shards
from relax_dialect.inference import ONE
from relax_dialect.ops.attention import AttentionBiasOp, AttentionOp
from relax_dialect.ops.layouts import Layout


@shards(AttentionOp, AttentionBiasOp)
def attention(op: AttentionOp | AttentionBiasOp) -> Factors:
    """T1, T2, T3."""
    free = "q" if op.causal_mask is None else None
    queries: dict[str, str | None] = {"B": "b", "S": free, "H": "h", "D": None}
    keys: dict[str, str | None] = queries | {"S": None}
    q, k, v, out = op.layouts

    def labels(layout: Layout, by: dict[str, str | None]) -> Labels:
        return tuple(by[letter] for letter in layout.letters)

    whole = set[str]()
    operands: list[Labels] = [labels(q, queries), labels(k, keys), labels(v, keys)]
    if isinstance(op, AttentionBiasOp):
        sizes = dict(zip(operands[0], dims(op.q), strict=True))
        order = ("b", "h", free, None)
        own: list[str | None] = []
        for dim, label in zip(bias := dims(op.bias), order[len(order) - len(bias) :], strict=True):
            own.append(label if label is not None and dim == sizes.get(label) else None)
            if label is not None and dim not in (sizes.get(label), ONE):  # only the run time knows which it is
                whole.add(label)
        operands.append(tuple(own))
    heads = [dims(value)[named.index("h")] for value, named in zip((op.q, op.k), operands, strict=False)]
    shared = [tuple(None if label in whole else label for label in each) for each in (*operands, labels(out, queries))]
    return Factors(shared[:-1], shared[-1:], even=frozenset() if heads[0] == heads[1] else frozenset("h"))
