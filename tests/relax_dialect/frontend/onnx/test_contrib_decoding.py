"""Attention to caches, n-grams and parts of images in ONNX Runtime's domain against formulas in NumPy, which give what
it gives: all in one model, whose batch is symbolic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from relax_dialect.frontend.onnx import OnnxImportError, import_model
from tests.relax_dialect.frontend.onnx.models import (
    Array,
    Case,
    assert_same_for_batches,
    info,
    model,
    run,
    unknown,
)

RNG = np.random.default_rng(0)
B, N, D, LENGTH = 14, 2, 4, 5
"""Batch, heads, features of a head, positions of a cache."""


def f(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def attended(q: Array, k: Array, v: Array, bias: Array | float = 0.0) -> tuple[Array, Array]:
    """Attention of queries, heads side by side, and the scores."""
    q = q.reshape(*q.shape[:2], N, -1).transpose(0, 2, 1, 3)
    k, v = (np.repeat(each, N // each.shape[1], 1) for each in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[3]) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    made = weights / weights.sum(-1, keepdims=True) @ v
    return made.transpose(0, 2, 1, 3).reshape(made.shape[0], made.shape[2], -1), scores


def written(cache: Array, new: Array, position: int) -> Array:
    made = cache.copy()
    made[:, :, position] = new.reshape(-1, N, D)
    return made


def one_token(q: Array, k: Array, v: Array, mask: Array, _: None, *rest: Any) -> list[Array]:
    """A token at position 2 of a cache, with two beams and a bias."""
    old_k, old_v, _, _, sources, bias = rest
    own = np.split(bias, 3)
    keys, values = (written(*each, 2) for each in ((old_k, k + own[1]), (old_v, v + own[2])))
    read = []
    for cache in (keys, values):
        seen = cache[:, :, :3].copy()
        for item in range(len(q)):
            for position in range(2):
                source = item // 2 * 2 + sources[item // 2, item % 2, position]
                seen[item, :, position] = cache[source, :, position]
        read.append(seen)
    added = np.where(mask > 0, 0, -10000.0)[:, None, None]
    return [attended(q + own[0], *read, added)[0], keys, values]


def packed(qkv: Array, *rest: Any) -> list[Array]:
    """A token behind a cache that grows."""
    old_k, old_v = rest[-2:]
    q, *new = np.split(qkv, 3, -1)
    keys, values = (
        np.concatenate([old, each.reshape(-1, N, 1, D)], 2) for old, each in zip((old_k, old_v), new, strict=True)
    )
    return [attended(q, keys, values)[0], keys, values]


def across(q: Array, k: Array, v: Array, _: None, bias: Array) -> list[Any]:
    made, scores = attended(q, k, v, bias)
    return [made, None, None, scores]


BLOCKS = np.array([[[1, 0], [0, 1]], [[1, 0], [1, 1]]])
"""By head, row and column, which of the blocks of 16 positions queries see."""


def blocks_seen(q: Array, k: Array, v: Array, old_k: Array, old_v: Array, *rest: Any) -> list[Array]:
    """A token for each sequence, of which the numbers of valid tokens are given."""
    counts, cos, sin = rest[-3:]
    keys, values = old_k.copy(), old_v.copy()
    c, s = cos[counts - 1], sin[counts - 1]

    def turned(x: Array) -> Array:
        a, b = np.split(x.reshape(len(x), -1, 16), 2, -1)
        return np.concatenate([a * c[:, None] - b * s[:, None], a * s[:, None] + b * c[:, None]], -1)

    bias = np.full((len(q), N, 1, 32), -np.inf, np.float32)
    for item, count in enumerate(counts):
        keys[item, :, count - 1], values[item, :, count - 1] = turned(k)[item], v.reshape(len(v), -1, 16)[item]
        for head in range(N):
            seen = np.repeat(BLOCKS[head, (count - 1) // 16], 16)[:count] > 0
            bias[item, head, 0, :count][seen] = 0
    return [attended(turned(q).reshape(len(q), 1, -1), keys, values, bias)[0], keys, values]


def without_repeats(ids: Array, scores: Array) -> Array:
    made = scores.copy()
    for item, sequence in enumerate(ids.tolist()):
        for first in range(len(sequence) - 2):
            if sequence[first : first + 2] == sequence[-2:]:
                made[item, sequence[first + 2]] = -np.inf
    return made


def cropped(x: Array, regions: Array, images: Array, size: Array, *, near: bool = False) -> Array:
    """Places at even distances between the ends of each region; 7 outside of the image."""
    made = np.full((len(regions), x.shape[1], *size), 7.0, np.float32)
    ends = np.array(x.shape[2:], np.float32) - 1
    for r, (first, last) in enumerate(zip(regions[:, :2], regions[:, 2:], strict=True)):
        for index in np.ndindex(*size):
            steps = np.asarray(size) - 1
            share = np.where(steps > 0, np.array(index) / np.maximum(steps, 1), 0.5)
            place = (first + share * (last - first)) * ends
            if (place < 0).any() or (place > ends).any():
                continue
            image, low = x[images[r]], np.floor(place).astype(int)
            if near:
                row, column = np.floor(place + 0.5).astype(int)
                made[r, :, *index] = image[:, row, column]
                continue
            high, (y, z) = np.ceil(place).astype(int), place - low
            upper, lower = (image[:, row, low[1]] * (1 - z) + image[:, row, high[1]] * z for row in (low[0], high[0]))
            made[r, :, *index] = upper * (1 - y) + lower * y
    return made


REGIONS = RNG.uniform(-0.05, 1.05, (B, 4)).astype(np.float32)
IMAGES = RNG.integers(0, 3, B).astype(np.int32)
COUNTS = RNG.integers(1, 32, B).astype(np.int32)
COUNTS[:3] = 17, 16, 32

CASES: dict[str, Case] = {
    "one token of beams": (
        "DecoderMaskedMultiHeadAttention",
        [
            *(f(B, 1, N * D) for _ in range(3)),
            np.where(RNG.random((B, 3)) < 0.7, [1, 1, 1], [0, 1, 1]).astype(np.int32),
            *(None, f(B, N, LENGTH, D), f(B, N, LENGTH, D), np.array([2], np.int32), np.array([2], np.int32)),
            RNG.integers(0, 2, (B // 2, 2, LENGTH)).astype(np.int32),
            f(3 * N * D),
        ],
        {"num_heads": N, "past_present_share_buffer": 1},
        one_token,
    ),
    "one packed token": (
        "DecoderMaskedMultiHeadAttention",
        [f(B, 1, 3 * N * D), *[None] * 4, f(B, N, LENGTH, D), f(B, N, LENGTH, D)],
        {"num_heads": N},
        packed,
    ),
    "one token across": (
        "DecoderMaskedMultiHeadAttention",
        [f(B, 1, N * D), f(B, N, LENGTH, D), f(B, N, LENGTH, D), None, f(1, N, 1, LENGTH)],
        {"num_heads": N, "output_qk": 1},
        across,
    ),
    "blocks of a cache": (
        "SparseAttention",
        [
            *(f(B, 1, N * 16), f(B, 1, 16), f(B, 1, 16), f(B, 1, 32, 16), f(B, 1, 32, 16)),
            *(np.array([[0, 1, 2], [0, 1, 3]], np.int32), np.array([[0, 1, -1], [0, 0, 1]], np.int32)),
            *(np.array([32], np.int32), COUNTS, f(32, 8), f(32, 8)),
        ],
        {"num_heads": N, "kv_num_heads": 1, "sparse_block_size": 16, "do_rotary": 1},
        blocks_seen,
    ),
    "n-grams": (
        *("NGramRepeatBlock", [RNG.integers(0, 3, (B, 9)), f(B, 4)], {"ngram_size": 3}),
        without_repeats,
    ),
    "long n-grams": (
        *("NGramRepeatBlock", [RNG.integers(0, 3, (B, 2)), f(B, 4)], {"ngram_size": 4}),
        lambda _, scores: scores,
    ),
    "regions": (
        *("CropAndResize", [f(3, 2, 6, 7), REGIONS, IMAGES, np.array([4, 3], np.int32)], {"extrapolation_value": 7.0}),
        cropped,
    ),
    "near elements of regions": (
        *("CropAndResize", [f(3, 2, 6, 7), REGIONS, IMAGES, np.array([1, 5], np.int32)]),
        {"extrapolation_value": 7.0, "mode": "nearest"},
        lambda *operands: cropped(*operands, near=True),
    ),
    "slices": (
        *("UnfoldTensor", [f(B, 8, 2)], {"dim": 1, "size": 3, "step": 2}),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1)[:, ::2],
    ),
    "slices of the batch": (
        *("UnfoldTensor", [f(B, 2)], {"dim": 0, "size": 2}),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0),
    ),
    "padding as an operand": (
        *("ConvTransposeWithDynamicPads", [f(B, 2, 3), f(2, 1, 3), np.array([1, 2]), np.array([0.5], np.float32)], {}),
        lambda x, w, pads, bias: (
            sum(np.pad(x, ((0, 0), (0, 0), (t, 2 - t)))[:, c, None] * w[c, :, t] for c in range(2) for t in range(3))
            + bias
        )[:, :, 1:3],
    ),
}


def test_values():
    assert_same_for_batches(CASES, {B: "batch", B // 2: "items"})


def test_a_size_that_is_known_at_run_time():
    _, operands, attributes, formula = CASES["regions"]
    node = helper.make_node("CropAndResize", list("xrns"), ["y"], domain="com.microsoft", **attributes)
    given = [info(name, each) for name, each in zip("xrns", operands, strict=True)]
    (made,) = run(model([node], given, unknown(["y"], 4)), *operands)
    np.testing.assert_allclose(made, formula(*operands), rtol=1e-4, atol=1e-5)


OUT_OF_RANGE: dict[str, tuple[str, int, Any]] = {
    "'NGramRepeatBlock' ids": ("n-grams", 0, np.full((B, 9), 4)),
    "'CropAndResize' batch_indices": ("regions", 2, np.full(B, 3, np.int32)),
    "'DecoderMaskedMultiHeadAttention' length": ("one token of beams", 7, np.array([LENGTH], np.int32)),
    "'DecoderMaskedMultiHeadAttention' beams": ("one token of beams", 9, np.full((B // 2, 2, LENGTH), 2, np.int32)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", OUT_OF_RANGE)
def test_data_out_of_range_is_an_error(what: str):
    case, at, wrong = OUT_OF_RANGE[what]
    operator, operands, attributes, _ = CASES[case]
    names = ["" if each is None else f"x{index}" for index, each in enumerate(operands)]
    node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)
    constants = {name: np.asarray(each) for name, each in zip(names, operands, strict=True) if name}
    del constants[names[at]]
    rank = 3 if operator.startswith("Decoder") else 2 if operator.startswith("NGram") else 4
    with pytest.raises(ValueError, match=what):
        run(model([node], [info(names[at], wrong)], unknown(["y"], rank), constants), wrong)


REFUSED: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "the mode cubic": ("CropAndResize", {"mode": "cubic"}, CASES["regions"][1]),
    "a padding that is not known while importing": (
        "ConvTransposeWithDynamicPads",
        {},
        CASES["padding as an operand"][1],
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_supported_is_named(reason: str):
    operator, attributes, operands = REFUSED[reason]
    names = [f"x{at}" for at in range(len(operands))]
    node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)
    given = [info(name, each) for name, each in zip(names, operands, strict=True)]
    with pytest.raises(OnnxImportError, match=reason):
        import_model(model([node], given, unknown(["y"], 4)))
