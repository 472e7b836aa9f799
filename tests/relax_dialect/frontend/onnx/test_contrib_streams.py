"""Gated delta networks, mixed streams and small layers of ONNX Runtime's domain against formulas in NumPy, which give
what it gives: all in one model, whose batch is symbolic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import Array, Case, assert_same_for_batches, info, model, unknown

RNG = np.random.default_rng(0)
B, S = 11, 5
READ, WRITTEN, DEPTH, WIDTH = 2, 4, 6, 3
"""Heads of queries and of values, features of a key and of a value."""


def f(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def rms(x: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def of_length_1(x: Array) -> Array:
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def network(q: Array, k: Array, v: Array, state: Array, decay: Any = None, rate: Any = None, scale: float = 0) -> list:
    """What queries read of states `[batch, heads, width, depth]`, token by token, and the last states."""
    state, found = state.astype(np.float64), np.zeros(v.shape)
    times = v.shape[2] // q.shape[2]
    q, k = (np.repeat(each, times, 2) for each in (q, k))
    for t in range(q.shape[1]):
        if decay is not None:
            left = np.exp(decay[:, t])
            state = state * (left[..., None, None] if left.ndim == 2 else left[:, :, None])
        change = v[:, t]
        if rate is not None:
            change = rate[:, t, :, None] * (change - np.einsum("bhwd,bhd->bhw", state, k[:, t]))
        state = state + change[..., None] * k[:, t, :, None]
        found[:, t] = np.einsum("bhwd,bhd->bhw", state, q[:, t])
    return [found * (scale or 1 / math.sqrt(q.shape[-1])), state]


def grouped(x: Array, scale: Array, shift: Array, groups: int) -> Array:
    """Groups of the last dimension normalised, with the dimensions between."""
    parts = x.reshape(len(x), -1, groups, x.shape[-1] // groups)
    mean, variance = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    return ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * scale + shift


def engram(key: Array, query: Array, value: Array, one: Array, other: Array, last: Array) -> list[Array]:
    alike = (rms(key) * one * rms(query) * other).sum(-1, keepdims=True) / math.sqrt(key.shape[-1])
    made = sigmoid(np.sign(alike) * np.sqrt(np.maximum(np.abs(alike), 1e-6))) * value[:, :, None]
    return [made, rms(made) * last]


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


Q, K, V = f(B, S, READ, DEPTH), of_length_1(f(B, S, READ, DEPTH)), f(B, S, WRITTEN, WIDTH)
STATE, DECAY, RATE = f(B, WRITTEN, WIDTH, DEPTH), -np.abs(f(B, S, WRITTEN)), sigmoid(f(B, S, WRITTEN))
LOGS, BIAS, BIASES = f(WRITTEN), f(WRITTEN), f(WRITTEN, DEPTH)
IMAGE, SCALE, SHIFT = f(B, 2, 3, 8), f(8), f(8)

CASES: dict[str, Case] = {
    "gated delta": (
        "GatedDeltaNet",
        [Q, K, V, None, DECAY, RATE, STATE],
        {},
        lambda q, k, v, _, g, r, s: network(q, k, v, s, g, r),
    ),
    "delta, with keys made of length 1": (
        "GatedDeltaNet",
        [Q, 3 * K, V, None, None, f(B, S, WRITTEN), STATE],
        {"update_rule": "delta", "qk_l2_norm": 1, "beta_activation": "sigmoid"},
        lambda q, k, v, _, g, r, s: network(of_length_1(q), of_length_1(k), v, s, None, sigmoid(r)),
    ),
    "gated, by feature": (
        "GatedDeltaNet",
        [Q, K, V, None, f(B, S, WRITTEN, DEPTH), None, STATE, LOGS, BIASES],
        {"update_rule": "gated", "gate_activation": "sigmoid", "scale": 0.3},
        lambda q, k, v, _, g, r, s, a, b: network(q, k, v, s, -5 * sigmoid(np.exp(a)[:, None] * (g + b)), scale=0.3),
    ),
    "gated, by head": (
        "GatedDeltaNet",
        [Q, K, V, None, f(B, S, WRITTEN), None, STATE, LOGS, BIAS],
        {"update_rule": "gated", "gate_activation": "softplus"},
        lambda q, k, v, _, g, r, s, a, b: network(q, k, v, s, -np.exp(a) * np.log1p(np.exp(g + b))),
    ),
    "linear, without a state": (
        "GatedDeltaNet",
        [Q, K, V],
        {"update_rule": "linear"},
        lambda q, k, v: network(q, k, v, np.zeros((len(q), WRITTEN, WIDTH, DEPTH))),
    ),
    "tokens in one dimension": (
        "GatedDeltaNet",
        [
            Q.reshape(-1, READ, DEPTH),
            K.reshape(-1, READ, DEPTH),
            V.reshape(-1, WRITTEN, WIDTH),
            None,
            None,
            None,
            STATE,
        ],
        {"update_rule": "linear"},
        lambda q, k, v, _, g, r, s: [
            network(*(each.reshape(-1, S, *each.shape[1:]) for each in (q, k, v)), s)[0].reshape(v.shape),
            network(*(each.reshape(-1, S, *each.shape[1:]) for each in (q, k, v)), s)[1],
        ],
    ),
    "streams to one": (
        "HyperConnectionPreMix",
        [f(B, 3, 4, 8), f(B, 3, 4)],
        {"reduction_scale": 0.5},
        lambda x, g: 0.5 * (x * g[..., None]).sum(-2),
    ),
    "flat streams to one": (
        "HyperConnectionPreMix",
        [f(B, 3, 32), f(B, 3, 32)],
        {"num_branches": 4},
        lambda x, g: (x * g).reshape(len(x), 3, 4, 8).sum(-2),
    ),
    "streams and a branch": (
        "HyperConnectionPostMix",
        [f(B, 3, 4, 8), f(B, 3, 8), f(B, 3, 4, 1), f(B, 3, 4, 4)],
        {},
        lambda x, y, g, m: np.einsum("bsck,bsch->bskh", m, x) + g * y[:, :, None],
    ),
    "flat streams and a branch": (
        "HyperConnectionPostMix",
        [f(B, 3, 32), f(B, 3, 8), f(B, 3, 4)],
        {"num_branches": 4},
        lambda x, y, g: x + (g[..., None] * y[:, :, None]).reshape(x.shape),
    ),
    "engram": ("EngramGate", [f(B, 3, 4, 8), f(B, 3, 4, 8), f(B, 3, 8), f(4, 8), f(4, 8), f(4, 8)], {}, engram),
    "groups": (
        "GroupNorm",
        [IMAGE, SCALE, SHIFT],
        {"groups": 2, "activation": 0},
        lambda x, a, b: grouped(x, a, b, 2),
    ),
    "groups of images in another order": (
        "GroupNorm",
        [np.moveaxis(IMAGE, -1, 1), SCALE, SHIFT],
        {"groups": 4, "activation": 1, "channels_last": 0},
        lambda x, a, b: np.moveaxis(
            (lambda made: made * sigmoid(made))(grouped(np.moveaxis(x, 1, -1), a, b, 4)), -1, 1
        ),
    ),
    "groups of a sum": (
        "SkipGroupNorm",
        [IMAGE, SCALE, SHIFT, f(B, 8), f(8)],
        {"groups": 2, "activation": 0},
        lambda x, a, b, skip, bias: [
            grouped(x + skip[:, None, None] + bias, a, b, 2),
            x + skip[:, None, None] + bias,
        ],
    ),
    "biased softmax": (
        "BiasSoftmax",
        [f(B, 2, 3, 4), f(B, 1, 1, 4)],
        {"axis": 3, "is_inner_broadcast": 1},
        lambda x, b: softmax(x + b),
    ),
    "biased softmax of a matrix": (
        "BiasSoftmax",
        [f(B, 2, 3, 4), f(1, 2, 3, 4)],
        {"axis": 2, "is_inner_broadcast": 0},
        lambda x, b: softmax((x + b).reshape(len(x), 2, 12)).reshape(x.shape),
    ),
    "dropout": ("BiasDropout", [f(B, 4), f(4), f(B, 4)], {}, lambda x, b, r: [x + b + r, np.ones(x.shape, bool)]),
    "rows": ("TorchEmbedding", [f(7, 4), RNG.integers(0, 7, (B, 3))], {}, lambda w, i: w[i]),
    "echo": ("SampleOp", [f(B, 4)], {}, lambda x: x),
    "angles": (
        "GemmaRotaryEmbedding",
        [f(B, 3, 4), *(f(B, 2, 3, 4) for _ in range(4))],
        {},
        lambda e, *x: [x[at] * np.cos(e)[:, None] + x[at + 1] * np.sin(e)[:, None] for at in (0, 2)],
    ),
    "finite": ("IsAllFinite", [f(B, 4), f(B)], {}, lambda x, y: np.array(True)),
    "infinite": ("IsAllFinite", [np.full((B, 4), np.inf, "f"), f(B)], {}, lambda x, y: np.array(False)),
    "infinite, but a number": (
        "IsAllFinite",
        [np.full((B, 4), np.inf, "f")],
        {"isnan_only": 1},
        lambda x: np.array(True),
    ),
    "no number, but finite": ("IsAllFinite", [np.full(B, np.nan, "f")], {"isinf_only": 1}, lambda x: np.array(True)),
}


def test_values():
    assert_same_for_batches(CASES, {B: "batch", B * S: "tokens"})


REFUSED: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "of different lengths": ("GatedDeltaNet", {}, [Q, K, V, np.array([0, B * S], np.int32), DECAY, RATE, STATE]),
    "the rule 'other'": ("GatedDeltaNet", {"update_rule": "other"}, [Q, K, V]),
    "the activation tanh": ("GatedDeltaNet", {"gate_activation": "tanh"}, [Q, K, V, None, DECAY, RATE, STATE]),
    "without an initial state": ("GatedDeltaNet", {"update_rule": "linear"}, [Q[0], K[0], V[0]]),
    "training": ("BiasDropout", {}, [f(B, 4), f(4), f(B, 4), np.float32(0.5), np.array(True)]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_supported_is_named(reason: str):
    operator, attributes, operands = REFUSED[reason]
    names = ["" if each is None else f"x{at}" for at, each in enumerate(operands)]
    node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)
    inputs = [info(name, np.asarray(each)) for name, each in zip(names, operands, strict=True) if each is not None]
    with pytest.raises(OnnxImportError, match=reason):
        import_model(model([node], inputs, unknown(["y"], 3)))
