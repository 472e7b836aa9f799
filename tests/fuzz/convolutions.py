"""Random chains of convolutions and pooling, with windows that differ by axis: all modes agree."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.support.programs import Tolerance, run_everywhere

NAME = "convolutions"

CLOSE = Tolerance(relative=1e-4, absolute=2e-4)
SYMBOLS = ("n", "d", "h", "w")
Array = np.ndarray


@dataclass
class Chain:
    """A function that grows by an operator at a time."""

    rng: np.random.Generator
    channels: int
    sizes: list[int]
    """Of the image at the end."""
    lines: list[str] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)

    @property
    def end(self) -> str:
        """The value at the end."""
        return f"%{len(self.lines) - 1}" if self.lines else "%x"

    @property
    def rank(self) -> int:
        """Dimensions of the image."""
        return len(self.sizes)

    def per_axis(self, *choices: int) -> list[int]:
        """One of `choices` for each axis of the image."""
        return self.rng.choice(choices, self.rank).tolist()

    def add(self, text: str) -> None:
        """Appends an operator."""
        self.lines.append(f"  %{len(self.lines)} = relax.{text}")

    def _add_weights(self, shape: tuple[int, ...], channels: int) -> str:
        """Weights whose results are about as large as the data; their name."""
        scale = (channels * np.prod(shape[2:])) ** -0.5
        self.weights.append((self.rng.standard_normal(shape) * scale).astype(np.float32))
        return f"%w{len(self.weights) - 1}"

    def convolve(self) -> None:
        """Appends a convolution, if its window fits into the padded image."""
        kind = self.rng.choice(["full", "1x1", "depthwise", "depthwise", "groups", "multiplier"])
        groups = {"full": 1, "1x1": 1, "depthwise": self.channels, "multiplier": self.channels}.get(kind)
        if groups is None:
            groups = int(self.rng.choice([each for each in (1, 2, 3, 4, 8) if self.channels % each == 0]))
        filters = groups * int(
            self.rng.choice([1, 4, 16, 18, 33] if groups == 1 else [1] if kind == "depthwise" else [2, 4])
        )
        window = [1] * self.rank if kind == "1x1" else self.per_axis(1, 2, 3, 3, 5, 7)
        dilation, strides = self.per_axis(1, 1, 1, 2, 3), self.per_axis(1, 1, 1, 2, 3)
        reach = [step * (size - 1) for step, size in zip(dilation, window, strict=True)]
        same = self.rng.random() < 0.5
        low = [each // 2 if same else int(self.rng.integers(0, each + 1)) for each in reach]
        high = low if same else [int(self.rng.integers(0, each + 1)) for each in reach]
        room = [size + a + b - far - 1 for size, a, b, far in zip(self.sizes, low, high, reach, strict=True)]
        if min(room) < 0:
            return
        weights = self._add_weights((filters, self.channels // groups, *window), self.channels // groups)
        self.add(
            f"nn.conv{self.rank}d {self.end}, {weights} strides = {strides} padding = {low + high} "
            f"dilation = {dilation} groups = {groups}"
        )
        self.channels = filters
        self.sizes = [left // stride + 1 for left, stride in zip(room, strides, strict=True)]

    def transpose(self) -> None:
        """Appends a transposed convolution."""
        window, strides = self.per_axis(1, 2, 3, 4), self.per_axis(1, 2, 3)
        filters = int(self.rng.choice([1, 4, 16, 18]))
        low = [int(self.rng.integers(0, size)) for size in window]
        sizes = [
            (old - 1) * stride + size - 2 * padding
            for old, stride, size, padding in zip(self.sizes, strides, window, low, strict=True)
        ]
        if min(sizes) < 1:
            return
        weights = self._add_weights((self.channels, filters, *window), self.channels)
        self.add(f"nn.conv{self.rank}d_transpose {self.end}, {weights} strides = {strides} padding = {low * 2}")
        self.channels, self.sizes = filters, sizes

    def pool(self) -> None:
        """Appends a pooling."""
        window = [int(self.rng.integers(1, min(4, size) + 1)) for size in self.sizes]
        padding = [int(self.rng.integers(0, size // 2 + 1)) for size in window]
        strides = self.per_axis(1, 2)
        kind = self.rng.choice(["max", "avg"])
        self.add(
            f"nn.{kind}_pool{self.rank}d {self.end} pool_size = {window} strides = {strides} padding = {padding * 2}"
        )
        self.sizes = [
            (size + 2 * low - far) // stride + 1
            for size, low, far, stride in zip(self.sizes, padding, window, strides, strict=True)
        ]

    def elementwise(self) -> None:
        """Appends a function of each element."""
        self.add(f"{self.rng.choice(['nn.relu', 'sigmoid', 'nn.silu'])} {self.end}")


def _constant(weights: Array) -> str:
    shape = "x".join(map(str, weights.shape))
    return f'relax.constant dense<"0x{weights.tobytes().hex().upper()}"> : tensor<{shape}xf32>'


def program(seed: int) -> tuple[str, list[Array]]:
    """A function, and its arguments. Weights are constants, which layouts are made for, or arguments."""
    rng = np.random.default_rng(seed)
    rank = int(rng.choice([1, 2, 2, 2, 3]))
    sizes = rng.choice([1, 2, 3, 5, 8] if rank == 3 else [1, 2, 3, 5, 7, 9, 16, 17, 33], rank).tolist()
    chain = Chain(rng, int(rng.choice([1, 3, 4, 8, 12, 16, 32, 36])), sizes)
    shape = [int(rng.choice([1, 1, 2, 3])), chain.channels, *sizes]
    while not chain.weights:
        chain.convolve()
    for _ in range(rng.integers(0, 4)):
        rng.choice([chain.convolve, chain.convolve, chain.transpose, chain.pool, chain.elementwise])()
    names = [SYMBOLS[0], None, *SYMBOLS[-rank:]]
    dims = [name if name and rng.random() < 0.35 else size for name, size in zip(names, shape, strict=True)]
    symbols = ", ".join(f"%{each}" for each in dims if isinstance(each, str))
    parameters = [f"%x: !relax.tensor<[{', '.join(map(str, dims))}], f32>"]
    arguments, lines = [rng.standard_normal(shape).astype(np.float32)], list[str]()
    for number, weights in enumerate(chain.weights):
        if rng.random() < 0.8:
            lines.append(f"  %w{number} = {_constant(weights)}")
        else:
            parameters.append(f"%w{number}: !relax.tensor<{list(weights.shape)}, f32>")
            arguments.append(weights)
    head = f"relax.func @main{f'[{symbols}]' if symbols else ''}({', '.join(parameters)}) -> !relax.object {{"
    return "\n".join([head, *lines, *chain.lines, f"  relax.return {chain.end}", "}"]), arguments


def run(seed: int) -> None:
    """The chain of a seed."""
    text, arguments = program(seed)
    run_everywhere(text, "main", arguments, CLOSE)
