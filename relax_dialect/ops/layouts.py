"""Layouts: which dimension of a tensor is which, and which of them are cut into blocks, as in `NCHW16c`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from relax_dialect.inference import DEFAULT_PROVER, Inference
from relax_dialect.ops.windows import require_rank
from tir_dialect.dims import Dim, constant, floordiv

BlockedLayout = tuple[tuple[str, int], ...]
"""Letters with the sizes of their blocks; a capital, of size 0, is what is left of a dimension."""


def parse_layout(text: str) -> BlockedLayout | None:
    """`NCHW4c`: capitals, and blocks of some of them; `None` if it makes no sense."""
    if not re.fullmatch(r"([A-Z]|[1-9]\d*[a-z])+", text):
        return None
    found = [(letter, int(size or 0)) for size, letter in re.findall(r"(\d*)([A-Za-z])", text)]
    letters = [letter for letter, _ in found]
    whole = all(letter.upper() in letters for letter in letters)
    return tuple(found) if whole and len(set(letters)) == len(letters) else None


def whole_dims(layout: BlockedLayout, dims: Sequence[Dim | None]) -> dict[str, Dim | None]:
    """The dimensions without blocks, by their capitals."""
    sizes = dict(layout)
    found: dict[str, Dim | None] = {}
    for dim, (letter, _) in zip(dims, layout, strict=True):
        if letter.isupper():
            found[letter] = None if dim is None else dim * max(sizes.get(letter.lower(), 1), 1)
    return found


@dataclass(frozen=True)
class Layout:
    """An order of dimensions such as `NCHW`, some of which may be cut into blocks: `NCHW16c`.

    A capital names a dimension, a number with a small letter the position within a block of so many.
    """

    text: str

    @cached_property
    def dims(self) -> BlockedLayout:
        """The letters with the sizes of their blocks."""
        return parse_layout(self.text) or ()

    @cached_property
    def letters(self) -> str:
        """The letters in order, without numbers: `NCHWc`."""
        return "".join(letter for letter, _ in self.dims)

    @cached_property
    def blocks(self) -> Mapping[str, int]:
        """The sizes of blocks, by the capital of what is cut into them."""
        return {letter.upper(): size for letter, size in self.dims if letter.islower()}

    def index(self, letter: str) -> int:
        """The position of a letter."""
        return self.letters.index(letter)

    def parts(self, letter: str) -> str:
        """The letters of a dimension: `C`, or `Cc` if it is cut into blocks."""
        return letter + letter.lower() if letter in self.blocks else letter

    def pick(self, shape: Sequence[Dim | None], letters: str) -> tuple[Dim | None, ...]:
        """The dimensions that capitals stand for; of what is cut into blocks, the length of all blocks together."""
        found = whole_dims(self.dims, shape)
        return tuple(found[letter] for letter in letters)

    def arrange(self, dims: Mapping[str, Dim | None]) -> tuple[Dim | None, ...]:
        """The shape in this layout; what is cut into blocks has to be a multiple of them."""
        return tuple(self._arranged(letter, size, dims) for letter, size in self.dims)

    def _arranged(self, letter: str, size: int, dims: Mapping[str, Dim | None]) -> Dim | None:
        if letter.islower():
            return constant(size)
        dim, block = dims[letter], self.blocks.get(letter)
        return dim if dim is None or block is None else DEFAULT_PROVER.simplify(floordiv(dim, block))


def layout(inference: Inference, name: str, default: str, blocked: str = "") -> Layout:
    """The property `name`, a permutation of the capitals of the default, which it is if it is absent.

    What the letters `blocked` stand for may be cut into blocks.
    """
    found = Layout(inference.optional_string(name) or default)
    capitals = "".join(letter for letter in Layout(default).letters if letter.isupper())
    if sorted(filter(str.isupper, found.letters)) != sorted(capitals) or not found.blocks.keys() <= set(blocked):
        extra = f" with blocks of {' or '.join(blocked)} at most" if blocked else ""
        inference.fail(f"{name} expected a permutation of {capitals}{extra}, got {found.text}")
    return found


def require_layout(inference: Inference, index: int, layout: Layout) -> tuple[Dim | None, ...]:
    """The shape of tensor operand `index`, which has the rank of a layout and blocks of its sizes."""
    dims = require_rank(inference, index, len(layout.dims))
    require_blocks(inference, dims, layout.dims)
    return dims


def require_blocks(inference: Inference, dims: Iterable[Dim | None], layout: BlockedLayout) -> None:
    """Fails if a dimension that is a block does not have its size."""
    for dim, (letter, size) in zip(dims, layout, strict=True):
        if letter.islower():
            inference.require_equal(dim, constant(size), f"blocks {letter} of {size}")
