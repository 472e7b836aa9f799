"""Layers of language models in ONNX Runtime's domain against formulas in NumPy, which give what it gives: all in one
model, whose batch is symbolic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import Array, Case, assert_same_for_batches, info, model, unknown

RNG = np.random.default_rng(0)
B, S, H, N, D = 11, 3, 8, 2, 4
"""Batch, places, features, heads, features of a head."""

EXPERTS, UNITS = 5, 6


def f(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def swiglu(gate: Array, up: Array, limit: float = math.inf) -> Array:
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return gate * sigmoid(1.5 * gate) * (up + 0.5)


def mixed(x: Array, shares: Array, chosen: Array, layer: Callable[[int, Array], Array]) -> Array:
    """The sum of what the chosen experts make of each token, by its shares."""
    tokens = x.reshape(-1, x.shape[-1])
    made = [
        sum(share * layer(expert, token) for share, expert in zip(some, which, strict=True))
        for token, some, which in zip(tokens, shares, chosen, strict=True)
    ]
    return np.array(made, np.float32).reshape(x.shape)


def best(p: Array, count: int) -> Array:
    return np.argsort(-p, axis=1, kind="stable")[:, :count]


def mixture(x: Array, p: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    chosen = best(p, 2)
    shares = np.take_along_axis(softmax(p), chosen, 1)
    return mixed(x, shares, chosen, lambda e, t: w2[e] @ np.maximum(w1[e] @ t + b1[e], 0) + b2[e])


def interleaved(x: Array, p: Array, w1: Array, _: None, w2: Array) -> Array:
    def layer(e: int, t: Array) -> Array:
        made = w1[e] @ t
        return w2[e] @ swiglu(made[0::2], made[1::2], 0.8)

    chosen = best(p, 3)
    return mixed(x, softmax(np.take_along_axis(p, chosen, 1)), chosen, layer)


def with_third(x: Array, p: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array) -> Array:
    chosen = best(p, 1)
    shares = np.take_along_axis(softmax(p), chosen, 1)
    return mixed(x, shares, chosen, lambda e, t: w2[e] @ swiglu(w1[e] @ t + b1[e], w3[e] @ t + b3[e]) + b2[e])


def integers(packed: Array, bits: int, count: int) -> Array:
    """So many integers of a few bits along the last dimension, the lowest bits first."""
    each = np.unpackbits(packed, axis=-1, bitorder="little")[..., : count * bits]
    return (each.reshape(*packed.shape[:-1], count, bits) << np.arange(bits)).sum(-1).astype(np.float32)


def quantised_mixture(x: Array, p: Array, *rest: Any) -> Array:
    """Blocks of 16 inputs with zero points, in 4 bits; the first layer has gates, then units."""
    w1, s1, b1, w2, s2, b2, _, _, _, z1, z2 = rest
    first, second = (
        (integers(w, 4, depth) - np.repeat(integers(z, 4, depth // 16), 16, -1)) * np.repeat(s, 16, -1)
        for w, s, z, depth in ((w1, s1, z1, 32), (w2, s2, z2, 16))
    )

    def layer(e: int, t: Array) -> Array:
        return second[e] @ swiglu(*np.split(first[e] @ t + b1[e], 2)) + b2[e]

    chosen = best(p, 2)
    return mixed(x, softmax(np.take_along_axis(p, chosen, 1)), chosen, layer)


def three_bits(x: Array, p: Array, *rest: Any) -> Array:
    """A scale and a zero point for each output, and weights of their own for what the experts make."""
    w1, s1, _, w2, s2, _, _, _, _, z1, _, _, mixing = rest
    first = (integers(w1, 3, 8) - integers(z1, 3, UNITS)[..., None]) * s1[..., None]
    second = (integers(w2, 8, UNITS) - 128) * s2[..., None]
    chosen = best(p, 2)
    shares = np.take_along_axis(mixing, chosen, 1)
    return mixed(x, shares, chosen, lambda e, t: second[e] @ np.maximum(first[e] @ t, 0) ** 2)


def routed(x: Array, bias: Array) -> Array:
    """The best 2 of 8 experts that are in the best 2 of 4 groups, by the sums of their best 2."""
    compared = sigmoid(x) + bias
    groups = np.sort(compared.reshape(-1, 4, 2), -1).sum(-1)
    inside = np.zeros_like(groups)
    np.put_along_axis(inside, best(groups, 2), 1, 1)
    candidates = np.where(np.repeat(inside, 2, 1) > 0, compared, -np.inf)
    made = np.full_like(x, -50.0)
    chosen = best(candidates, 2)
    np.put_along_axis(made, chosen, np.log(np.take_along_axis(sigmoid(x), chosen, 1)), 1)
    return made


def recurrence(
    q: Array, k: Array, v: Array, past: Array | None, decay: Array | None = None, rate: Array | None = None
) -> list[Array]:
    """Linear attention of `D` features of keys, one token after the other."""
    batch, length, _ = q.shape
    qs, ks = (each.reshape(batch, length, -1, D) for each in (q, k))
    heads, queries = ks.shape[2], qs.shape[2]
    vs = v.reshape(batch, length, heads, -1)
    state = np.zeros((batch, heads, D, vs.shape[3]), np.float32) if past is None else past.copy()
    made = []
    for t in range(length):
        change = vs[:, t]
        if decay is not None:
            state *= np.exp(decay[:, t].reshape(batch, heads, -1, 1))
        if rate is not None:
            change = (change - np.einsum("bhij,bhi->bhj", state, ks[:, t])) * rate[:, t, :, None]
        state += np.einsum("bhi,bhj->bhij", ks[:, t], change)
        both = max(heads, queries)
        read = np.repeat(state, both // heads, 1), np.repeat(qs[:, t], both // queries, 1)
        made.append(np.einsum("bhij,bhi->bhj", *read) / math.sqrt(D))
    return [np.stack(made, 1).reshape(batch, length, -1), state]


def convolved(x: Array, w: Array, bias: Array | float, past: Array, step: int = 1) -> list[Array]:
    padded, taps = np.concatenate([past, x], 2), w.shape[2]
    made = sum(padded[:, :, tap * step : tap * step + x.shape[2]] * w[:, 0, tap, None] for tap in range(taps))
    return [np.asarray(made) + np.reshape(bias, (-1, 1)), padded[:, :, x.shape[2] :]]


def convolved_last(x: Array, w: Array) -> list[Array]:
    """Channels that are two dimensions at the end, every second place, without bias and past."""
    flat = x.reshape(*x.shape[:2], -1).transpose(0, 2, 1)
    made = convolved(flat, w, 0.0, np.zeros((*flat.shape[:2], 4), np.float32), 2)
    return [each.transpose(0, 2, 1).reshape(x.shape[0], -1, *x.shape[2:]) for each in made]


def normal(x: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-2)


def turned(x: Array, ids: Array, cos: Array, sin: Array, which: Sequence[int]) -> Array:
    """Pairs of the first and second half of each head, by the angle for the position that each pair follows."""
    c, s = (
        np.stack([table[ids[stream], pair] for pair, stream in enumerate(which)], -1)[:, None] for table in (cos, sin)
    )
    a, b = np.split(x.reshape(*x.shape[:2], N, -1).transpose(0, 2, 1, 3), 2, -1)
    made = np.concatenate([a * c - b * s, a * s + b * c], -1)
    return made.transpose(0, 2, 1, 3).reshape(x.shape)


def u8(*shape: int) -> Array:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def scales(*shape: int) -> Array:
    return RNG.uniform(0.01, 0.1, shape).astype(np.float32)


STACK = [f(EXPERTS, UNITS, H), f(EXPERTS, UNITS), f(EXPERTS, H, UNITS), f(EXPERTS, H)]
IDS = RNG.integers(0, 9, (3, B, S))
ANGLES = [f(9, 8), f(9, 8)]

CASES: dict[str, Case] = {
    "experts": ("MoE", [f(B, S, H), f(B * S, EXPERTS), *STACK], {"k": 2}, mixture),
    "experts with gates": (
        *("MoE", [f(B, H), f(B, EXPERTS), f(EXPERTS, 2 * UNITS, H), None, STACK[2]]),
        {
            **{"k": 3, "activation_type": "swiglu", "swiglu_fusion": 1, "normalize_routing_weights": 1},
            **{"activation_alpha": 1.5, "activation_beta": 0.5, "swiglu_limit": 0.8},
        },
        interleaved,
    ),
    "experts with a third layer": (
        *("MoE", [f(B, H), f(B, EXPERTS), *STACK, f(EXPERTS, UNITS, H), f(EXPERTS, UNITS)]),
        {"activation_type": "swiglu", "activation_alpha": 1.5, "activation_beta": 0.5},
        with_third,
    ),
    "quantised experts": (
        "QMoE",
        [
            *(f(B, 32), f(B, EXPERTS), u8(EXPERTS, 32, 16), scales(EXPERTS, 32, 2), f(EXPERTS, 32)),
            *(u8(EXPERTS, 32, 8), scales(EXPERTS, 32, 1), f(EXPERTS, 32), None, None, None),
            *(u8(EXPERTS, 32, 1), u8(EXPERTS, 32, 1)),
        ],
        {
            **{"k": 2, "block_size": 16, "normalize_routing_weights": 1, "activation_type": "swiglu"},
            **{"swiglu_fusion": 2, "activation_alpha": 1.5, "activation_beta": 0.5},
        },
        quantised_mixture,
    ),
    "experts of three bits": (
        "QMoE",
        [
            *(f(B, H), f(B, EXPERTS), u8(EXPERTS, UNITS, 3), scales(EXPERTS, UNITS), None),
            *(u8(EXPERTS, H, UNITS), scales(EXPERTS, H), None, None, None, None, u8(EXPERTS, 3), None, None),
            np.abs(f(B, EXPERTS)),
        ],
        {"k": 2, "expert_weight_bits": 8, "fc1_expert_weight_bits": 3, "activation_type": "relu2"},
        three_bits,
    ),
    "router": (
        *("MoEGroupRouter", [f(B, 8), f(8)]),
        {"top_k": 2, "n_group": 4, "topk_group": 2, "router_sentinel": -50.0},
        routed,
    ),
    "all shares": (
        *("MoEGroupRouter", [f(B, 8), f(8)], {"top_k": 2}),
        lambda x, bias: [None, sigmoid(x) + bias, sigmoid(x)],
    ),
    "delta rule": (
        "LinearAttention",
        [
            *(f(B, S, 4 * D), f(B, S, 2 * D) / 2, f(B, S, 2 * 3), f(B, 2, D, 3)),
            *(-np.abs(f(B, S, 2 * D)), np.abs(f(B, S, 2))),
        ],
        {"q_num_heads": 4, "kv_num_heads": 2},
        recurrence,
    ),
    "decay by head": (
        "LinearAttention",
        [f(B, S, D), f(B, S, D), f(B, S, 3), None, -np.abs(f(B, S, 1))],
        {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "gated"},
        recurrence,
    ),
    "more heads of keys": (
        *("LinearAttention", [f(B, S, 2 * D), f(B, S, 4 * D), f(B, S, 4 * 3), None]),
        {"q_num_heads": 2, "kv_num_heads": 4, "update_rule": "linear"},
        recurrence,
    ),
    "one rate": (
        *("LinearAttention", [f(B, S, 2 * D), f(B, S, 2 * D), f(B, S, 6), None, None, np.abs(f(B, S, 1)) / 3]),
        {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "delta"},
        recurrence,
    ),
    "causal convolution": (
        *("CausalConvWithState", [f(B, 4, 5), f(4, 1, 3), f(4), f(B, 4, 2)], {"activation": "silu"}),
        lambda x, w, bias, past: [silu((made := convolved(x, w, bias, past))[0]), made[1]],
    ),
    "channels last": (
        *("CausalConvWithState", [f(B, 5, 2, 3), f(6, 1, 3)], {"channels_last": 1, "dilation": 2}),
        convolved_last,
    ),
    "decay": (
        *("LinearAttentionGate", [f(B, S, N), f(N), f(N), f(B, S, N)], {}),
        lambda a, bias, scale, b: [scale * np.log1p(np.exp(a + bias)), sigmoid(b)],
    ),
    "gated norm": (
        *("GatedRMSNorm", [f(B, S, H), f(D), f(B, S, H)], {"epsilon": 1e-2}),
        lambda x, scale, gate: (normal(x.reshape(-1, S, H // D, D)) * scale).reshape(x.shape) * silu(gate),
    ),
    "branches side by side": (
        *("BranchwiseRMSNorm", [f(B, S, H), f(H)], {"epsilon": 1e-2, "num_branches": 2}),
        lambda x, scale: normal(x.reshape(-1, S, 2, H // 2)).reshape(x.shape) * scale,
    ),
    "branches": (
        *("BranchwiseRMSNorm", [f(B, S, 2, H), f(H)], {"epsilon": 1e-2}),
        lambda x, scale: normal(x) * scale,
    ),
    "scaled silu": ("ScaledSiLU", [f(B, H), np.float32(0.7)], {}, lambda x, scale: silu(x * scale)),
    "gated sum": ("GatedAdd", [f(B, S, H), f(B, S, H), f(B, S, 1)], {}, lambda x, y, gate: x + y * gate),
    "three positions in sections": (
        *("MRotaryEmbedding", [f(B, S, N * 16), IDS, *ANGLES]),
        {"num_heads": N, "mrope_section": [3, 3, 2]},
        lambda x, ids, c, s: turned(x, ids, c, s, [0, 0, 0, 1, 1, 1, 2, 2]),
    ),
    "three positions in turns": (
        *("MRotaryEmbedding", [f(B, S, N * 16), IDS, *ANGLES]),
        {"num_heads": N, "mrope_section": [4, 3, 1], "mrope_layout": 1},
        lambda x, ids, c, s: turned(x, ids, c, s, [0, 1, 2, 0, 1, 0, 0, 1]),
    ),
}


def test_values():
    assert_same_for_batches(CASES, {B: "batch", B * S: "tokens"})


REFUSED: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "sparse mixers are not supported": ("MoE", {"use_sparse_mixer": 1}, [f(B, H), f(B, EXPERTS), *STACK]),
    "the activation tanh is not supported": ("MoE", {"activation_type": "tanh"}, [f(B, H), f(B, EXPERTS), *STACK]),
    "either a third layer or a first one": ("MoE", {"activation_type": "swiglu"}, [f(B, H), f(B, EXPERTS), *STACK]),
    "weights of the kind fp4": ("QMoE", {"quant_type": "fp4"}, [f(B, H)] * 8),
    "weights in the order of one execution provider": ("QMoE", {"weights_prepacked": 1}, [f(B, H)] * 8),
    "weights of 5 bits": ("QMoE", {"expert_weight_bits": 5}, [f(B, H)] * 8),
    "the rule 'other' is none of": (
        *("LinearAttention", {"update_rule": "other", "q_num_heads": 1, "kv_num_heads": 1}, [f(B, S, D)] * 3),
    ),
    "the attribute state_window": (
        *("LinearAttention", {"state_window": 2, "q_num_heads": 1, "kv_num_heads": 1}, [f(B, S, D)] * 3),
    ),
    "3 heads of queries and 2 of keys": (
        *("LinearAttention", {"q_num_heads": 3, "kv_num_heads": 2}, [f(B, S, 12), f(B, S, 8), f(B, S, 8)]),
    ),
    "the activation relu": ("CausalConvWithState", {"activation": "relu"}, [f(B, 4, 5), f(4, 1, 3)]),
    "more than one dimension": ("CausalConvWithState", {"ndim": 2}, [f(B, 4, 5, 5), f(4, 1, 3, 3)]),
    "do not have 8 pairs together": ("MRotaryEmbedding", {"mrope_section": [1, 1, 1]}, [f(B, N, S, 16), IDS, *ANGLES]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_supported_is_named(reason: str):
    operator, attributes, operands = REFUSED[reason]
    names = [f"x{at}" for at in range(len(operands))]
    node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)
    given = [info(name, each) for name, each in zip(names, operands, strict=True)]
    with pytest.raises(OnnxImportError, match=reason):
        import_model(model([node], given, unknown(["y"], 2)))
