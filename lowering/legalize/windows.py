"""What convolutions and pooling share: data with named dimensions, and results in a layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relax_dialect.ops.windows import Layout
from tir_dialect import te
from tir_dialect.dims import Dim


class Laid:
    """A tensor whose dimensions are called by letters."""

    def __init__(self, tensor: te.Tensor, layout: Layout):
        self.tensor = tensor
        self.layout = layout

    def extents(self, letters: str) -> tuple[Dim, ...]:
        """The dimensions that letters stand for."""
        return tuple(self.tensor.shape[self.layout.place(letter)] for letter in letters)

    def at(self, letters: str, index: Sequence[te.Expr]) -> te.Expr:
        """The element whose index is given in the order of `letters`."""
        return self.tensor[tuple(index[letters.index(letter)] for letter in self.layout.letters)]


def laid_out(
    shape: Sequence[Dim], layout: Layout, letters: str, element: Callable[[tuple[te.Expr, ...]], te.Expr], name: str
) -> te.Tensor:
    """The tensor of a shape in a layout whose elements are given for indices in the order of `letters`."""
    places = [layout.place(letter) for letter in letters]
    return te.compute(shape, lambda *i: element(tuple(i[place] for place in places)), name=name)


def within(places: Sequence[te.Expr], lengths: Sequence[Dim]) -> te.Expr:
    """Whether spatial places are within the data."""
    pairs = zip(places, lengths, strict=True)
    return te.logical_and(*(te.logical_and(place >= 0, place < length) for place, length in pairs))
