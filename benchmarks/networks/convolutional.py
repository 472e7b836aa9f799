"""Convolution networks, with batch normalisation as exported: ResNet-50 (He et al., 2015), MobileNet-v2 (Sandler et
al., 2018), VGG-19 (Simonyan and Zisserman, 2014) and U-Net (Ronneberger et al., 2015).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks.graph import Graph

if TYPE_CHECKING:
    from onnx import ModelProto

CLASSES = 1000


class Layers:
    """Convolutions with random weights; remembers how many channels a value has."""

    def __init__(self) -> None:
        self.g = Graph()
        self.rng = np.random.default_rng(3)

    def convolution(
        self,
        x: str,
        inputs: int,
        outputs: int,
        size: int | tuple[int, int],
        stride: int = 1,
        groups: int = 1,
        *,
        padded: bool = True,
    ) -> str:
        """A convolution that keeps the image's size, but for the stride, and batch normalisation."""
        return self.norm(self._bare(x, inputs, outputs, size, stride, groups, padded), outputs)

    def biased(
        self, x: str, inputs: int, outputs: int, size: int | tuple[int, int], stride: int = 1, groups: int = 1
    ) -> str:
        """A convolution that keeps the image's size, but for the stride, with a bias."""
        bias = self.g.weight(self.rng.standard_normal(outputs, dtype=np.float32) / 8)
        return self._bare(x, inputs, outputs, size, stride, groups, True, bias)

    def _bare(
        self,
        x: str,
        inputs: int,
        outputs: int,
        size: int | tuple[int, int],
        stride: int,
        groups: int,
        padded: bool,
        *bias: str,
    ) -> str:
        window = [size] * 2 if isinstance(size, int) else [*size]
        shape = (outputs, inputs // groups, *window)
        w = self.rng.standard_normal(shape, dtype=np.float32) * math.sqrt(2 / math.prod(shape[1:]))
        pads = [side // 2 for side in window] * 2 if padded else [0] * 4
        how = {"kernel_shape": window, "strides": [stride] * 2, "pads": pads, "group": groups}
        return self.g.op("Conv", x, self.g.weight(w), *bias, **how)

    def norm(self, x: str, channels: int) -> str:
        """Batch normalisation."""
        gamma, var = (self.rng.uniform(0.5, 1.5, channels).astype(np.float32) for _ in range(2))
        beta, mean = (self.rng.standard_normal(channels, dtype=np.float32) / 8 for _ in range(2))
        values = (self.g.weight(each) for each in (gamma, beta, mean, var))
        return self.g.op("BatchNormalization", x, *values, epsilon=1e-5)

    def layer_norm(self, x: str, features: int) -> str:
        """Normalisation over the last axis."""
        gamma = self.rng.uniform(0.5, 1.5, features).astype(np.float32)
        beta = self.rng.standard_normal(features, dtype=np.float32) / 8
        return self.g.op("LayerNormalization", x, self.g.weight(gamma), self.g.weight(beta), axis=-1, epsilon=1e-5)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """A product with weights over the last axis, and a bias."""
        w = self.rng.standard_normal((inputs, outputs), dtype=np.float32) / math.sqrt(inputs)
        bias = self.rng.standard_normal(outputs, dtype=np.float32) / 8
        return self.g.op("Add", self.g.op("MatMul", x, self.g.weight(w)), self.g.weight(bias))

    def gelu(self, x: str) -> str:
        """The exact GELU, as exporters write it."""
        g = self.g
        erf = g.op("Erf", g.op("Div", x, g.scalar(math.sqrt(2))))
        return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.scalar(1))), g.scalar(0.5))

    def classifier(self, x: str, channels: int) -> ModelProto:
        """Mean over the image, and a linear layer."""
        g = self.g
        w = self.rng.standard_normal((CLASSES, channels), dtype=np.float32) / math.sqrt(channels)
        b = self.rng.standard_normal(CLASSES, dtype=np.float32)
        flat = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
        return g.model(g.op("Gemm", flat, g.weight(w), g.weight(b), transB=1))


def resnet50() -> ModelProto:
    """ResNet-50 on (n, 3, 224, 224), the stride in the 3x3 convolution."""
    layers = Layers()
    g = layers.g
    x = g.op("Relu", layers.convolution(g.input("x", ("n", 3, 224, 224)), 3, 64, 7, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = g.op("Relu", layers.convolution(x, channels, width, 1))
            y = g.op("Relu", layers.convolution(y, width, width, 3, stride))
            y = layers.convolution(y, width, 4 * width, 1)
            x = x if block else layers.convolution(x, channels, 4 * width, 1, stride)
            x, channels = g.op("Relu", g.op("Add", y, x)), 4 * width
    return layers.classifier(x, channels)


MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks and first stride of each stage."""


def mobilenet_v2() -> ModelProto:
    """MobileNet-v2 on (n, 3, 224, 224)."""
    layers = Layers()
    g = layers.g

    def relu6(x: str) -> str:
        return g.op("Clip", x, g.scalar(0), g.scalar(6))

    x, channels = relu6(layers.convolution(g.input("x", ("n", 3, 224, 224)), 3, 32, 3, 2)), 32
    for expansion, outputs, blocks, first in MOBILENET:
        for block in range(blocks):
            stride, wide = first if not block else 1, channels * expansion
            y = relu6(layers.convolution(x, channels, wide, 1)) if expansion > 1 else x
            y = relu6(layers.convolution(y, wide, wide, 3, stride, groups=wide))
            y = layers.convolution(y, wide, outputs, 1)
            x = g.op("Add", x, y) if stride == 1 and channels == outputs else y
            channels = outputs
    return layers.classifier(relu6(layers.convolution(x, channels, 1280, 1)), 1280)


EFFICIENTNET = (
    *((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)),
    *((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
)
"""Expansion, channels, blocks, first stride and window of each stage."""


def efficientnet_b0() -> ModelProto:
    """EfficientNet-B0 on (n, 3, 224, 224)."""
    layers = Layers()
    g = layers.g

    def swish(x: str) -> str:
        return g.op("Mul", x, g.op("Sigmoid", x))

    def linear(x: str, inputs: int, outputs: int) -> str:
        """A convolution with a bias of an image of one pixel."""
        w = layers.rng.standard_normal((outputs, inputs, 1, 1), dtype=np.float32) / math.sqrt(inputs)
        return g.op("Conv", x, g.weight(w), g.weight(np.zeros(outputs, np.float32)), kernel_shape=[1, 1])

    def excited(x: str, channels: int, few: int) -> str:
        """Channels times numbers that their means give."""
        y = swish(linear(g.op("GlobalAveragePool", x), channels, few))
        return g.op("Mul", x, g.op("Sigmoid", linear(y, few, channels)))

    x, channels = swish(layers.convolution(g.input("x", ("n", 3, 224, 224)), 3, 32, 3, 2)), 32
    for expansion, outputs, blocks, first, size in EFFICIENTNET:
        for block in range(blocks):
            stride, wide = first if not block else 1, channels * expansion
            y = swish(layers.convolution(x, channels, wide, 1)) if expansion > 1 else x
            y = swish(layers.convolution(y, wide, wide, size, stride, groups=wide))
            y = layers.convolution(excited(y, wide, channels // 4), wide, outputs, 1)
            x = g.op("Add", x, y) if stride == 1 and channels == outputs else y
            channels = outputs
    return layers.classifier(swish(layers.convolution(x, channels, 1280, 1)), 1280)


VGG = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
"""Channels and convolutions of each stage."""


def vgg19() -> ModelProto:
    """VGG-19 on (n, 3, 224, 224), with a mean and one linear layer at the end."""
    layers = Layers()
    g = layers.g
    x, channels = g.input("x", ("n", 3, 224, 224)), 3
    for width, count in VGG:
        for _ in range(count):
            x, channels = g.op("Relu", layers.convolution(x, channels, width, 3)), width
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    return layers.classifier(x, channels)


UNET = (32, 64, 128, 256)
"""Channels of each level."""


def unet() -> ModelProto:
    """A U-Net on (n, 3, h, w), whose sides are multiples of 8."""
    layers = Layers()
    g = layers.g

    def pair(x: str, inputs: int, outputs: int) -> str:
        y = g.op("Relu", layers.convolution(x, inputs, outputs, 3))
        return g.op("Relu", layers.convolution(y, outputs, outputs, 3))

    x, channels, skipped = g.input("x", ("n", 3, "h", "w")), 3, list[tuple[str, int]]()
    for width in UNET:
        x = x if channels == 3 else g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x, channels = pair(x, channels, width), width
        skipped.append((x, width))
    for beside, width in reversed(skipped[:-1]):
        w = layers.rng.standard_normal((channels, width, 2, 2), dtype=np.float32) / math.sqrt(4 * channels)
        x = g.op("ConvTranspose", x, g.weight(w), kernel_shape=[2, 2], strides=[2, 2])
        x, channels = pair(g.op("Concat", beside, x, axis=1), 2 * width, width), width
    return g.model(layers.convolution(x, channels, 2, 1))
