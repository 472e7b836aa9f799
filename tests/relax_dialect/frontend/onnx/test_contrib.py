"""Operators of ONNX Runtime's domain against formulas in NumPy, which give what it gives: all in one model."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, ValueInfoProto, helper, numpy_helper

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import Array, info, model, results, unknown
from tests.support.programs import MODES, runner
from vm_dialect import VirtualMachine

RNG = np.random.default_rng(0)
B, S, H, N, D = 2, 3, 32, 2, 16
"""Batch, places, features, heads, features of a head."""


def f(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Array:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def erf_gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def normal(x: Array, scale: Array, shift: Array | float = 0.0, *, centred: bool = True) -> Array:
    around = x - x.mean(-1, keepdims=True) if centred else x
    return around / np.sqrt((around * around).mean(-1, keepdims=True) + 1e-5) * scale + shift


def heads(x: Array) -> Array:
    return x.reshape(*x.shape[:2], -1, D).transpose(0, 2, 1, 3)


def attended(
    q: Array, k: Array, v: Array, bias: Array | float = 0.0, cap: float | None = None, sinks: Array | None = None
) -> Array:
    scores = q @ np.repeat(k, q.shape[1] // k.shape[1], 1).transpose(0, 1, 3, 2) / math.sqrt(D)
    scores = (scores if cap is None else np.tanh(scores / cap) * cap) + bias
    weights = np.exp(scores)
    total = weights.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(sinks)[:, None, None])
    made = weights / total @ np.repeat(v, q.shape[1] // v.shape[1], 1)
    return made.transpose(0, 2, 1, 3).reshape(made.shape[0], made.shape[2], -1)


def turned(x: Array, places: Array, cos: Array, sin: Array) -> Array:
    a, b = np.split(x, 2, -1)
    c, s = cos[places][:, None], sin[places][:, None]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def grouped(
    q: Array,
    k: Array,
    v: Array,
    old_k: Array,
    old_v: Array,
    last: Array,
    _: Array,
    c: Array,
    s: Array,
    *others: Array,
    cap: float | None = None,
) -> Array:
    """Attention of one new token for each sequence, written behind what is valid of its cache."""
    keys, values = (np.concatenate([old, np.zeros_like(old[:, :, :1])], 2) for old in (old_k, old_v))
    bias = np.zeros((B, 1, 1, keys.shape[2]), np.float32)
    q, k, v = turned(heads(q), last[:, None], c, s), turned(heads(k), last[:, None], c, s), heads(v)
    for item, place in enumerate(last):
        keys[item, :, place], values[item, :, place] = k[item, :, 0], v[item, :, 0]
        bias[item, ..., place + 1 :] = -np.inf
        values[item, :, place + 1 :] = 0  # whatever is there does not count
        keys[item, :, place + 1 :] = 0
    if not others:
        return attended(q, keys, values, bias)
    _, moved, sinks = others
    return attended(q, keys, values, bias + moved, cap, sinks)


def scaled(x: Array, scale: Array, zero: Array) -> Array:
    return (x.astype(np.float32) - zero) * scale


def quantised(x: Array, scale: Array, zero: Array) -> Array:
    return np.clip(np.round(x / scale) + zero, 0, 255).astype(np.uint8)


def nibbles(x: Array) -> Array:
    return np.stack([x & 15, x >> 4], -1).reshape(x.shape[0], -1).astype(np.float32)


def embedded(words: Array, segments: Array, *others: Array) -> Array:
    """The sum of rows of three tables, normalised; tables and parameters are bytes."""
    numbers = [scaled(each, others[at + 6], others[at + 11]) for at, each in enumerate(others[:5])]
    table, places, kinds, scale, shift = numbers
    return normal(table[words] + places[: words.shape[1]] + kinds[segments], scale, shift)


def bits(x: Array, scale: Array) -> Array:
    nibbles = np.stack([x & 15, x >> 4], -1).reshape(x.shape[0], -1).astype(np.float32)
    return (nibbles - 8) * np.repeat(scale.reshape(x.shape[0], -1), 16, 1)


X, Y, SCALE, SHIFT = f(B, S, H), f(B, S, H), f(H), f(H)
MASK = np.array([[1, 1, 1], [1, 1, 0]], np.int32)
FAR = np.where(MASK > 0, 0, -10000.0)[:, None, None].astype(np.float32)
ANGLES = f(8, D // 2)
Q = (np.float32(0.1), np.uint8(5))
WORDS = RNG.integers(0, 9, (B, S)).astype(np.int32)
SCALES = [np.float32(0.01 * each) for each in range(1, 6)]
ZEROS = [np.uint8(each) for each in (120, 130, 125, 9, 128)]
CACHE = [
    f(B, 1, 4, D),
    f(B, 1, 4, D),
    np.array([4, 2], np.int32),
    np.array(5, np.int32),
    np.cos(ANGLES),
    np.sin(ANGLES),
]

STALE = [each.copy() for each in CACHE]
STALE[0][1, :, 3], STALE[1][1, :, 3] = np.nan, np.inf
"""The same, where what is not valid is infinite or NaN."""
POSITIONS = CACHE[2][:, None].astype(np.int64)

CASES: dict[str, tuple[str, list[Any], dict[str, Any], Callable[..., Array]]] = {
    "bias gelu": ("BiasGelu", [X, SHIFT], {}, lambda x, b: erf_gelu(x + b)),
    "quick gelu": ("QuickGelu", [X], {}, lambda x: x / (1 + np.exp(-1.702 * x))),
    "skip norm": (
        *("SkipLayerNormalization", [X, Y, SCALE, SHIFT, SHIFT], {"epsilon": 1e-5}),
        lambda x, y, scale, shift, bias: normal(x + y + bias, scale, shift),
    ),
    "skip rms": (
        *("SkipSimplifiedLayerNormalization", [X, Y, SCALE], {"epsilon": 1e-5}),
        lambda x, y, scale: normal(x + y, scale, centred=False),
    ),
    "attention": (
        *("Attention", [X, f(H, 3 * H) / 8, f(3 * H), MASK], {"num_heads": N}),
        lambda x, w, b, _: attended(*map(heads, np.split(x @ w + b, 3, -1)), FAR),
    ),
    "heads": (
        *("MultiHeadAttention", [X, f(B, 5, H), f(B, 5, H)], {"num_heads": N}),
        lambda q, k, v: attended(heads(q), heads(k), heads(v)),
    ),
    "cache": (
        *("GroupQueryAttention", [f(B, 1, H), f(B, 1, D), f(B, 1, D), *CACHE]),
        *({"num_heads": N, "kv_num_heads": 1, "do_rotary": 1}, grouped),
    ),
    "cache with a softcap and sinks": (
        *("GroupQueryAttention", [f(B, 1, H), f(B, 1, D), f(B, 1, D), *STALE, POSITIONS, f(B, 1, 1, 5), f(N)]),
        {"num_heads": N, "kv_num_heads": 1, "do_rotary": 1, "softcap": 2.0},
        partial(grouped, cap=2.0),
    ),
    "cache with a smooth softmax": (
        *("GroupQueryAttention", [f(B, 1, H), f(B, 1, D), f(B, 1, D), *STALE, POSITIONS, f(B, 1, 1, 5)]),
        {"num_heads": N, "kv_num_heads": 1, "do_rotary": 1, "smooth_softmax": 1},
        lambda *operands: grouped(*operands, np.zeros(N)),
    ),
    "product": ("FusedMatMul", [X, f(5, H)], {"transB": 1, "alpha": 0.5}, lambda x, w: x @ w.T / 2),
    "four bits": (
        *("MatMulNBits", [X, u8(5, 2, 8), f(10)], {"K": 32, "N": 5, "bits": 4, "block_size": 16}),
        lambda x, w, s: x @ bits(w.reshape(5, -1), s).T,
    ),
    "blocks of four bits, packed": (
        *("MatMulNBits", [X, u8(5, 1, 16), f(5)], {"K": 32, "N": 5, "bits": 4, "block_size": 32}),
        lambda x, w, s: x @ bits(w.reshape(5, -1), np.repeat(s, 2)).T,
    ),
    "blocks of eight bits, packed": (
        *("MatMulNBits", [X, u8(5, 1, 32), f(5), u8(5)], {"K": 32, "N": 5, "bits": 8, "block_size": 32}),
        lambda x, w, s, z: x @ ((w.reshape(5, 32) - z[:, None].astype(np.float32)) * s[:, None]).T,
    ),
    "groups of four bits that are permuted": (
        "MatMulNBits",
        [X, u8(5, 2, 8), f(10), u8(5, 1), np.argsort(f(H)).astype(np.int32) % 2],
        {"K": 32, "N": 5, "bits": 4, "block_size": 16},
        lambda x, w, s, z, g: x @ ((nibbles(w) - nibbles(z)[:, g]) * s.reshape(5, 2)[:, g]).T,
    ),
    "causal over other keys": (
        *("MultiHeadAttention", [f(B, 4, H), f(B, 5, H), f(B, 5, H)], {"num_heads": N, "unidirectional": 1}),
        lambda q, k, v: attended(*map(heads, (q, k, v)), np.where(np.tri(4, 5) + np.eye(4)[:, 3:] > 0, 0, -np.inf)),
    ),
    "table of bytes": (
        "QEmbedLayerNormalization",
        [WORDS, WORDS % 2, u8(9, H), u8(8, H), u8(2, H), u8(H), u8(H), MASK, *SCALES, *ZEROS],
        {"epsilon": 1e-5},
        embedded,
    ),
    "inverse": ("Inverse", [f(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)], {}, np.linalg.inv),
    "in order": ("Unique", [np.array([3, 1, 3, 2, 1], np.float32)], {}, lambda _: np.array([3, 1, 2], np.float32)),
    "by one": ("Range", [np.float32(2), np.float32(6.5)], {}, np.arange),
    "rows of four bits": (
        *("GatherBlockQuantized", [u8(6, 20), np.array([1, 5]), f(6, 3)], {"bits": 4, "block_size": 16}),
        lambda w, i, s: (bits(np.pad(w, ((0, 0), (0, 4))), s)[:, :40])[i],
    ),
    "sum": (
        *("QLinearAdd", [u8(4, 3), *Q, u8(3), *Q, np.float32(0.23), np.uint8(7)], {}),
        lambda a, s, z, b, t, y, u, w: quantised(scaled(a, s, z) + scaled(b, t, y), u, w),
    ),
    "to numbers": (
        *("MatMulIntegerToFloat", [u8(4, 3), u8(3, 5), np.float32(0.1), f(5), np.uint8(9), u8(5), f(5)], {}),
        lambda a, b, s, t, z, y, c: (a.astype(np.int32) - z) @ (b.astype(np.int32) - y) * (s * t) + c,
    ),
}


def _model(names: list[str], dims: dict[int, str]) -> tuple[ModelProto, list[Array]]:
    """All cases as one model; the first operand of each is an input."""
    nodes, inputs, constants, arrays = [], [], [], []
    for at, name in enumerate(names):
        operator, operands, attributes, _ = CASES[name]
        operands = [np.asarray(each) for each in operands]
        own = [f"x{at}_{index}" for index in range(len(operands))]
        nodes.append(helper.make_node(operator, own, [f"y{at}"], name, domain="com.microsoft", **attributes))
        first = operands[0]
        inputs.append(info(own[0], first, [dims.get(size, size) for size in first.shape]))
        constants += [numpy_helper.from_array(each, key) for key, each in zip(own[1:], operands[1:], strict=True)]
        arrays.append(first)
    outputs = [ValueInfoProto(name=f"y{at}") for at in range(len(names))]
    for output in outputs:
        output.type.tensor_type.elem_type = 1
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=imports, ir_version=10), arrays


@pytest.mark.parametrize("mode", MODES)
def test_values(mode: str):
    proto, arrays = _model(list(CASES), {})
    found = runner(import_model(proto), "main", mode)(*arrays)
    assert isinstance(found, tuple)
    for ours, (name, (_, operands, _, expected)) in zip(found, CASES.items(), strict=True):
        np.testing.assert_allclose(ours, expected(*operands), rtol=1e-3, atol=1e-4, err_msg=name)


def test_symbolic_sizes():
    names = ["bias gelu", "product", "four bits"]
    proto, arrays = _model(names, {B: "batch"})
    function = VirtualMachine(build(import_model(proto)))["main"]
    found = results(function, *(array[:1] for array in arrays))
    for ours, name in zip(found, names, strict=True):
        _, (first, *rest), _, expected = CASES[name]
        np.testing.assert_allclose(ours, expected(first[:1], *rest), rtol=1e-3, atol=1e-4, err_msg=name)


def test_what_is_not_supported_is_named():
    node = helper.make_node("GroupQueryAttention", ["x"] * 3 + ["", "", "n", "n"], ["y"], domain="com.microsoft")
    node.attribute.extend(
        helper.make_attribute(key, value)
        for key, value in {"num_heads": N, "kv_num_heads": N, "sliding_window_cache": 1}.items()
    )
    graph = helper.make_graph([node], "g", [info("x", X), info("n", np.array([3, 3], np.int32))], [info("y", X)])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    with pytest.raises(OnnxImportError, match="caches that are quantised, or hold a window only"):
        import_model(helper.make_model(graph, opset_imports=imports, ir_version=10))


def test_its_version_need_not_be_named():
    a, b = (RNG.integers(-(1 << 15), 1 << 15, shape).astype(np.int16) for shape in ((3, 4), (4, 5)))
    node = helper.make_node("MatMulInteger16", ["a", "b"], ["y"], domain="com.microsoft")
    proto = model([node], [info("a", a), info("b", b)], unknown(["y"], 2))
    (made,) = results(VirtualMachine(build(import_model(proto)))["main"], a, b)
    np.testing.assert_array_equal(made, a.astype(np.int32) @ b.astype(np.int32))
