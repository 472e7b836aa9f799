"""Layers that PyTorch computes by one operator in inference, as the operators that they stand for.

`nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call these where no gradients are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relax_dialect.frontend.torch.program import torch


def attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """`nn.MultiheadAttention` of tensors `[batch, length, features]`, and its weights, or `None`.

    A mask hides what is not 0 in it: for all `[queries, keys]` (`mask_type` 0), for each text `[batch, keys]` (1), or
    for each head `[batch, heads, queries, keys]` (2).
    """
    linear, library = torch().nn.functional, torch()
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (
        linear.linear(x, weight, bias).unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2)
        for x, weight, bias in parts
    )
    seen = None
    if mask is not None:
        seen = mask.to(library.bool).logical_not()
        seen = seen[:, None, None, :] if mask_type == 1 else seen
    if need_weights:
        scores = q @ k.transpose(-2, -1) * (embed_dim // num_head) ** -0.5
        hidden = scores if seen is None else scores.masked_fill(seen.logical_not(), float("-inf"))
        weights = library.ops.aten._safe_softmax(hidden, -1)
        made = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        made, weights = linear.scaled_dot_product_attention(q, k, v, seen), None
    return linear.linear(made.transpose(1, 2).flatten(2), proj_weight, proj_bias), weights


def encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """`nn.TransformerEncoderLayer` of a tensor `[batch, length, features]`."""
    nn = torch().nn.functional

    def attended(x: Any) -> Any:
        parameters = qkv_weight, qkv_bias, proj_weight, proj_bias
        return attention(x, x, x, embed_dim, num_heads, *parameters, mask, False, mask_type=mask_type)[0]

    def fed_forward(x: Any) -> Any:
        activation = nn.gelu if use_gelu else nn.relu
        return nn.linear(activation(nn.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def norm_1(x: Any) -> Any:
        return nn.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Any) -> Any:
        return nn.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(norm_1(src))
        return x + fed_forward(norm_2(x))
    x = norm_1(src + attended(src))
    return norm_2(x + fed_forward(x))


def layer_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """By the operator."""
    aten = torch().ops.aten
    return {
        aten._native_multi_head_attention.default: attention,
        aten._transformer_encoder_layer_fwd.default: encoder_layer,
    }
