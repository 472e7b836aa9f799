"""Convolutions of any kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Convolution:
    """Of images with a known number of channels; height and width are symbols."""

    channels: int
    filters: int
    size: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    layout: str = "NCHW"

    @property
    def text(self) -> str:
        kernel = f"[{self.filters}, {self.channels // self.groups}, {self.size}, {self.size}]"
        image = ", ".join({"N": "n", "C": str(self.channels), "H": "h", "W": "w"}[letter] for letter in self.layout)
        settings = {"strides": [self.stride] * 2, "padding": [self.padding] * 4, "dilation": [self.dilation] * 2}
        lists = " ".join(f"{name} = {value}" for name, value in settings.items())
        layout = "" if self.layout == "NCHW" else f' data_layout = "{self.layout}"'
        return f"""relax.func @main[%n, %h, %w](%x: !relax.tensor<[{image}], f32>, %k: !relax.tensor<{kernel}, f32>)
    -> !relax.object {{
  %0 = relax.nn.conv2d %x, %k {lists} groups = {self.groups}{layout}
  relax.return %0
}}"""

    def arrays(self, n: int, h: int, w: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(n + h + w)
        kernel = (self.filters, self.channels // self.groups, self.size, self.size)
        x = rng.standard_normal((n, self.channels, h, w)).astype("f4")
        return x, rng.standard_normal(kernel).astype("f4")

    def expected(self, x: np.ndarray, k: np.ndarray) -> np.ndarray:
        """The sum over the elements of the window."""
        wide = np.pad(x.astype("f8"), [(0, 0), (0, 0), (self.padding,) * 2, (self.padding,) * 2])
        reach = (self.size - 1) * self.dilation
        height, width = ((extent - reach - 1) // self.stride + 1 for extent in wide.shape[2:])
        parts = np.split(wide, self.groups, 1), np.split(k.astype("f8"), self.groups, 0)
        result = np.zeros((len(x), self.filters, height, width))
        members = np.split(result, self.groups, 1)
        for p in range(self.size):
            for q in range(self.size):
                rows = slice(p * self.dilation, p * self.dilation + (height - 1) * self.stride + 1, self.stride)
                columns = slice(q * self.dilation, q * self.dilation + (width - 1) * self.stride + 1, self.stride)
                for member, part, kernel in zip(members, *parts, strict=True):
                    member += np.einsum("nchw,oc->nohw", part[:, :, rows, columns], kernel[:, :, p, q])
        return result
