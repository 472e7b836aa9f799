"""Convolutions of ResNet-50 and MobileNet on one picture, against PyTorch and ONNX Runtime, on 1 and 2 threads.

The number of pictures is a symbol. Our weights are an argument and rearranged in every call, if at all; ONNX Runtime
has rearranged its constant weights before.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.compute import Case, in_processes, run

# channels, height and width, filters, size of the window, stride, groups
RESNET = (
    *((3, 224, 64, 7, 2, 1), (64, 56, 64, 1, 1, 1), (64, 56, 64, 3, 1, 1), (64, 56, 256, 1, 1, 1)),
    *((256, 56, 128, 1, 1, 1), (128, 56, 128, 3, 2, 1), (128, 28, 128, 3, 1, 1), (256, 14, 256, 3, 1, 1)),
    *((512, 7, 512, 3, 1, 1), (1024, 14, 512, 1, 1, 1), (256, 56, 512, 1, 2, 1)),
)
MOBILENET = (
    *((32, 112, 32, 3, 1, 32), (96, 112, 96, 3, 2, 96), (144, 56, 144, 3, 1, 144), (384, 14, 384, 3, 1, 384)),
    *((960, 7, 960, 3, 1, 960), (32, 112, 16, 1, 1, 1), (160, 7, 960, 1, 1, 1)),
)


def case(channels: int, extent: int, filters: int, size: int, stride: int, groups: int) -> Case:
    """A convolution that keeps the size of the picture, but for the stride."""
    rng, padding = np.random.default_rng(0), size // 2
    x = rng.standard_normal((1, channels, extent, extent), np.float32)
    w = rng.standard_normal((filters, channels // groups, size, size), np.float32)
    lists = f"strides = [{stride}, {stride}] padding = [{', '.join([str(padding)] * 4)}] groups = {groups}"
    picture = f"!relax.tensor<[n, {channels}, {extent}, {extent}], f32>"
    weights = f"!relax.tensor<[{', '.join(map(str, w.shape))}], f32>"
    text = f"""
relax.func @main[%n](%x: {picture}, %w: {weights}) -> !relax.object {{
  %0 = relax.nn.conv2d %x, %w {lists}
  relax.return %0
}}"""
    after = (extent + 2 * padding - size) // stride + 1
    kind = "depthwise" if groups > 1 else f"{size} x {size}"
    name = f"{kind}, {channels} x {extent} x {extent} to {filters}" + (f", stride {stride}" if stride > 1 else "")
    return Case(
        name,
        text,
        (x, w),
        2.0 * after * after * w.size,
        torch=lambda torch: partial(torch.nn.functional.conv2d, stride=stride, padding=padding, groups=groups),
        onnx="Conv",
        attributes={"strides": [stride] * 2, "pads": [padding] * 4, "group": groups},
        weights=True,
    )


def table(threads: int) -> None:
    """The tables for a number of threads."""
    run("convolution", "Convolutions of ResNet-50 in f32", [case(*sizes) for sizes in RESNET], threads)
    run("convolution", "Convolutions of MobileNet in f32", [case(*sizes) for sizes in MOBILENET], threads)


def main() -> None:
    """One process for each number of threads."""
    in_processes("convolution")
