"""A tagger: embeddings, a bidirectional LSTM over sentences of different lengths, scores for every word."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relax_dialect.builder import BlockBuilder, op, tensor


@dataclass(frozen=True)
class LstmConfig:
    """Sizes of a tagger."""

    vocab_size: int = 5000
    embedding_size: int = 64
    units: int = 96
    tags: int = 17


Weights = Mapping[str, np.ndarray]
"""`embeddings`, `w`, `r`, `b` of the layer as in ONNX (gates input, output, forget, cell), `out`, `out_bias`."""


def tagger(config: LstmConfig, weights: Weights) -> ModuleOp:
    """`main(ids, lengths)`: the scores of the tags of every word.

    `ids` is `i64` of shape (batch, length), `lengths` `i64` of shape (batch,): how many words of each row count. The
    result is `f32` of shape (batch, length, tags).
    """
    bb = BlockBuilder()
    params = {"ids": tensor(("batch", "length"), "i64"), "lengths": tensor(("batch",), "i64")}
    with bb.function("main", params) as (ids, lengths):
        with bb.dataflow():
            batch, length = ids.shape
            x = op.take(bb.const(weights["embeddings"], name="embeddings"), ids, axis=0)
            w, r, b = (bb.const(weights[name], name=name) for name in ("w", "r", "b"))
            state = op.zeros((batch, 2, config.units), "f32")
            peephole = op.zeros((2, 3 * config.units), "f32")
            y, _, _ = op.nn.lstm(
                x, w, r, b, lengths, [state, state, peephole], direction="bidirectional", batch_first=True
            )
            flat = op.reshape(y, (batch, length, 2 * config.units))
            scores = flat @ bb.const(weights["out"], name="out") + bb.const(weights["out_bias"])
            out = bb.emit_output(scores)
        bb.emit_func_output(out)
    return bb.get()


def random_weights(config: LstmConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights of the right shapes, with a spread that keeps activations in range."""
    rng = np.random.default_rng(seed)
    units, features = config.units, config.embedding_size
    shapes = {
        "embeddings": (config.vocab_size, features),
        "w": (2, 4 * units, features),
        "r": (2, 4 * units, units),
        "b": (2, 8 * units),
        "out": (2 * units, config.tags),
        "out_bias": (config.tags,),
    }
    return {
        name: rng.standard_normal(shape, dtype=np.float32) / (1 if name == "embeddings" else math.sqrt(units))
        for name, shape in shapes.items()
    }
