"""What a decoder is, without its layers: sizes, what its family differs in, and how its cache is stored.

Nothing here needs the compiler, so that a program that is in a cache can be used without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Norms = Literal["before", "after", "both", "parallel", "parallel apart"]
QKNorm = Literal["none", "head", "all", "head layer norm", "layer norm of each head"]

PAGE = 32
"""Positions in a page."""

CacheFormat = Literal["f32", "f16", "q8_0"]
"""How keys and values are stored: as numbers, or as bytes with a scale for each block of features of a head."""

CACHE_FORMATS: Sequence[CacheFormat] = ("f32", "f16", "q8_0")


def cache_block(features: int) -> int:
    """How many features of a head share a scale in a cache of `q8_0`: 32, or the power of two that divides them all."""
    return math.gcd(features, 32)


def pool_shapes(heads: int, features: int, cache_format: CacheFormat) -> Mapping[str, tuple[tuple[int, ...], str]]:
    """The shape of a page of keys and values of a layer, and its dtype, by the names of the pools.

    `ValueError` for a format that there is not.
    """
    if cache_format not in CACHE_FORMATS:
        raise ValueError(f"expected a cache of {', '.join(CACHE_FORMATS)}, got {cache_format!r}")
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for kind in ("keys", "values"):
        if cache_format == "q8_0":
            found[kind] = (heads, PAGE, features), "i8"
            found[f"{kind[:-1]}_scales"] = (heads, PAGE, features // cache_block(features)), "f16"
        else:
            found[kind] = (heads, PAGE, features), cache_format
    return found


NOT_A_NUMBER, NONE_ALLOWED = -1, -2
"""What is chosen where there are NaNs among the logits, and where all are minus infinity."""


@dataclass(frozen=True)
class Llama3Scaling:
    """Longer contexts for Llama 3: low frequencies are divided, high ones stay, those between are interpolated."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int

    def divisors(self, frequencies: NDArray[Any], base: float) -> NDArray[Any]:
        """What the frequencies are divided by."""
        turns = self.original_max_position_embeddings * frequencies / (2 * math.pi)
        between = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        kept = np.clip(between, 0, 1)
        return 1 / ((1 - kept) / self.factor + kept)

    @property
    def magnitude(self) -> float:
        """What rotated features are multiplied by."""
        return 1.0


@dataclass(frozen=True)
class LinearScaling:
    """All positions divided by a factor."""

    factor: float

    def divisors(self, frequencies: NDArray[Any], base: float) -> NDArray[Any]:
        """What the frequencies are divided by."""
        return np.full_like(frequencies, self.factor)

    @property
    def magnitude(self) -> float:
        """What rotated features are multiplied by."""
        return 1.0


@dataclass(frozen=True)
class YarnScaling:
    """YaRN (Peng et al., 2023): as for Llama 3 with a linear ramp over the features, and larger rotated features."""

    factor: float
    original_max_position_embeddings: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    truncate: bool = True
    """Whether the ramp begins and ends at whole features."""

    def divisors(self, frequencies: NDArray[Any], base: float) -> NDArray[Any]:
        """What the frequencies are divided by."""

        def feature(turns: float) -> float:
            """The pair of features that turns so often within the original context."""
            angle = self.original_max_position_embeddings / (turns * 2 * math.pi)
            return len(frequencies) * math.log(angle) / math.log(base)

        first, last = feature(self.beta_fast), feature(self.beta_slow)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        low, high = max(first, 0), min(last, 2 * len(frequencies) - 1)
        divided = np.clip((np.arange(len(frequencies)) - low) / max(high - low, 0.001), 0, 1)
        return 1 / (divided / self.factor + (1 - divided))

    @property
    def magnitude(self) -> float:
        """What rotated features are multiplied by."""
        return yarn_magnitude(self.factor) if self.attention_factor is None else self.attention_factor


def yarn_magnitude(factor: float, mscale: float = 1.0) -> float:
    """What YaRN multiplies rotated features by, of positions that are divided by a factor."""
    return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0


@dataclass(frozen=True, eq=False)
class DivisorScaling:
    """Frequencies divided by numbers of the checkpoint, one for each pair of features."""

    numbers: NDArray[Any]
    magnitude: float = 1.0
    """What rotated features are multiplied by."""

    def divisors(self, frequencies: NDArray[Any], base: float) -> NDArray[Any]:
        """What the frequencies are divided by; `ValueError` if these are not as many."""
        if self.numbers.shape != frequencies.shape:
            raise ValueError(f"expected divisors of {len(frequencies)} frequencies, got {list(self.numbers.shape)}")
        return self.numbers.astype(np.float64)


@dataclass(frozen=True, eq=False)
class LongRopeScaling:
    """LongRoPE (Ding et al., 2024): frequencies divided by numbers of the checkpoint, which are others for contexts
    that are longer than those of the first training. `DecoderConfig.for_context` chooses.
    """

    short: NDArray[Any]
    long: NDArray[Any]
    original_max_position_embeddings: int
    magnitude: float

    @staticmethod
    def usual_magnitude(most: int, original: int) -> float:
        """What rotated features are multiplied by if the checkpoint does not say it, by the longest contexts."""
        return math.sqrt(1 + math.log(most / original) / math.log(original)) if most > original > 1 else 1.0

    def divisors(self, frequencies: NDArray[Any], base: float) -> NDArray[Any]:
        """What the frequencies are divided by in short contexts."""
        return DivisorScaling(self.short).divisors(frequencies, base)


RopeScaling = Llama3Scaling | LinearScaling | YarnScaling | DivisorScaling | LongRopeScaling
"""How a model reads contexts that are longer than those it was first trained with."""


@dataclass(frozen=True)
class ExpertsConfig:
    """Feed-forward layers of which a router chooses some for each token; names are those of `config.json`."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    """The inner features of an expert."""
    norm_topk_prob: bool = True
    """Whether the probabilities of the chosen experts are scaled so that their sum is 1."""
    shared_expert_intermediate_size: int = 0
    """The inner features of an expert that all tokens have besides, if there is one."""
    has_shared_expert_gate: bool = False
    """Whether the output of the shared expert is multiplied by a sigmoid of the token."""
    bias: bool = False
    """Whether the router and the experts have biases."""
    swiglu_limit: float | None = None
    """The limit of a clamped gate, `min(gate, limit) * sigmoid(1.702 * min(gate, limit)) * (clip(up) + 1)`."""

    def __post_init__(self) -> None:
        if not 0 < self.num_experts_per_tok <= self.num_experts:
            raise ValueError(f"expected 1 to {self.num_experts} experts for a token, got {self.num_experts_per_tok}")


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of a decoder, and what its family differs in; names are those of Hugging Face's `config.json`."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int

    norms: Norms = "before"
    """Where attention and feed-forward are normalised: before them, after them, on both sides, or before both of them
    at once, whose results are added (`parallel`), or by a norm for each of them (`parallel apart`)."""
    layer_norm: bool = False
    """Whether norms subtract the mean and have biases."""
    rms_norm_eps: float = 1e-5
    qk_norm: QKNorm = "none"
    """Whether each head of queries and keys is normalised, or all heads together, by root mean squares; or each head by
    a norm that subtracts the mean: all by the same one, with a bias, or each by its own weights, without."""
    clip_qkv: float | None = None
    """The limit of queries, keys and values, if they are clipped."""

    rope_theta: float | None = 10000.0
    """The base of rotary embeddings; positions are learned (`embed_positions`) without one."""
    rope_scaling: RopeScaling | None = None
    rotary_features: int | None = None
    """How many features of a head are rotated, if not all."""
    interleaved_rope: bool = False
    """Whether features side by side are rotated together, and not those of both halves."""
    unrotated_layers: frozenset[int] = frozenset()
    """Layers that do not know positions."""

    windows: tuple[int | None, ...] = ()
    """How many positions each layer sees, if not all."""
    local_rope_theta: float | None = None
    """The base of rotary embeddings in layers with a window, without scaling, if it is another one."""

    attention_sinks: bool = False
    """Whether each head attends to a score of its own besides, which has no value (Xiao et al., 2023)."""
    attention_bias: bool = False
    """Whether queries, keys and values have biases."""
    output_bias: bool = False
    """Whether the output of attention has a bias."""
    attention_scale: float | None = None
    """What scores are multiplied by, if not `head_dim ** -0.5`."""
    attn_logit_softcapping: float | None = None

    hidden_act: str = "silu"
    gated_mlp: bool = True
    mlp_bias: bool = False
    experts: ExpertsConfig | None = None
    """What feed-forward layers are, unless they are of `intermediate_size`."""
    dense_layers: frozenset[int] = frozenset()
    """Layers without experts, where others have some."""

    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    """What attention and feed-forward are multiplied by before they are added."""
    logit_scale: float = 1.0
    final_logit_softcapping: float | None = None
    tie_word_embeddings: bool = False
    """Whether the output head is the table of the embedding."""
    head_bias: bool = False

    def for_context(self, context: int) -> DecoderConfig:
        """The same for texts of at most so many tokens: of frequencies for short and long contexts one is chosen."""
        scaling = self.rope_scaling
        if not isinstance(scaling, LongRopeScaling):
            return self
        numbers = scaling.long if self.is_long(context) else scaling.short
        return replace(self, rope_scaling=DivisorScaling(numbers, scaling.magnitude))

    def is_long(self, context: int) -> bool:
        """Whether the model has other frequencies for texts of so many tokens than for short ones."""
        scaling = self.rope_scaling
        return isinstance(scaling, LongRopeScaling) and context > scaling.original_max_position_embeddings

    def window(self, layer: int) -> int | None:
        """How many positions a layer sees, if not all."""
        return self.windows[layer] if self.windows else None
