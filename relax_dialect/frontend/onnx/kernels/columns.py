"""Images from the columns that their blocks are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv, product


@dataclass(frozen=True)
class Blocks:
    """Blocks of an image: their shape, and how they lie in it."""

    sizes: Sequence[Dim]
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]
    channels: Dim
    """Of the image."""

    def count(self, axis: int, length: Dim) -> Dim:
        """How many blocks there are along an axis."""
        rank = len(self.sizes)
        reach = self.dilations[axis] * (self.sizes[axis] - 1) + 1
        padded = length + self.pads[axis] + self.pads[axis + rank]
        return floordiv(padded - reach, constant(self.strides[axis])) + 1


def columns_to_image(x: te.Tensor, image: Sequence[Dim], blocks: Blocks) -> te.Tensor:
    """Blocks, `[n, channel times place of the block, number of the block]`, added up at their places in an image."""
    counts = [blocks.count(axis, length) for axis, length in enumerate(image)]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        columns, made = ins[0], outs[0]
        with b.block("col2im", ("spatial", x.shape[0], "n"), ("spatial", blocks.channels, "c")) as (n, c):
            with ExitStack() as stack:
                index = [stack.enter_context(b.for_range(0, length, f"i{at}")) for at, length in enumerate(image)]
                b.store(made, (n, c, *index), te.const(0, x.dtype))
            with ExitStack() as stack:
                tap = [stack.enter_context(b.for_range(0, size, f"k{at}")) for at, size in enumerate(blocks.sizes)]
                place = [stack.enter_context(b.for_range(0, count, f"l{at}")) for at, count in enumerate(counts)]
                target = [
                    place[at] * blocks.strides[at] + tap[at] * blocks.dilations[at] - blocks.pads[at]
                    for at in range(len(image))
                ]
                tests = [t for at, length in zip(target, image, strict=True) for t in (at >= 0, at < length)]
                stack.enter_context(b.if_(te.logical_and(*tests)))
                row = c * product(blocks.sizes) + _flat(tap, blocks.sizes)
                old = made[(n, c, *target)]
                b.store(made, (n, c, *target), old + columns[n, row, _flat(place, counts)])

    return te.extern([((x.shape[0], blocks.channels, *image), x.dtype)], [x], body, name="col2im")[0]


def _flat(index: Sequence[te.Expr], shape: Sequence[Dim]) -> te.Expr:
    flat = index[0]
    for each, extent in zip(index[1:], shape[1:], strict=True):
        flat = flat * extent + each
    return flat
