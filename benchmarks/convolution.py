"""Convolutions of ResNet-50 and MobileNet on one image, against PyTorch and ONNX Runtime, on 1 and 2 threads.

The number of images is a symbol. Channels are in blocks of a vector, as `convert-layout` makes them in networks, and
so are our weights. ONNX Runtime has rearranged its constant weights before, and rearranges images in every call; in a
chain, where a convolution of 1 x 1 leads back to the channels of the first, it does so only at both ends.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.compute import Case, run
from benchmarks.timing import in_processes
from tir_dialect.target import Target

# channels, height and width, filters, size of the window, stride, groups
RESNET = (
    *((3, 224, 64, 7, 2, 1), (64, 56, 64, 1, 1, 1), (64, 56, 64, 3, 1, 1), (64, 56, 256, 1, 1, 1)),
    *((256, 56, 128, 1, 1, 1), (128, 56, 128, 3, 2, 1), (128, 28, 128, 3, 1, 1), (256, 14, 256, 3, 1, 1)),
    *((512, 7, 512, 3, 1, 1), (1024, 14, 512, 1, 1, 1), (2048, 7, 512, 1, 1, 1), (256, 56, 512, 1, 2, 1)),
    (128, 28, 256, 3, 1, 4),
)
MOBILENET = (
    *((32, 112, 32, 3, 1, 32), (96, 112, 96, 3, 2, 96), (144, 56, 144, 3, 1, 144), (384, 14, 384, 3, 1, 384)),
    *((960, 7, 960, 3, 1, 960), (32, 112, 16, 1, 1, 1), (160, 7, 960, 1, 1, 1)),
)


BLOCK = Target.host().lanes(32)


def cut(x: np.ndarray, axis: int, end: int) -> np.ndarray:
    """A dimension in blocks, with the positions in the blocks as dimension `end`."""
    split = x.reshape(*x.shape[:axis], x.shape[axis] // BLOCK, BLOCK, *x.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(split, axis + 1, end))


def joined(x: np.ndarray) -> np.ndarray:
    """Pictures without blocks."""
    n, channels, height, width, block = x.shape
    return x.transpose(0, 1, 4, 2, 3).reshape(n, channels * block, height, width)


def in_blocks(w: np.ndarray) -> tuple[np.ndarray, str]:
    """Weights in blocks, and their layout."""
    filters = cut(w, 0, 4)
    whole = w.shape[1] % BLOCK == 0
    return (cut(filters, 1, 4), f"OIHW{BLOCK}i{BLOCK}o") if whole else (filters, f"OIHW{BLOCK}o")


def call(x: str, w: str, layout: str, data: str, lists: str) -> str:
    """The text of a convolution."""
    layouts = f'data_layout = "{data}" kernel_layout = "{layout}" out_layout = "NCHW{BLOCK}c"'
    return f"relax.nn.conv2d {x}, {w} {lists} {layouts}"


def case(channels: int, extent: int, filters: int, size: int, stride: int, groups: int) -> Case:
    """A convolution that keeps the size of the image, but for the stride."""
    rng, padding = np.random.default_rng(0), size // 2
    x = rng.standard_normal((1, channels, extent, extent), np.float32)
    w = rng.standard_normal((filters, channels // groups, size, size), np.float32)
    lists = f"strides = [{stride}, {stride}] padding = [{', '.join([str(padding)] * 4)}] groups = {groups}"
    (kernel, layout), whole = in_blocks(w), channels % BLOCK == 0
    image, data = (cut(x, 1, 4), f"NCHW{BLOCK}c") if whole else (x, "NCHW")
    text = f"""
relax.func @main[%n](%x: !relax.tensor<[n, {", ".join(map(str, image.shape[1:]))}], f32>,
    %w: !relax.tensor<[{", ".join(map(str, kernel.shape))}], f32>) -> !relax.object {{
  %0 = {call("%x", "%w", layout, data, lists)}
  relax.return %0
}}"""
    after = (extent + 2 * padding - size) // stride + 1
    kind = "depthwise" if groups == channels else f"{size} x {size}"
    name = f"{kind}, {channels} x {extent} x {extent} to {filters}" + (f", stride {stride}" if stride > 1 else "")
    return Case(
        name,
        text,
        (image, kernel),
        2.0 * after * after * w.size,
        torch=lambda torch: partial(torch.nn.functional.conv2d, stride=stride, padding=padding, groups=groups),
        onnx="Conv",
        attributes={"strides": [stride] * 2, "pads": [padding] * 4, "group": groups},
        weights=True,
        peers=(x, w),
        undo=joined,
    )


def back(first: Case, channels: int) -> Case:
    """A convolution, and one of 1 x 1 to so many channels."""
    x, w = first.peer_arrays
    v = np.random.default_rng(1).standard_normal((channels, w.shape[0], 1, 1), np.float32)
    kernel, layout = in_blocks(v)
    head, result, end = first.text.partition("  relax.return %0")
    head = head.replace(
        ") -> !relax", f",\n    %v: !relax.tensor<[{', '.join(map(str, kernel.shape))}], f32>) -> !relax"
    )
    text = f"{head}  %1 = {call('%0', '%v', layout, f'NCHW{BLOCK}c', '')}\n{result.replace('%0', '%1')}{end}"
    pixels = first.operations / w.size / 2
    return replace(
        first,
        name=f"{first.name}, and back",
        text=text,
        arrays=(*first.arrays, kernel),
        operations=2 * pixels * (w.size + v.size),
        torch=None,
        following=({},),
        peers=(x, w, v),
    )


def kind(op: str, name: str, shape: tuple[int, ...], kernel: tuple[int, ...], **attributes: list[int] | int) -> Case:
    """A convolution of any kind as an ONNX model has it: all sizes of the data are symbols, the weights are known."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(each, np.float32) for each in (shape, kernel))
    given = {"strides": [1] * (len(shape) - 2), "pads": [0] * (2 * len(shape) - 4), "group": 1, **attributes}
    places = 1
    for axis, (length, size) in enumerate(zip(shape[2:], kernel[2:], strict=True)):
        strides, pads = np.array(given["strides"]), np.array(given["pads"]).reshape(2, -1)
        moved = (length + int(pads[:, axis].sum()) - size) // int(strides[axis]) + 1
        places *= length if op == "ConvTranspose" else moved
    return Case(name, "", (x, w), 2.0 * places * w.size, onnx=op, attributes=given, weights=True)


def kinds() -> list[Case]:
    """Convolutions that are none of those networks."""
    return [
        kind("ConvTranspose", "transposed, 2 x 2, stride 2", (1, 128, 28, 28), (128, 64, 2, 2), strides=[2, 2]),
        kind(
            "ConvTranspose",
            "transposed, 4 x 4, stride 2",
            (1, 128, 28, 28),
            (128, 64, 4, 4),
            strides=[2, 2],
            pads=[1] * 4,
        ),
        kind("ConvTranspose", "transposed, 3 x 3", (1, 64, 28, 28), (64, 64, 3, 3), pads=[1] * 4),
        kind(
            "ConvTranspose", "transposed, line of 16, stride 8", (1, 128, 100), (128, 64, 16), strides=[8], pads=[4] * 2
        ),
        kind(
            "ConvTranspose", "transposed, 2 x 2 x 2, stride 2", (1, 32, 8, 14, 14), (32, 16, 2, 2, 2), strides=[2] * 3
        ),
        kind("Conv", "line of 3", (1, 128, 400), (128, 128, 3), pads=[1] * 2),
        kind("Conv", "line of 9, stride 2", (1, 64, 1000), (64, 64, 9), pads=[4] * 2, strides=[2]),
        kind("Conv", "3 x 3 x 3", (1, 16, 16, 28, 28), (32, 16, 3, 3, 3), pads=[1] * 6),
        kind("Conv", "depthwise 7 x 7", (1, 96, 56, 56), (96, 1, 7, 7), pads=[3] * 4, group=96),
        kind("Conv", "depthwise 31 x 31", (1, 64, 28, 28), (64, 1, 31, 31), pads=[15] * 4, group=64),
        kind("Conv", "32 groups of 4 x 3 x 3", (1, 128, 28, 28), (128, 4, 3, 3), pads=[1] * 4, group=32),
        kind("Conv", "32 groups of 8 x 3 x 3", (1, 256, 28, 28), (256, 8, 3, 3), pads=[1] * 4, group=32),
        kind("Conv", "depthwise 5 x 5", (1, 144, 56, 56), (144, 1, 5, 5), pads=[2] * 4, group=144),
        kind("Conv", "depthwise line of 15", (1, 256, 500), (256, 1, 15), pads=[7] * 2, group=256),
        kind("Conv", "line of 7 to 1 filter", (1, 32, 16000), (1, 32, 7), pads=[3] * 2),
        kind("Conv", "3 x 3 to 3 filters", (1, 64, 112, 112), (3, 64, 3, 3), pads=[1] * 4),
        kind("Conv", "3 x 3, 12 apart", (1, 256, 28, 28), (64, 256, 3, 3), pads=[12] * 4, dilations=[12, 12]),
        kind("Conv", "16 x 16, stride 16", (1, 3, 224, 224), (192, 3, 16, 16), strides=[16, 16]),
    ]


def table(threads: int) -> None:
    """The tables for a number of threads."""
    run("convolution", "Convolutions of ResNet-50 in f32", [case(*sizes) for sizes in RESNET], threads)
    run("convolution", "Convolutions of MobileNet in f32", [case(*sizes) for sizes in MOBILENET], threads)
    chains = [back(case(*sizes), sizes[0]) for sizes in (*RESNET, *MOBILENET) if sizes[0] % BLOCK == 0]
    run("convolution", "Other kinds of convolutions in f32", kinds(), threads)
    run("convolution", "Chains of two convolutions in f32", chains, threads)


def main() -> None:
    """One process for each number of threads."""
    in_processes("convolution")
