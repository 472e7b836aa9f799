"""Attention."""

from __future__ import annotations

import math

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect.dims import product
from tir_dialect.dtypes import is_bool

_LAYOUTS = dict.fromkeys(("q_layout", "k_layout", "v_layout", "out_layout"), "BHSD")


@converts("aten.scaled_dot_product_attention.default")
def attention(node: Node) -> Result:
    """`softmax(q @ transpose(k) * scale + mask) @ v`."""
    return _attention(node)


@converts("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(node: Node) -> Result:
    """The same as PyTorch decomposes it for a CPU; what only training asks for is not made."""
    return [_attention(node), None]


def _attention(node: Node) -> Expr:
    if node.number("dropout_p"):
        raise Refusal("dropout in training is random: export the module after eval()")
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
    hidden = op.equal(op.max(mask, [-1], keepdims=True), node.like(-math.inf, mask))
    return op.where(hidden, node.like(0, made), made)


def _with_heads(node: Node, name: str) -> Expr:
    """An operand by batch, head, place and feature: the leading dimensions as one batch, and heads."""
    *lead, heads, length, features = [*[1] * (4 - node.rank(name)), *node.shape(name)]
    return (
        node.tensor(name)
        if node.rank(name) == 4
        else op.reshape(node.tensor(name), [product(lead), heads, length, features])
    )


def _mask(node: Node) -> Expr | None:
    """A mask by batch, head, query and key; what says which keys are seen stays of truth values."""
    mask = node.optional("attn_mask")
    if mask is None or mask.ndim == 4:
        return mask
    dims = node.shape("attn_mask")
    if node.rank("query") > 4 and len(dims) > 2:
        raise Refusal("masks of more than two dimensions over several batch dimensions are not supported")
    return op.reshape(mask, [*[1] * (4 - len(dims)), *dims])
