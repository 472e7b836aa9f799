"""Convolutions whose channels are cut into blocks, against the same convolution without blocks, in every mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.operators.support import Programs, Tolerance, random, wide
from tests.support.programs import run_everywhere


def cut(x: np.ndarray, axis: int, size: int, end: int | None = None) -> np.ndarray:
    """A dimension in blocks, with the positions in the blocks as dimension `end`, the last one unless told."""
    split = x.reshape(*x.shape[:axis], x.shape[axis] // size, size, *x.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(split, axis + 1, split.ndim - 1 if end is None else end))


@dataclass(frozen=True)
class Case:
    """A convolution over a picture with `channels`, in blocks of `block` (0: not in blocks), to `filters` in blocks."""

    channels: int
    filters: int
    size: int = 3
    stride: int = 1
    padding: int = 1
    groups: int = 1
    block: int = 4
    out_block: int = 4
    dilation: int = 1

    @property
    def inner(self) -> int:
        """The block of the kernel's channels; 0 if they are not in blocks."""
        return self.block if self.block and self.channels // self.groups % self.block == 0 else 0

    @property
    def program(self) -> tuple[str, str]:
        picture = f"{self.channels // self.block}, p, q, {self.block}" if self.block else f"{self.channels}, p, q"
        seen, size, out = self.channels // self.groups, f"{self.size}, {self.size}", self.out_block
        inside = f"{self.inner}, {out}" if self.inner else str(out)
        kernel = f"{self.filters // out}, {seen // max(self.inner, 1)}, {size}, {inside}"
        lists = (
            f"strides = [{self.stride}, {self.stride}] padding = [{self.padding}, {self.padding}, 0, {self.padding}]"
        )
        lists += f" dilation = [{self.dilation}, {self.dilation}] groups = {self.groups}"
        data, weights = f"NCHW{self.block}c", f"OIHW{self.inner}i{out}o"
        return (
            f"%x: !relax.tensor<[n, {picture}], f32>, %w: !relax.tensor<[{kernel}], f32>",
            f'relax.nn.conv2d %x, %w {lists} data_layout = "{data if self.block else "NCHW"}" '
            f'kernel_layout = "{weights if self.inner else f"OIHW{out}o"}" out_layout = "NCHW{out}c"',
        )

    def expected(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The sums over the positions of the window and the channels of a group."""
        p, s, d = self.padding, self.stride, self.dilation
        data = np.pad(wide(x), ((0, 0), (0, 0), (p, 0), (p, p)))
        data = data.reshape(len(x), self.groups, self.channels // self.groups, *data.shape[2:])
        kernel = wide(w).reshape(self.groups, -1, *w.shape[1:])
        height, width = ((length - d * (self.size - 1) - 1) // s + 1 for length in data.shape[3:])
        total = np.zeros((len(x), self.groups, kernel.shape[1], height, width))
        for i, j in np.ndindex(self.size, self.size):
            rows, columns = slice(i * d, i * d + s * height, s), slice(j * d, j * d + s * width, s)
            part = data[..., rows, columns][..., :height, :width]
            total += np.einsum("ngchw,goc->ngohw", part, kernel[..., i, j])
        return total.reshape(len(x), self.filters, height, width).astype(np.float32)


CASES = {
    "window": Case(8, 12),
    "point": Case(4, 8, size=1, padding=0),
    "steps": Case(8, 8, stride=2),
    "wide_steps": Case(4, 4, stride=2, dilation=2),
    "first": Case(3, 8, size=5, stride=2, padding=2, block=0),
    "depthwise": Case(8, 8, groups=8),
    "depthwise_steps": Case(4, 4, groups=4, stride=2),
    "groups": Case(16, 8, groups=2),
    "other_blocks": Case(8, 6, out_block=3),
    "parts_of_blocks": Case(8, 8, groups=4, size=1, padding=0),
}
PROGRAMS = Programs(
    {
        **{name: case.program for name, case in CASES.items()},
        "line": (
            "%x: !relax.tensor<[n, 2, p, 8], f32>, %w: !relax.tensor<[o, 2, 3, 8, 8], f32>",
            'relax.nn.conv1d %x, %w data_layout = "NCW8c" kernel_layout = "OIW8i8o"',
        ),
        "back": (
            "%x: !relax.tensor<[n, 2, p, 4], f32>, %w: !relax.tensor<[2, 2, 3, 4, 4], f32>",
            'relax.nn.conv1d_transpose %x, %w data_layout = "NCW4c" kernel_layout = "IOW4i4o"',
        ),
    }
)
NEAR = Tolerance(1e-5, 1e-4)


@pytest.mark.parametrize("shape", [(0, 6, 7), (1, 7, 9), (3, 8, 6)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_blocks(name: str, shape: tuple[int, int, int]):
    case, (n, h, w) = CASES[name], shape
    x = random("f32", n, case.channels, h, w, low=-1, high=1)
    k = random("f32", case.filters, case.channels // case.groups, case.size, case.size, seed=1, low=-1, high=1)
    data = cut(x, 1, case.block) if case.block else x
    kernel = cut(k, 0, case.out_block)
    if case.inner:
        kernel = cut(kernel, 1, case.inner, 4)
    PROGRAMS.check(name, [data, kernel], cut(case.expected(x, k), 1, case.out_block), NEAR)


@pytest.mark.parametrize("filters", [8, 16, 0])
def test_blocks_of_a_line(filters: int):
    x, w = random("f32", 2, 16, 9, low=-1, high=1), random("f32", filters, 16, 3, seed=1, low=-1, high=1)
    expected = sum(np.einsum("ncw,oc->now", wide(x)[..., k : k + 7], wide(w)[..., k]) for k in range(3))
    kernel = cut(cut(w, 0, 8), 1, 8, 3)
    PROGRAMS.check("line", [cut(x, 1, 8), kernel], cut(np.asarray(expected, np.float32), 1, 8), NEAR)


def test_blocks_of_a_transposed_line():
    x, w = random("f32", 2, 8, 5, low=-1, high=1), random("f32", 8, 8, 3, seed=1, low=-1, high=1)
    expected = np.zeros((2, 8, 7))
    for k in range(3):
        expected[..., k : k + 5] += np.einsum("ncw,co->now", wide(x), wide(w)[..., k])
    kernel = cut(cut(w, 0, 4, 3), 1, 4)
    PROGRAMS.check("back", [cut(x, 1, 4), kernel], cut(expected.astype(np.float32), 1, 4), NEAR)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("groups", [16, 4, 1])
@pytest.mark.parametrize("shape", [(1, 9, 20), (2, 2, 3)], ids=str)
def test_windows_of_one_row_or_column(groups: int, shape: tuple[int, int, int]):
    """Rows of the window may be out of bounds, though the pixels of a row never are, and the other way round."""
    x = random("f32", shape[0], 1, *shape[1:], 16, low=-1, high=1)
    tall, wide = (random("f32", 1, 16 // groups, *size, 16, low=-1, high=1) for size in ((5, 1), (1, 5)))
    layouts = f'groups = {groups} data_layout = "NCHW16c" kernel_layout = "OIHW16o"'
    kernels = [f"%{name}: !relax.tensor<{list(each.shape)}, f32>" for name, each in (("a", tall), ("b", wide))]
    parameters = ", ".join(["%x: !relax.tensor<[n, 1, h, w, 16], f32>", *kernels])
    program = f"""relax.func @main[%n, %h, %w]({parameters}) -> !relax.object {{
  %0 = relax.nn.conv2d %x, %a padding = [2, 0, 1, 0] strides = [1, 2] {layouts}
  %1 = relax.nn.conv2d %0, %b padding = [0, 2, 0, 3] {layouts}
  %2 = relax.nn.conv2d %1, %a padding = [3, 0, 3, 0] strides = [2, 1] {layouts}
  relax.return %2
}}"""
    run_everywhere(program, "main", [x, tall, wide], NEAR)
