"""Networks whose result has the size of their input, and of sound: DeepLab-v3 (Chen et al., 2017), a YOLO-style
detector (Jocher et al., 2020), a block of a diffusion U-Net (Rombach et al., 2022), HiFi-GAN (Kong et al., 2020) and a
voice activity detector in the manner of Silero's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks.convolutional import Layers

if TYPE_CHECKING:
    from onnx import ModelProto


def deeplab() -> ModelProto:
    """DeepLab-v3 with a small backbone on (n, 3, 257, 257): atrous convolutions, resized to the input's size."""
    layers = Layers()
    g = layers.g

    def atrous(x: str, inputs: int, outputs: int, rate: int) -> str:
        w = layers.rng.standard_normal((outputs, inputs, 3, 3), dtype=np.float32) * math.sqrt(2 / (9 * inputs))
        how = {"kernel_shape": [3, 3], "dilations": [rate, rate], "pads": [rate] * 4}
        return g.op("Relu", layers.norm(g.op("Conv", x, g.weight(w), **how), outputs))

    def resized(x: str, side: int) -> str:
        channels = g.ops("Split", 1, g.op("Shape", x), g.ints(4), axis=0)[0]
        sizes = g.op("Concat", g.op("Slice", channels, g.ints(0), g.ints(2)), g.ints(side, side), axis=0)
        return g.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")

    x, channels = g.input("x", ("n", 3, 257, 257)), 3
    for width, stride, rate in ((64, 2, 0), (128, 2, 0), (256, 2, 0), (256, 1, 2), (256, 1, 4)):
        x = (
            atrous(x, channels, width, rate)
            if rate
            else g.op("Relu", layers.convolution(x, channels, width, 3, stride))
        )
        channels = width
    branches = [g.op("Relu", layers.convolution(x, channels, 128, 1))]
    branches += [atrous(x, channels, 128, rate) for rate in (6, 12, 18)]
    mean = g.op("Relu", layers.biased(g.op("GlobalAveragePool", x), channels, 128, 1))
    branches.append(resized(mean, 33))
    x = g.op("Relu", layers.convolution(g.op("Concat", *branches, axis=1), 640, 128, 1))
    return g.model(resized(layers.biased(x, 128, 21, 1), 257))


def yolo() -> ModelProto:
    """A detector on (n, 3, 320, 320): cross-stage partial blocks, a pyramid of three sizes, boxes and scores."""
    layers = Layers()
    g = layers.g

    def conv(x: str, inputs: int, outputs: int, size: int = 1, stride: int = 1) -> str:
        x = layers.convolution(x, inputs, outputs, size, stride)
        return g.op("Mul", x, g.op("Sigmoid", x))

    def partial(x: str, inputs: int, outputs: int, count: int, shortcut: bool = True) -> str:
        half = outputs // 2
        y, z = conv(x, inputs, half), conv(x, inputs, half)
        for _ in range(count):
            inner = conv(conv(y, half, half), half, half, 3)
            y = g.op("Add", y, inner) if shortcut else inner
        return conv(g.op("Concat", y, z, axis=1), outputs, outputs)

    def doubled(x: str) -> str:
        return g.op("Resize", x, "", g.weight(np.array([1, 1, 2, 2], np.float32)), mode="nearest")

    x = conv(conv(g.input("x", ("n", 3, 320, 320)), 3, 16, 3, 2), 16, 32, 3, 2)
    p3 = partial(conv(partial(x, 32, 32, 1), 32, 64, 3, 2), 64, 64, 2)
    p4 = partial(conv(p3, 64, 128, 3, 2), 128, 128, 3)
    x = conv(partial(conv(p4, 128, 256, 3, 2), 256, 256, 1), 256, 128)
    pools = [x]
    for _ in range(3):
        pools.append(g.op("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    p5 = conv(conv(g.op("Concat", *pools, axis=1), 512, 256), 256, 128)
    x = conv(partial(g.op("Concat", doubled(p5), p4, axis=1), 256, 128, 1, False), 128, 64)
    small = partial(g.op("Concat", doubled(x), p3, axis=1), 128, 64, 1, False)
    middle = partial(g.op("Concat", conv(small, 64, 64, 3, 2), x, axis=1), 128, 128, 1, False)
    large = partial(g.op("Concat", conv(middle, 128, 128, 3, 2), p5, axis=1), 256, 256, 1, False)
    found: list[str] = []
    for x, channels, stride in ((small, 64, 8), (middle, 128, 16), (large, 256, 32)):
        side = 320 // stride
        x = g.op("Reshape", layers.biased(x, channels, 255, 1), g.ints(-1, 3, 85, side * side))
        x = g.op("Sigmoid", g.op("Transpose", x, perm=[0, 1, 3, 2]))
        grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(1, 1, -1, 2).astype(np.float32)
        center, size, scores = g.ops("Split", 3, x, g.ints(2, 2, 81), axis=3)
        center = g.op("Mul", g.op("Add", g.op("Mul", center, g.scalar(2)), g.weight(grid - 0.5)), g.scalar(stride))
        doubled_size = g.op("Mul", size, g.scalar(2))
        size = g.op("Mul", g.op("Mul", doubled_size, doubled_size), g.scalar(4 * stride))
        boxes = g.op("Concat", center, size, scores, axis=3)
        found.append(g.op("Reshape", boxes, g.ints(-1, 3 * side * side, 85)))
    return g.model(g.op("Concat", *found, axis=1))


def diffusion() -> ModelProto:
    """A residual block with the time and an attention block of a diffusion U-Net, on (n, 320, 32, 32)."""
    layers, channels = Layers(), 320
    g = layers.g

    def group_norm(x: str) -> str:
        flat = g.op("Reshape", x, g.ints(0, 32, -1))
        ones, zeros = g.weight(np.ones(32, np.float32)), g.weight(np.zeros(32, np.float32))
        y = g.op("Reshape", g.op("InstanceNormalization", flat, ones, zeros), g.op("Shape", x))
        gamma, beta = (layers.rng.standard_normal((channels, 1, 1), dtype=np.float32) for _ in range(2))
        return g.op("Add", g.op("Mul", y, g.weight(gamma)), g.weight(beta))

    def silu(x: str) -> str:
        return g.op("Mul", x, g.op("Sigmoid", x))

    x, time = g.input("x", ("n", channels, 32, 32)), g.input("time", ("n", 1280))
    y = layers.biased(silu(group_norm(x)), channels, channels, 3)
    y = g.op("Add", y, g.op("Unsqueeze", layers.linear(silu(time), 1280, channels), g.ints(2, 3)))
    x = g.op("Add", x, layers.biased(silu(group_norm(y)), channels, channels, 3))
    y = g.op("Transpose", g.op("Reshape", group_norm(x), g.ints(0, channels, -1)), perm=[0, 2, 1])
    q, k, v = (layers.linear(y, channels, channels) for _ in range(3))
    q, v = (g.op("Transpose", g.op("Reshape", each, g.ints(0, 0, 8, 40)), perm=[0, 2, 1, 3]) for each in (q, v))
    k = g.op("Transpose", g.op("Reshape", k, g.ints(0, 0, 8, 40)), perm=[0, 2, 3, 1])
    weights = g.op("Softmax", g.op("Mul", g.op("MatMul", q, k), g.scalar(1 / math.sqrt(40))), axis=-1)
    y = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    y = layers.linear(g.op("Reshape", y, g.ints(0, 0, channels)), channels, channels)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.ints(0, channels, 32, 32))
    return g.model(g.op("Add", x, y))


def _conv1d(layers: Layers, x: str, inputs: int, outputs: int, size: int, stride: int = 1, dilation: int = 1) -> str:
    w = layers.rng.standard_normal((outputs, inputs, size), dtype=np.float32) / math.sqrt(size * inputs)
    bias = layers.g.weight(np.zeros(outputs, np.float32))
    pad = dilation * (size // 2)
    how = {"kernel_shape": [size], "strides": [stride], "dilations": [dilation], "pads": [pad, pad]}
    return layers.g.op("Conv", x, layers.g.weight(w), bias, **how)


def vocoder() -> ModelProto:
    """A small HiFi-GAN on a spectrogram (n, 80, frames): transposed convolutions and dilated residual blocks."""
    layers = Layers()
    g = layers.g
    x, channels = _conv1d(layers, g.input("x", ("n", 80, "frames")), 80, 128, 7), 128
    for rate in (8, 8, 2, 2):
        w = layers.rng.standard_normal((channels, channels // 2, 2 * rate), dtype=np.float32)
        w = g.weight(w / math.sqrt(2 * channels))
        how = {"kernel_shape": [2 * rate], "strides": [rate], "pads": [rate // 2] * 2}
        x, channels = g.op("ConvTranspose", g.op("LeakyRelu", x, alpha=0.1), w, **how), channels // 2
        parts: list[str] = []
        for size in (3, 7, 11):
            y = x
            for dilation in (1, 3, 5):
                z = _conv1d(layers, g.op("LeakyRelu", y, alpha=0.1), channels, channels, size, 1, dilation)
                y = g.op("Add", y, _conv1d(layers, g.op("LeakyRelu", z, alpha=0.1), channels, channels, size))
            parts.append(y)
        x = g.op("Mul", g.op("Add", g.op("Add", parts[0], parts[1]), parts[2]), g.scalar(1 / 3))
    return g.model(g.op("Tanh", _conv1d(layers, g.op("LeakyRelu", x, alpha=0.01), channels, 1, 7)))


def voice_activity() -> ModelProto:
    """A spectrogram by convolution, four convolutions, an LSTM step by step, on samples (n, 1, samples)."""
    layers = Layers()
    g = layers.g
    size, hop = 256, 64
    phase = 2 * np.pi * np.outer(np.arange(size // 2 + 1), np.arange(size)) / size
    basis = np.concatenate([np.cos(phase), np.sin(phase)]) * np.hanning(size)
    basis = g.weight(basis[:, None].astype(np.float32))
    x = g.op("Conv", g.input("x", ("n", 1, "samples")), basis, kernel_shape=[size], strides=[hop], pads=[96, 96])
    real, imaginary = g.ops("Split", 2, x, axis=1)
    x = g.op("Sqrt", g.op("Add", g.op("Mul", real, real), g.op("Mul", imaginary, imaginary)))
    channels = size // 2 + 1
    for outputs, stride in ((128, 1), (64, 2), (64, 2), (128, 1)):
        x, channels = g.op("Relu", _conv1d(layers, x, channels, outputs, 3, stride)), outputs
    rows = 4 * channels
    w, r = (layers.rng.uniform(-0.1, 0.1, (1, rows, channels)).astype(np.float32) for _ in range(2))
    bias = g.weight(layers.rng.uniform(-0.1, 0.1, (1, 2 * rows)).astype(np.float32))
    x = g.op("Transpose", x, perm=[2, 0, 1])
    x = g.op("Squeeze", g.ops("LSTM", 1, x, g.weight(w), g.weight(r), bias, hidden_size=channels)[0], g.ints(1))
    x = g.op("Transpose", g.op("Relu", x), perm=[1, 2, 0])
    return g.model(g.op("Sigmoid", _conv1d(layers, x, channels, 1, 1)))
