"""Matrix products, einsum and attention, which is computed in `f32` for 16-bit floats."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter import operators
from relax_dialect.interpreter.operators import computes, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.attention import AttentionBase, AttentionBiasOp, AttentionOp
from relax_dialect.ops.linear_algebra import EinsumOp, MatmulOp, OuterOp


@computes(MatmulOp)
def matmul(op: MatmulOp, x: Array, y: Array) -> Array:
    """NumPy's `matmul`, in the dtype of the result; 16-bit floats are summed in `f32`."""
    dtype = result_dtype(op, x)
    left, right = (wide(operand.astype(dtype, copy=False)) for operand in (x, y))
    return np.asarray(np.matmul(left, right)).astype(dtype, copy=False)


@computes(OuterOp)
def outer(op: OuterOp, x: Array, y: Array) -> Array:
    """All products."""
    return np.outer(x, y)


@computes(EinsumOp)
def einsum(op: EinsumOp, *operands: Array) -> Array:
    """NumPy's `einsum`; 16-bit floats are summed in `f32`."""
    return operators.einsum(op.subscripts.data, *map(wide, operands)).astype(operands[0].dtype)


@computes(AttentionOp, AttentionBiasOp)
def attention(op: AttentionBase, q: Array, k: Array, v: Array, bias: Array | None = None) -> Array:
    """`softmax(q @ transpose(k) * scale + bias) @ v`; zeros for a query that sees no key."""
    queries, keys, values = (
        wide(each).transpose(*map(layout.index, "BHSD")) for each, layout in zip((q, k, v), op.layouts, strict=False)
    )
    shared = queries.shape[1] // max(keys.shape[1], 1)
    keys, values = np.repeat(keys, shared, 1), np.repeat(values, shared, 1)
    scale = 1 / np.sqrt(queries.shape[3]) if op.scale is None else op.scale.value.data
    scores = queries @ keys.swapaxes(2, 3) * queries.dtype.type(scale)
    scores = scores if bias is None else biased(op, scores, bias)
    seen = visible(op, queries.shape[2], keys.shape[2])
    seen = seen & bias if bias is not None and hides(op, bias) else seen
    top = np.max(scores, axis=3, keepdims=True, initial=-np.inf, where=seen)
    powers = np.where(seen, np.exp(scores - top), 0)
    total = np.sum(powers, axis=3, keepdims=True)
    result = np.where(total == 0, 0, (powers / total) @ values if keys.size else 0)
    whole = np.broadcast_to(result, (*queries.shape[:3], values.shape[3]))
    return whole.transpose(*map("BHSD".index, op.layouts[3].text)).astype(q.dtype)


def biased(op: AttentionBase, scores: Array, bias: Array) -> Array:
    """Scores moved by a bias, or replaced where a mask is off."""
    if hides(op, bias):
        return scores
    number = op.masked_score if isinstance(op, AttentionBiasOp) else None
    return scores + wide(bias) if number is None else np.where(bias, scores, scores.dtype.type(number.value.data))


def hides(op: AttentionBase, bias: Array) -> bool:
    """Whether a bias says which keys are left out."""
    return bias.dtype == np.bool_ and isinstance(op, AttentionBiasOp) and op.masked_score is None


def visible(op: AttentionBase, queries: int, keys: int) -> Array:
    """Which keys a query sees."""
    if op.causal_mask is None:
        return np.ones((queries, keys), bool)
    last = np.arange(queries)[:, None] + (keys - queries if op.causal_mask.data == "BottomRight" else 0)
    positions = np.arange(keys)
    seen = positions <= last
    return seen if op.window_size is None else seen & (positions > last - op.window_size.value.data)
