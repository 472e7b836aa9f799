"""Networks with attention beside those of `transformers`: ViT-B/16 (Dosovitskiy et al., 2021), Swin (Liu et al.,
2021), Whisper (Radford et al., 2022) and a mixture of experts (Jiang et al., 2024); few layers of each, at full width.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks.convolutional import Layers

if TYPE_CHECKING:
    from onnx import ModelProto


def _heads(layers: Layers, x: str, count: int, size: int, order: list[int]) -> str:
    return layers.g.op("Transpose", layers.g.op("Reshape", x, layers.g.ints(0, -1, count, size)), perm=order)


def _attention(layers: Layers, x: str, width: int, heads: int, keys: str = "", bias: str = "") -> str:
    """Multi-head attention on (batch, length, width); `keys` are what it looks at, if not `x` itself."""
    g, size, seen = layers.g, width // heads, keys or x
    q = _heads(layers, layers.linear(x, width, width), heads, size, [0, 2, 1, 3])
    k = _heads(layers, layers.linear(seen, width, width), heads, size, [0, 2, 3, 1])
    v = _heads(layers, layers.linear(seen, width, width), heads, size, [0, 2, 1, 3])
    scores = g.op("Mul", g.op("MatMul", q, k), g.scalar(1 / math.sqrt(size)))
    scores = g.op("Add", scores, bias) if bias else scores
    y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return layers.linear(g.op("Reshape", y, g.ints(0, -1, width)), width, width)


def _mlp(layers: Layers, x: str, width: int) -> str:
    return layers.linear(layers.gelu(layers.linear(x, width, 4 * width)), 4 * width, width)


def vit() -> ModelProto:
    """Four layers of ViT-B/16 on (n, 3, 224, 224)."""
    layers, width = Layers(), 768
    g = layers.g
    w = layers.rng.standard_normal((width, 3, 16, 16), dtype=np.float32) / math.sqrt(768)
    bias = g.weight(np.zeros(width, np.float32))
    x = g.op("Conv", g.input("x", ("n", 3, 224, 224)), g.weight(w), bias, kernel_shape=[16, 16], strides=[16, 16])
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, width, -1)), perm=[0, 2, 1])
    x = g.op("Add", x, g.weight(layers.rng.standard_normal((1, 196, width), dtype=np.float32) / 8))
    for _ in range(4):
        x = g.op("Add", x, _attention(layers, layers.layer_norm(x, width), width, 12))
        x = g.op("Add", x, _mlp(layers, layers.layer_norm(x, width), width))
    return g.model(layers.linear(g.op("ReduceMean", layers.layer_norm(x, width), axes=[1], keepdims=0), width, 1000))


def swin() -> ModelProto:
    """Two blocks of the first stage of Swin-T on (n, 3136, 96): windows of 7 x 7, the second time shifted by 3."""
    layers, width, heads, side, window = Layers(), 96, 3, 56, 7
    g, count = layers.g, side // window
    x = g.input("x", ("n", side * side, width))

    def rolled(x: str, by: int) -> str:
        for axis in (1, 2):
            first, second = g.ops("Split", 2, x, g.ints(by % side, side - by % side), axis=axis)
            x = g.op("Concat", second, first, axis=axis)
        return x

    for shift in (0, 3):
        y = g.op("Reshape", layers.layer_norm(x, width), g.ints(-1, side, side, width))
        y = rolled(y, shift) if shift else y
        y = g.op("Reshape", y, g.ints(-1, count, window, count, window, width))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), g.ints(-1, window**2, width))
        bias = g.weight(layers.rng.standard_normal((1, heads, window**2, window**2), dtype=np.float32))
        y = _attention(layers, y, width, heads, bias=bias)
        y = g.op("Reshape", y, g.ints(-1, count, count, window, window, width))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), g.ints(-1, side, side, width))
        y = g.op("Reshape", rolled(y, -shift) if shift else y, g.ints(-1, side * side, width))
        x = g.op("Add", x, y)
        x = g.op("Add", x, _mlp(layers, layers.layer_norm(x, width), width))
    return g.model(x)


WHISPER = 512, 8
"""Width and heads of the base model."""


def whisper_encoder() -> ModelProto:
    """Two convolutions and two layers of the encoder on a spectrogram (n, 80, frames)."""
    layers, (width, heads) = Layers(), WHISPER
    g = layers.g
    x = g.input("x", ("n", 80, "frames"))
    for inputs, stride in ((80, 1), (width, 2)):
        w = layers.rng.standard_normal((width, inputs, 3), dtype=np.float32) / math.sqrt(3 * inputs)
        bias = g.weight(np.zeros(width, np.float32))
        x = layers.gelu(g.op("Conv", x, g.weight(w), bias, kernel_shape=[3], strides=[stride], pads=[1, 1]))
    x = g.op("Transpose", x, perm=[0, 2, 1])
    for _ in range(2):
        x = g.op("Add", x, _attention(layers, layers.layer_norm(x, width), width, heads))
        x = g.op("Add", x, _mlp(layers, layers.layer_norm(x, width), width))
    return g.model(layers.layer_norm(x, width))


def whisper_decoder() -> ModelProto:
    """A step of two layers of the decoder: a token (n, 1, width) that looks at (n, seen, width) and at sounds."""
    layers, (width, heads) = Layers(), WHISPER
    g = layers.g
    x, past, sounds = g.input("x", ("n", 1, width)), g.input("past", ("n", "p", width)), g.input("y", ("n", "s", width))
    for _ in range(2):
        h = layers.layer_norm(x, width)
        x = g.op("Add", x, _attention(layers, h, width, heads, keys=g.op("Concat", past, h, axis=1)))
        x = g.op("Add", x, _attention(layers, layers.layer_norm(x, width), width, heads, keys=sounds))
        x = g.op("Add", x, _mlp(layers, layers.layer_norm(x, width), width))
    return g.model(layers.linear(layers.layer_norm(x, width), width, 8192))


def experts() -> ModelProto:
    """A mixture of 8 experts on (tokens, 512), of which each token has 2; all are computed, as exporters write it."""
    layers, width, wide, count = Layers(), 512, 1024, 8
    g = layers.g
    x = g.input("x", ("tokens", width))
    gates = g.op("Softmax", layers.linear(x, width, count), axis=-1)
    values, chosen = g.ops("TopK", 2, gates, g.ints(2), axis=-1)
    values = g.op("Div", values, g.op("ReduceSum", values, g.ints(-1), keepdims=1))
    weights = g.op("ScatterElements", g.op("Mul", gates, g.scalar(0)), chosen, values, axis=1)
    up, gate = (layers.rng.standard_normal((count, width, wide), dtype=np.float32) / math.sqrt(width) for _ in range(2))
    down = layers.rng.standard_normal((count, wide, width), dtype=np.float32) / math.sqrt(wide)
    h = g.op("MatMul", g.op("Unsqueeze", x, g.ints(0)), g.weight(gate))
    h = g.op("Mul", g.op("Mul", h, g.op("Sigmoid", h)), g.op("MatMul", g.op("Unsqueeze", x, g.ints(0)), g.weight(up)))
    each = g.op("MatMul", h, g.weight(down))
    scale = g.op("Unsqueeze", g.op("Transpose", weights, perm=[1, 0]), g.ints(2))
    return g.model(g.op("ReduceSum", g.op("Mul", each, scale), g.ints(0), keepdims=0))
