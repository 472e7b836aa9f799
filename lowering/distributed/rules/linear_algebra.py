"""How products may be shared.

L1: `matmul` along its batches, the rows of the first and the columns of the second operand.
L2: `matmul` along the contracted dimension: each worker has a term of the sum.
L3: `outer` along both dimensions.
L4: `einsum` along every letter; one that the result does not have gives terms of a sum.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, broadcast, dims, shards
from relax_dialect.ops.linear_algebra import EinsumOp, MatmulOp, OuterOp


@shards(MatmulOp)
def matmul(op: MatmulOp) -> Factors:
    """L1, L2."""
    x, y, result = dims(op.x), dims(op.y), dims(op.result)
    rows, columns = (1 if len(x) > 1 else 0), (1 if len(y) > 1 else 0)
    shapes = [shape[:-2] for shape in (x, y)]
    (left, right), batches = broadcast(shapes, result[: len(result) - rows - columns], "b")
    tail = ("i",) * rows + ("j",) * columns
    lhs: Labels = (*left, *("i",) * rows, "k")
    rhs: Labels = (*right, "k", *("j",) * columns)
    return Factors([lhs, rhs], [(*batches, *tail)], {"k": "sum"})


@shards(OuterOp)
def outer(op: OuterOp) -> Factors:
    """L3."""
    return Factors([("i",), ("j",)], [("i", "j")])


@shards(EinsumOp)
def einsum(op: EinsumOp) -> Factors | None:
    """L4, where each letter has one size."""
    text = op.subscripts.data.replace(" ", "")
    if "." in text or "->" not in text:
        return None
    inputs, _, output = text.partition("->")
    words = inputs.split(",")
    if any(len(set(word)) != len(word) for word in words):
        return None
    sizes: dict[str, set[object]] = {}
    for word, operand in zip(words, op.operands, strict=True):
        for letter, dim in zip(word, dims(operand), strict=True):
            sizes.setdefault(letter, set()).add(dim)
    shared = {letter for letter, found in sizes.items() if len(found) == 1}
    labels = [tuple(letter if letter in shared else None for letter in word) for word in words]
    reduced = {letter: "sum" for letter in sorted(shared) if letter not in output}
    return Factors(labels, [tuple(letter if letter in shared else None for letter in output)], reduced)
