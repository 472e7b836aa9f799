"""What convolutions and pooling share: data with named dimensions, and results in a layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_dialect.ops.layouts import Layout
from tir_dialect import te
from tir_dialect.dims import Dim


@dataclass(frozen=True)
class Channel:
    """A channel of data in blocks of `size`: a block and the position in it; or a channel as it is."""

    outer: te.Expr
    inner: te.Expr | None = None
    size: int = 1

    @property
    def whole(self) -> te.Expr:
        """The number of the channel."""
        return self.outer if self.inner is None else self.outer * self.size + self.inner

    def parts(self, size: int | None) -> tuple[te.Expr, ...]:
        """The block of `size` and the position in it; without a size, the channel."""
        if size is None:
            return (self.whole,)
        if self.inner is not None and size == self.size:
            return self.outer, self.inner
        return self.whole // size, self.whole % size


class Laid:
    """A tensor whose dimensions are called by letters."""

    def __init__(self, tensor: te.Tensor, layout: Layout):
        self.tensor = tensor
        self.layout = layout

    def extents(self, letters: str) -> tuple[Dim, ...]:
        """The dimensions that capitals stand for; of what is cut into blocks, that of all blocks together."""
        shape, layout = self.tensor.shape, self.layout
        return tuple(shape[layout.index(letter)] * layout.blocks.get(letter, 1) for letter in letters)

    def at(self, letters: str, index: Sequence[te.Expr | Channel]) -> te.Expr:
        """The element whose index is given in the order of `letters`, the positions in blocks included.

        A `Channel` stands for both parts of a dimension that is cut into blocks.
        """
        found: dict[str, te.Expr] = {}
        for letter, each in zip(letters, index, strict=True):
            parts = each.parts(self.layout.blocks.get(letter)) if isinstance(each, Channel) else (each,)
            found |= zip(self.layout.parts(letter), parts, strict=False)
        return self.tensor[tuple(found[letter] for letter in self.layout.letters)]


def taken_apart(index: Sequence[te.Expr], layout: Layout) -> tuple[te.Expr, Channel, Sequence[te.Expr]]:
    """Batch, channel and spatial positions of an index in the order N, C, the position in a block of C if there
    is one.
    """
    block = layout.blocks.get("C")
    if block is None:
        return index[0], Channel(index[1]), index[2:]
    return index[0], Channel(index[1], index[2], block), index[3:]


def laid_out(
    shape: Sequence[Dim], layout: Layout, letters: str, element: Callable[[tuple[te.Expr, ...]], te.Expr], name: str
) -> te.Tensor:
    """The tensor of a shape in a layout whose elements are given for indices in the order of `letters`."""
    positions = [layout.index(letter) for letter in letters]
    return te.compute(shape, lambda *i: element(tuple(i[index] for index in positions)), name=name)


def within(positions: Sequence[te.Expr], lengths: Sequence[Dim]) -> te.Expr:
    """Whether spatial positions are within the data."""
    pairs = zip(positions, lengths, strict=True)
    return te.logical_and(*(te.logical_and(position >= 0, position < length) for position, length in pairs))
