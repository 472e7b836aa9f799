"""Attention against NumPy, in every mode."""

import numpy as np
import pytest

from relax_dialect.interpreter.operators import einsum
from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, slow_ones, wide

QKV = "%q: !relax.tensor<[b, s, h, d], {0}>, %k: !relax.tensor<[b, t, h, d], {0}>, %v: !relax.tensor<[b, t, h, e], {0}>"
NARROW = QKV.replace("d]", "4]").replace("e]", "3]")
"""Lengths of heads that are known, with which loops are a third of the code."""
GROUPED = (
    "%q: !relax.tensor<[b, s, 6, 4], f32>, %k: !relax.tensor<[b, t, 2, 4], f32>, %v: !relax.tensor<[b, t, 2, e], f32>"
)
SHARED = (
    "%q: !relax.tensor<[1, 2, h, 4], f32>, %k: !relax.tensor<[1, t, g, 4], f32>, %v: !relax.tensor<[1, t, g, 3], f32>"
)
SELDOM = ("scaled", "top", "bottom", "f16", "f64", "infinite", "sinks_of_f16")
PROGRAMS = Programs(
    {
        "f32": (QKV.format("f32"), "relax.nn.attention %q, %k, %v"),
        **{d: (NARROW.format(d), "relax.nn.attention %q, %k, %v") for d in ("bf16", "f16", "f64")},
        "scaled": (NARROW.format("f32"), "relax.nn.attention %q, %k, %v scale = 0.125"),
        "top": (NARROW.format("f32"), 'relax.nn.attention %q, %k, %v causal_mask = "TopLeft"'),
        "bottom": (NARROW.format("f32"), 'relax.nn.attention %q, %k, %v causal_mask = "BottomRight"'),
        "window": (NARROW.format("f32"), 'relax.nn.attention %q, %k, %v causal_mask = "BottomRight" window_size = 2'),
        "grouped": (GROUPED, "relax.nn.attention %q, %k, %v"),
        "shared": (SHARED, "relax.nn.attention %q, %k, %v"),
        "biased": (
            f"{NARROW.format('f32')}, %m: !relax.tensor<[b, h, s, t], f32>",
            "relax.nn.attention_bias %q, %k, %v, %m",
        ),
        "masked": (
            f"{NARROW.format('f32')}, %m: !relax.tensor<[s, t], f32>",
            'relax.nn.attention_bias %q, %k, %v, %m causal_mask = "TopLeft"',
        ),
        "chosen": (
            f"{NARROW.format('f32')}, %m: !relax.tensor<[s, t], i1>",
            "relax.nn.attention_bias %q, %k, %v, %m masked_score = -100.0",
        ),
        "hidden": (f"{NARROW.format('f32')}, %m: !relax.tensor<[s, t], i1>", "relax.nn.attention_bias %q, %k, %v, %m"),
        "infinite": (
            f"{NARROW.format('f32')}, %m: !relax.tensor<[s, t], i1>",
            "relax.nn.attention_bias %q, %k, %v, %m masked_score = -inf",
        ),
        "softcap": (
            f"{NARROW.format('f32')}, %m: !relax.tensor<[s, t], f32>",
            "relax.nn.attention_bias %q, %k, %v, %m softcap = 2.0",
        ),
        "sinks": (
            f"{NARROW.format('f32')}, %z: !relax.tensor<[h], f32>",
            'relax.nn.attention %q, %k, %v, %z softcap = 0.5 causal_mask = "TopLeft"',
        ),
        "sinks_of_f16": (
            f"{NARROW.format('f16')}, %m: !relax.tensor<[s, t], f16>, %z: !relax.tensor<[h], f16>",
            "relax.nn.attention_bias %q, %k, %v, %m, %z",
        ),
        "ordered": (
            "%q: !relax.tensor<[b, h, s, d], f32>, %k: !relax.tensor<[b, h, d, t], f32>, "
            "%v: !relax.tensor<[t, b, h, e], f32>",
            'relax.nn.attention %q, %k, %v q_layout = "BHSD" k_layout = "BHDS" v_layout = "SBHD" out_layout = "BHSD"',
        ),
    },
    SELDOM,
)
NEAR = Tolerance(1e-4, 1e-5)
SIZES = ((0, 2, 3, 1), (1, 1, 1, 1), (2, 3, 5, 2), (1, 5, 3, 2), (2, 4, 0, 1))
"""Batch, length of queries, length of keys, heads."""


def _operands(size: tuple[int, int, int, int], dtype: str = "f32") -> list[np.ndarray]:
    b, s, t, h = size
    return [random(dtype, b, s, h, 4, seed=1), random(dtype, b, t, h, 4, seed=2), random(dtype, b, t, h, 3, seed=3)]


def _attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    seen: np.ndarray,
    scale: float = 0.5,
    bias: float | np.ndarray = 0,
    softcap: float | None = None,
    sinks: np.ndarray | None = None,
) -> np.ndarray:
    scores = einsum("bshd,bthd->bhst", wide(q), wide(k)) * scale
    scores = scores if softcap is None else np.tanh(scores / softcap) * softcap
    powers = np.exp(scores + bias) * seen
    total = powers.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(wide(sinks))[:, None, None])
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
    return einsum("bhst,bthe->bshe", weights, wide(v)).astype(q.dtype)


def _seen(s: int, t: int, label: str) -> np.ndarray:
    query, key = np.arange(s)[:, None], np.arange(t)
    last = query + (t - s if label in ("bottom", "window") else 0)
    seen = key <= last if label in ("top", "bottom", "window") else np.ones((s, t), bool)
    return seen & (key > last - 2) if label == "window" else seen


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("label", slow_ones(["f32", "scaled", "top", "bottom", "window"], SELDOM))
def test_attention(label: str, size: tuple[int, int, int, int]):
    operands = _operands(size)
    expected = _attention(*operands, _seen(size[1], size[2], label), 0.125 if label == "scaled" else 0.5)
    PROGRAMS.check(label, operands, expected, NEAR)


@pytest.mark.parametrize("dtype", slow_ones(["f16", "bf16", "f64"], SELDOM))
def test_other_floats(dtype: str):
    operands = _operands((2, 3, 5, 2), dtype)
    expected = _attention(*operands, np.ones((3, 5), bool)).astype(DTYPES[dtype])
    PROGRAMS.check(dtype, operands, expected)


@pytest.mark.parametrize("size", SIZES)
def test_bias(size: tuple[int, int, int, int]):
    b, s, t, h = size
    operands = _operands(size)
    bias, mask = random("f32", b, h, s, t, seed=4), random("f32", s, t, seed=5)
    PROGRAMS.check("biased", [*operands, bias], _attention(*operands, np.ones((s, t), bool), bias=bias), NEAR)
    PROGRAMS.check("masked", [*operands, mask], _attention(*operands, _seen(s, t, "top"), bias=mask), NEAR)


@pytest.mark.parametrize("size", SIZES)
def test_softcap_and_sinks(size: tuple[int, int, int, int]):
    _, s, t, h = size
    operands, mask, sinks = _operands(size), random("f32", s, t, seed=5), random("f32", h, seed=6)
    expected = _attention(*operands, np.ones((s, t), bool), bias=mask, softcap=2.0)
    PROGRAMS.check("softcap", [*operands, mask], expected, NEAR)
    expected = _attention(*operands, _seen(s, t, "top"), softcap=0.5, sinks=sinks)
    PROGRAMS.check("sinks", [*operands, sinks], expected, NEAR)


@pytest.mark.slow
def test_sinks_of_16_bits():
    operands = _operands((2, 3, 5, 2), "f16")
    mask, sinks = random("f16", 3, 5, seed=5), random("f16", 2, seed=6)
    mask[0] = -np.inf  # the sink is all that is left
    with np.errstate(invalid="ignore"):
        expected = _attention(*operands, np.ones((3, 5), bool), bias=wide(mask), sinks=sinks)
    PROGRAMS.check("sinks_of_f16", [*operands, mask, sinks], expected.astype(np.float16))


@pytest.mark.parametrize("size", SIZES)
def test_masks_that_choose(size: tuple[int, int, int, int]):
    _, s, t, _ = size
    operands, mask = _operands(size), random("i1", s, t, seed=6)
    mask[:1] = False  # where all keys are hidden, all have the same score, if it is a number
    scores = np.where(mask, einsum("bshd,bthd->bhst", operands[0], operands[1]) * 0.5, -100)
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    total = powers.sum(-1, keepdims=True)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
    expected = einsum("bhst,bthe->bshe", weights, operands[2]).astype(np.float32)
    PROGRAMS.check("chosen", [*operands, mask], expected, NEAR)
    mask[:] = True
    mask[:1] = False
    expected = _attention(*operands, np.ones((s, t), bool))
    expected[:, :1] = 0
    PROGRAMS.check("hidden", [*operands, mask], expected, NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_rows_of_infinite_scores(size: tuple[int, int, int, int]):
    _, s, t, _ = size
    operands, mask = _operands(size), np.ones((s, t), bool)
    mask[:1] = False
    expected = _attention(*operands, np.ones((s, t), bool))
    expected[:, :1] = np.nan if t else 0
    PROGRAMS.check("infinite", [*operands, mask], expected, NEAR)


HIDING = ("top", "window", "hidden", "infinite", "biased", "masked")


@pytest.mark.parametrize("label", slow_ones([*HIDING, "softcap", "sinks"], SELDOM))
def test_infinite_values_that_no_query_sees(label: str):
    """They do not count, and neither do their keys, where 0 times infinity would be NaN."""
    size = b, s, t, h = 2, 3, 6, 2
    (q, k, v), unseen = _operands(size), [0, 1] if label == "window" else [4, 5]
    seen = _seen(s, t, "window") if label == "window" else np.ones((s, t), bool)
    if label in ("top", "masked", "sinks"):
        seen = _seen(s, t, "top")
    seen[:, unseen] = False
    sinks = random("f32", h, seed=6) if label == "sinks" else None
    expected = _attention(q, k, v, seen, softcap={"softcap": 2.0, "sinks": 0.5}.get(label), sinks=sinks)
    masks = {
        "hidden": [seen],
        "infinite": [seen],
        "biased": [np.broadcast_to(np.where(seen, 0, -np.inf), (b, h, s, t)).astype("f4")],
        "masked": [np.where(seen, 0, -np.inf).astype("f4")],
        "softcap": [np.where(seen, 0, -np.inf).astype("f4")],
        "sinks": [] if sinks is None else [sinks],
    }
    k[:, unseen[0]], v[:, unseen[0]], v[:, unseen[1]] = np.nan, np.inf, np.nan
    PROGRAMS.check(label, [q, k, v, *masks.get(label, [])], expected, NEAR)


@pytest.mark.parametrize("size", SIZES)
def test_layouts(size: tuple[int, int, int, int]):
    q, k, v = _operands(size)
    expected = _attention(q, k, v, np.ones(size[1:3], bool)).transpose(0, 2, 1, 3)
    orders = ((0, 2, 1, 3), (0, 2, 3, 1), (1, 0, 2, 3))
    operands = [np.ascontiguousarray(x.transpose(order)) for x, order in zip((q, k, v), orders, strict=True)]
    PROGRAMS.check("ordered", operands, np.ascontiguousarray(expected), NEAR)


def test_scores_that_are_large():
    q, k, v = _operands((1, 3, 4, 1))
    PROGRAMS.check(
        "f32", [q * 40, k, v], _attention(wide(q) * 40, k, v, np.ones((3, 4), bool)).astype(np.float32), NEAR
    )


def test_fewer_heads_of_keys():
    q, k, v = random("f32", 2, 3, 6, 4, seed=1), random("f32", 2, 5, 2, 4, seed=2), random("f32", 2, 5, 2, 3, seed=3)
    expected = _attention(q, np.repeat(k, 3, 2), np.repeat(v, 3, 2), np.ones((3, 5), bool))
    PROGRAMS.check("grouped", [q, k, v], expected, NEAR)


@pytest.mark.parametrize(("heads", "shared"), [(6, 2), (3, 3), (4, 1), (0, 2), (0, 0)])
def test_heads_of_keys_that_are_not_known(heads: int, shared: int):
    q, k, v = random("f32", 1, 2, heads, 4), random("f32", 1, 3, shared, 4), random("f32", 1, 3, shared, 3)
    times = heads // max(shared, 1)
    expected = _attention(q, np.repeat(k, times, 2), np.repeat(v, times, 2), np.ones((2, 3), bool))
    PROGRAMS.check("shared", [q, k, v], expected, NEAR)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("heads", "shared"), [(3, 2), (2, 4), (2, 0)])
def test_heads_that_are_no_multiple(mode: str, heads: int, shared: int):
    q, k, v = random("f32", 1, 2, heads, 4), random("f32", 1, 3, shared, 4), random("f32", 1, 3, shared, 3)
    with pytest.raises(ValueError, match=r"heads of queries in multiples of those of keys|expected heads"):
        PROGRAMS.runners[mode]("shared")(q, k, v)


@pytest.mark.parametrize("mode", MODES)
def test_shapes_that_do_not_fit(mode: str):
    q, k, v = _operands((1, 2, 3, 1))
    with pytest.raises(ValueError, match="expected t = 3"):
        PROGRAMS.runners[mode]("f32")(q, k, v[:, :2].copy())
