"""Attention, and its gradients."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, f64, i1, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.extremes import extreme
from relax_dialect.frontend.torch.creation import kept
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from tir_dialect.dims import Dim, product
from tir_dialect.dtypes import is_bool

_LAYOUTS = dict.fromkeys(("q_layout", "k_layout", "v_layout", "out_layout"), "BHSD")


@converts("aten.scaled_dot_product_attention.default")
def attention(node: Node) -> Result:
    """`softmax(q @ transpose(k) * scale + mask) @ v`."""
    return _attention(node)


@converts("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(node: Node) -> Result:
    """The same as PyTorch decomposes it for a CPU; the logarithms of the sums of the softmax are for training."""
    return _with_logarithms(node) if node.wants(1) else [_attention(node), None]


def _attention(node: Node) -> Expr:
    if node.number("dropout_p"):
        return _with_dropout(node)
    q, k, v = (_with_heads(node, name) for name in ("query", "key", "value"))
    scale = node.number("scale") if node.has("scale") else None
    causal = "TopLeft" if node.flag("is_causal") else None
    mask = _mask(node)
    if mask is None:
        made = op.nn.attention(q, k, v, scale=scale, causal_mask=causal, **_LAYOUTS)
    else:
        made = op.nn.attention_bias(q, k, v, mask, scale=scale, causal_mask=causal, **_LAYOUTS)
        made = made if is_bool(node.dtype("attn_mask")) else _with_zeros(node, made, mask)
    return made if node.rank("query") == 4 else op.reshape(made, node.out_dims())


def _with_zeros(node: Node, made: Expr, mask: Expr) -> Expr:
    """Zeros for queries whose biases are all minus infinity."""
    hidden = op.equal(extreme(node.bb, mask, [-1], "max", keepdims=True), node.like(-math.inf, mask))
    return op.where(hidden, node.like(0, made), made)


@converts("torch.ops.higher_order.flex_attention")
def flex_attention(node: Node) -> Result:
    """Attention whose scores are changed by a graph, and masked by another; both see the indices of each score."""
    q, k, v = (node.tensor(str(at)) for at in range(3))
    batch, heads, rows, _ = node.shape("0")
    columns = node.shape("1")[2]
    q, k, v = _as_many_heads(node, q, k, v)
    indices = [
        op.reshape(op.arange(0, length, 1, dtype=i32), [length if at == axis else 1 for at in range(4)])
        for axis, length in enumerate([batch, heads, rows, columns])
    ]
    scores = op.multiply(op.matmul(q, op.permute_dims(k, [0, 1, 3, 2])), node.tensor("5", node.dtype("0")))
    (changed,) = node.graph.within(node.value("3"), [scores, *indices, *node.value("7")], lifted=True).run()
    (seen,) = node.graph.within(node.value("4")[-1], [*indices, *node.value("8")], lifted=True).run()
    none = node.like(-math.inf, scores)
    scores = op.where(node.graph.tensor(seen), node.graph.tensor(changed, node.dtype("0")), none)
    greatest = extreme(node.bb, scores, [-1], "max", keepdims=True)
    hidden = op.equal(greatest, none)
    weights = op.exp(op.subtract(scores, op.where(hidden, node.like(0, scores), greatest)))
    total = op.sum(weights, [-1], keepdims=True)
    made = op.divide(op.matmul(weights, v), op.where(hidden, node.like(1, scores), total))
    if node.wants(1) or node.wants(2):
        raise Refusal("the logarithms and greatest of the sums of scores are not supported")
    return [made, None, None]


def _as_many_heads(node: Node, q: Expr, k: Expr, v: Expr) -> tuple[Expr, Expr, Expr]:
    """Keys and values repeated for the heads of queries that share them, and for the batch."""
    batch, heads, *_ = node.shape("0")

    def repeated(x: Expr, dims: tuple[Dim, ...]) -> Expr:
        few, length, features = dims[1:]
        if few != heads:
            many = heads // few
            spread = op.broadcast_to(op.expand_dims(x, [2]), [dims[0], few, many, length, features])
            x = op.reshape(spread, [dims[0], heads, length, features])
        return x if dims[0] == batch else op.broadcast_to(x, [batch, heads, length, features])

    return q, repeated(k, node.shape("1")), repeated(v, node.shape("2"))


def _with_dropout(node: Node) -> Expr:
    """In training, when random weights are dropped."""
    q, k, v = (node.tensor(name) for name in ("query", "key", "value"))
    *_, length, features = node.shape("query")
    if q.ndim is None or k.ndim is None or node.flag("enable_gqa"):
        raise Refusal("dropout together with grouped heads is not supported")
    scale = node.number("scale") if node.has("scale") else None
    turned = op.permute_dims(k, [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2])
    scores = op.matmul(q, turned)
    if scale is None:
        scores = op.divide(scores, op.sqrt(node.graph.dimension(features, node.dtype("query"))))
    else:
        scores = op.multiply(scores, node.like(scale, scores))
    mask = node.optional("attn_mask")
    if node.flag("is_causal"):
        mask = op.tril(op.full([length, node.shape("key")[-2]], node.bb.const(True)))
    if mask is not None and mask.dtype == i1:
        scores = op.where(mask, scores, node.like(-math.inf, scores))
    elif mask is not None:
        scores = op.add(scores, mask)
    return op.matmul(kept(node, op.nn.softmax(scores, -1), node.number("dropout_p"))[0], v)


def _with_heads(node: Node, name: str) -> Expr:
    """An operand by batch, head, position and feature: the leading dimensions as one batch, that of the result."""
    x, dims = node.tensor(name), list(node.shape(name))
    own = 3 if len(node.out_dims()) > 3 else 2
    wanted = [*node.out_dims()[:-own], *([1] * (own - len(dims))), *dims[-own:]]
    if dims != wanted:
        x, dims = op.broadcast_to(x, wanted), wanted
    if len(dims) == 4:
        return x
    *lead, heads, length, features = [*[1] * (4 - len(dims)), *dims]
    return op.reshape(x, [product(lead), heads, length, features])


def _mask(node: Node) -> Expr | None:
    """A mask by batch, head, query and key; what says which keys are seen stays of truth values."""
    mask = node.optional("attn_mask")
    if mask is None or mask.ndim == 4:
        return mask
    dims = node.shape("attn_mask")
    if node.rank("query") > 4 and len(dims) > 2:
        raise Refusal("masks of more than two dimensions over several batch dimensions are not supported")
    return op.reshape(mask, [*[1] * (4 - len(dims)), *dims])


def _with_logarithms(node: Node) -> list[Expr]:
    """`softmax(q @ transpose(k) * scale + mask) @ v`, and the logarithms of the sums of the softmax."""
    scores = _scores(node)
    greatest = op.max(scores, [-1], keepdims=True)
    greatest = op.where(op.equal(greatest, node.like(-math.inf, greatest)), node.like(0, greatest), greatest)
    weights = op.exp(op.subtract(scores, greatest))
    total = op.sum(weights, [-1], keepdims=True)
    logarithm = op.squeeze(op.add(op.log(total), greatest), [-1])
    hidden = op.equal(total, node.like(0, total))
    weights = op.divide(weights, op.where(hidden, node.like(1, total), total))
    made = op.matmul(weights, node.tensor("value", scores.dtype))
    return [op.astype(made, node.out_dtype()), logarithm]


@converts("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(node: Node) -> Result:
    """The gradients of queries, keys and values."""
    if node.number("dropout_p"):
        raise Refusal("gradients of attention with dropout are not supported")
    scores = _scores(node)
    dtype = scores.dtype
    logarithm = op.expand_dims(node.tensor("logsumexp", dtype), [-1])
    hidden = op.equal(logarithm, node.like(-math.inf, logarithm))
    weights = op.exp(op.subtract(scores, logarithm))
    weights = op.where(hidden, node.like(0, weights), weights)
    query, key, value, gradient, out = (
        node.tensor(name, dtype) for name in ("query", "key", "value", "grad_out", "out")
    )
    of_weights = op.matmul(gradient, op.permute_dims(value, [0, 1, 3, 2]))
    shared = op.sum(op.multiply(gradient, out), [-1], keepdims=True)
    of_scores = op.multiply(weights, op.subtract(of_weights, shared))
    of_scores = op.multiply(of_scores, _scale(node, of_scores))
    turned = op.permute_dims(of_scores, [0, 1, 3, 2])
    made = (
        op.matmul(of_scores, key),
        op.matmul(turned, query),
        op.matmul(op.permute_dims(weights, [0, 1, 3, 2]), gradient),
    )
    return [op.astype(each, node.out_dtype(index)) for index, each in enumerate(made)]


def _scores(node: Node) -> Expr:
    """The scores of queries and keys, in at least `f32`; minus infinity where a query does not see a key."""
    dtype = f64 if node.dtype("query") == f64 else f32
    query, key = node.tensor("query", dtype), node.tensor("key", dtype)
    scores = op.matmul(query, op.permute_dims(key, [0, 1, 3, 2]))
    scores = op.multiply(scores, _scale(node, scores))
    none = node.like(-math.inf, scores)
    mask = _mask(node)
    if mask is not None:
        seen = is_bool(node.dtype("attn_mask"))
        scores = op.where(mask, scores, none) if seen else op.add(scores, op.astype(mask, dtype))
    if node.flag("is_causal"):
        rows, columns = node.shape("query")[-2], node.shape("key")[-2]
        scores = op.where(op.tril(op.full([rows, columns], node.bb.const(True))), scores, none)
    return scores


def _scale(node: Node, like: Expr) -> Expr:
    """What scores are multiplied by, in the dtype of `like`."""
    if node.has("scale"):
        return node.like(node.number("scale"), like)
    assert like.dtype is not None
    return op.rsqrt(node.graph.dimension(node.shape("query")[-1], like.dtype))
