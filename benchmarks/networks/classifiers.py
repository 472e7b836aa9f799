"""Image classifiers beside those of `convolutional`: SqueezeNet 1.1 (Iandola et al., 2016), DenseNet-121 (Huang et
al., 2017), Inception-v3 (Szegedy et al., 2016), ShuffleNet-v2 (Ma et al., 2018), MobileNet-v3-large (Howard et al.,
2019) and ConvNeXt-T (Liu et al., 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks.convolutional import Layers

if TYPE_CHECKING:
    from onnx import ModelProto

POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}


def squeezenet() -> ModelProto:
    """SqueezeNet 1.1 on (n, 3, 224, 224)."""
    layers = Layers()
    g = layers.g

    def fire(x: str, inputs: int, few: int, many: int) -> str:
        x = g.op("Relu", layers.biased(x, inputs, few, 1))
        return g.op("Concat", *(g.op("Relu", layers.biased(x, few, many, size)) for size in (1, 3)), axis=1)

    x, channels = g.op("Relu", layers.biased(g.input("x", ("n", 3, 224, 224)), 3, 64, 3, 2)), 64
    for stage in (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256))):
        x = g.op("MaxPool", x, ceil_mode=1, **POOL)
        for few, many in stage:
            x, channels = fire(x, channels, few, many), 2 * many
    x = g.op("Relu", layers.biased(x, channels, 1000, 1))
    return g.model(g.op("Flatten", g.op("GlobalAveragePool", x), axis=1))


def densenet121() -> ModelProto:
    """DenseNet-121 on (n, 3, 224, 224): normalisation and ReLU before each convolution."""
    layers, growth = Layers(), 32
    g = layers.g
    x = g.op("Relu", layers.convolution(g.input("x", ("n", 3, 224, 224)), 3, 64, 7, 2))
    x, channels = g.op("MaxPool", x, pads=[1, 1, 1, 1], **POOL), 64
    for stage, count in enumerate((6, 12, 24, 16)):
        if stage:
            x = layers.biased(g.op("Relu", layers.norm(x, channels)), channels, channels // 2, 1)
            x, channels = g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), channels // 2
        for _ in range(count):
            y = layers.biased(g.op("Relu", layers.norm(x, channels)), channels, 4 * growth, 1)
            y = layers.biased(g.op("Relu", layers.norm(y, 4 * growth)), 4 * growth, growth, 3)
            x, channels = g.op("Concat", x, y, axis=1), channels + growth
    return layers.classifier(g.op("Relu", layers.norm(x, channels)), channels)


def inception_v3() -> ModelProto:
    """Inception-v3 on (n, 3, 299, 299), without the auxiliary classifier."""
    layers = Layers()
    g = layers.g

    def conv(x: str, inputs: int, outputs: int, size: int | tuple[int, int], stride: int = 1, pad: bool = True) -> str:
        return g.op("Relu", layers.convolution(x, inputs, outputs, size, stride, padded=pad))

    def chain(x: str, inputs: int, *steps: tuple[int, int | tuple[int, int]]) -> str:
        for outputs, size in steps:
            x, inputs = conv(x, inputs, outputs, size), outputs
        return x

    def pooled(x: str, inputs: int, outputs: int) -> str:
        return conv(g.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), inputs, outputs, 1)

    def reduced(x: str, inputs: int, *branches: Sequence[tuple[int, int | tuple[int, int]]]) -> str:
        """Half the rows and columns: the last convolution of each branch has stride 2, beside a maximum."""
        parts: list[str] = []
        for *steps, (outputs, size) in branches:
            y = chain(x, inputs, *steps)
            parts.append(conv(y, steps[-1][0] if steps else inputs, outputs, size, 2, pad=False))
        return g.op("Concat", *parts, g.op("MaxPool", x, **POOL), axis=1)

    x = conv(g.input("x", ("n", 3, 299, 299)), 3, 32, 3, 2, pad=False)
    x = conv(conv(x, 32, 32, 3, pad=False), 32, 64, 3)
    x = conv(conv(g.op("MaxPool", x, **POOL), 64, 80, 1), 80, 192, 3, pad=False)
    x, channels = g.op("MaxPool", x, **POOL), 192
    for few in (32, 64, 64):
        branches = [((64, 1),), ((48, 1), (64, 5)), ((64, 1), (96, 3), (96, 3))]
        parts = [chain(x, channels, *steps) for steps in branches]
        x, channels = g.op("Concat", *parts, pooled(x, channels, few), axis=1), 224 + few
    x, channels = reduced(x, channels, [(384, 3)], [(64, 1), (96, 3), (96, 3)]), 480 + channels
    for c in (128, 160, 160, 192):
        wide, high = (1, 7), (7, 1)
        branches = [((192, 1),), ((c, 1), (c, wide), (192, high))]
        branches.append(((c, 1), (c, high), (c, wide), (c, high), (192, wide)))
        parts = [chain(x, channels, *steps) for steps in branches]
        x, channels = g.op("Concat", *parts, pooled(x, channels, 192), axis=1), 768
    x = reduced(x, channels, [(192, 1), (320, 3)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)])
    channels += 512
    for _ in range(2):
        y, z = chain(x, channels, (384, 1)), chain(x, channels, (448, 1), (384, 3))
        parts = [conv(each, 384, 384, size) for each in (y, z) for size in ((1, 3), (3, 1))]
        x, channels = g.op("Concat", chain(x, channels, (320, 1)), *parts, pooled(x, channels, 192), axis=1), 2048
    return layers.classifier(x, channels)


def shufflenet_v2() -> ModelProto:
    """ShuffleNet-v2 1.0x on (n, 3, 224, 224): half of the channels pass, and channels of both halves alternate."""
    layers = Layers()
    g = layers.g

    def branch(x: str, inputs: int, outputs: int, stride: int) -> str:
        y = g.op("Relu", layers.convolution(x, inputs, outputs, 1))
        y = layers.convolution(y, outputs, outputs, 3, stride, groups=outputs)
        return g.op("Relu", layers.convolution(y, outputs, outputs, 1))

    def shuffled(x: str, channels: int, side: int) -> str:
        apart = g.op("Reshape", x, g.ints(-1, 2, channels // 2, side, side))
        return g.op("Reshape", g.op("Transpose", apart, perm=[0, 2, 1, 3, 4]), g.ints(-1, channels, side, side))

    x = g.op("Relu", layers.convolution(g.input("x", ("n", 3, 224, 224)), 3, 24, 3, 2))
    x, channels, side = g.op("MaxPool", x, pads=[1, 1, 1, 1], **POOL), 24, 56
    for outputs, blocks in ((116, 4), (232, 8), (464, 4)):
        side, half = side // 2, outputs // 2
        first = layers.convolution(x, channels, channels, 3, 2, groups=channels)
        first = g.op("Relu", layers.convolution(first, channels, half, 1))
        x, channels = g.op("Concat", first, branch(x, channels, half, 2), axis=1), outputs
        for _ in range(blocks - 1):
            kept, used = g.ops("Split", 2, shuffled(x, channels, side), axis=1)
            x = g.op("Concat", kept, branch(used, half, half, 1), axis=1)
        x = shuffled(x, channels, side)
    return layers.classifier(g.op("Relu", layers.convolution(x, channels, 1024, 1)), 1024)


MOBILENET_V3 = (
    *((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1)),
    *((5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1)),
    *((3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2)),
    *((5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)),
)
"""Window, expanded channels, channels, squeeze-and-excite, hard-swish and stride of each block."""


def mobilenet_v3() -> ModelProto:
    """MobileNet-v3-large on (n, 3, 224, 224)."""
    layers = Layers()
    g = layers.g

    def excited(x: str, channels: int) -> str:
        y = g.op("Relu", layers.biased(g.op("GlobalAveragePool", x), channels, channels // 4, 1))
        return g.op("Mul", x, g.op("HardSigmoid", layers.biased(y, channels // 4, channels, 1), alpha=1 / 6))

    x, channels = g.op("HardSwish", layers.convolution(g.input("x", ("n", 3, 224, 224)), 3, 16, 3, 2)), 16
    for size, wide, outputs, has_excite, has_swish, stride in MOBILENET_V3:
        act = "HardSwish" if has_swish else "Relu"
        y = g.op(act, layers.convolution(x, channels, wide, 1)) if wide != channels else x
        y = layers.convolution(y, wide, wide, size, stride, groups=wide)
        y = layers.convolution(g.op(act, excited(y, wide) if has_excite else y), wide, outputs, 1)
        x, channels = g.op("Add", x, y) if stride == 1 and channels == outputs else y, outputs
    x = g.op("GlobalAveragePool", g.op("HardSwish", layers.convolution(x, channels, 960, 1)))
    x = g.op("HardSwish", layers.biased(x, 960, 1280, 1))
    return g.model(g.op("Flatten", layers.biased(x, 1280, 1000, 1), axis=1))


def convnext() -> ModelProto:
    """ConvNeXt-T on (n, 3, 224, 224): depthwise 7 x 7, normalisation over channels, two linear layers with GELU."""
    layers = Layers()
    g = layers.g

    def channels_last(x: str) -> str:
        return g.op("Transpose", x, perm=[0, 2, 3, 1])

    def channels_first(x: str) -> str:
        return g.op("Transpose", x, perm=[0, 3, 1, 2])

    def block(x: str, channels: int) -> str:
        y = layers.layer_norm(channels_last(layers.biased(x, channels, channels, 7, groups=channels)), channels)
        y = layers.linear(layers.gelu(layers.linear(y, channels, 4 * channels)), 4 * channels, channels)
        scale = g.weight(np.full(channels, 0.1, np.float32))
        return g.op("Add", x, channels_first(g.op("Mul", y, scale)))

    x, channels = g.input("x", ("n", 3, 224, 224)), 3
    for width, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if channels > 3:
            x = channels_first(layers.layer_norm(channels_last(x), channels))
        size = 4 if channels == 3 else 2
        w = layers.rng.standard_normal((width, channels, size, size), dtype=np.float32) / math.sqrt(channels * size**2)
        bias = g.weight(np.zeros(width, np.float32))
        x = g.op("Conv", x, g.weight(w), bias, kernel_shape=[size] * 2, strides=[size] * 2)
        if channels == 3:
            x = channels_first(layers.layer_norm(channels_last(x), width))
        channels = width
        for _ in range(count):
            x = block(x, channels)
    return layers.classifier(x, channels)
