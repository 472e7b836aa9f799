"""The micro-kernel of products in blocks: sums of some pixels and blocks of channels, in registers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from xdsl.ir import SSAValue

from lowering.schedule.cpu.blocked_sums import Blocks, load_of
from lowering.schedule.cpu.product import Product
from tir_dialect.dims import Dim, constant

MOST_UNROLLED = 8
"""So many steps of the innermost sum are written out."""
FEW_UNROLLED = 4


@dataclass(frozen=True)
class Access:
    """A buffer of one dimension, and its steps along the axes of the product."""

    memory: SSAValue
    strides: tuple[Dim, ...]
    base: Dim


class Tile:
    """Emits the sums of a tile: `height` pixels of `blocks` blocks."""

    def __init__(self, product: Product, blocks: Blocks, count: int):
        self.product, self.blocks = product, blocks
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.count = count
        self.data, self.weights = (
            Access(product.kernel.flat[buffer], place.strides, place.base)
            for buffer, place in map(load_of, (product.what.rows, product.what.columns))
        )

    @property
    def width(self) -> int:
        """The vectors of a row."""
        return self.count * self.blocks.vectors

    def emit(self, height: int, data: SSAValue, weights: SSAValue, tile: SSAValue) -> None:
        """Sums into the buffer `tile`; `data` and `weights` are where those of the first pixel and block begin.

        They are made in a buffer that LLVM keeps in registers: every access to it has constant indices.
        """
        code, dtype = self.code, self.product.what.element
        sums = code.alloc([height, self.width * self.lanes], dtype, "sums", scope="local")
        zeros = code.zeros(dtype, self.lanes)
        places = [[[code.index(p), code.index(v * self.lanes)] for v in range(self.width)] for p in range(height)]
        for place in chain(*places):
            code.store(zeros, sums, place)
        with ExitStack() as loops:
            *outer, inner = self.blocks.reduced or (None,)
            for axis in outer:
                assert axis is not None  # only the last one may be missing
                data, weights = self._loop(loops, axis, 1, data, weights)
            steps, further = self._innermost(inner)
            if inner is not None and further:
                data, weights = self._loop(loops, inner, steps, data, weights)
            for step in range(steps):
                self._step(sums, places, *self._at(inner, step, data, weights))
        for place in chain(*places):
            code.store(code.load(sums, place, self.lanes), tile, place)

    def _innermost(self, axis: int | None) -> tuple[int, bool]:
        """How many steps along the innermost axis are written out, and whether there are more."""
        extent = 1 if axis is None else self.product.what.stage.extents[axis].constant_value
        if extent is None:
            return 1, True
        if extent <= MOST_UNROLLED:
            return max(extent, 1), extent == 0
        return max(size for size in range(1, FEW_UNROLLED + 1) if extent % size == 0), True

    def _loop(
        self, loops: ExitStack, axis: int, steps: int, data: SSAValue, weights: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """A loop along an axis, some steps at a time; gives where its turn begins."""
        code, extent = self.code, self.product.what.stage.extents[axis]
        count = extent if steps == 1 else constant((extent.constant_value or 0) // steps)
        r = loops.enter_context(code.loop(code.dim(count), "r", vectorize=False))
        return (
            code.add(data, code.mul(r, code.dim(self.data.strides[axis] * steps))),
            code.add(weights, code.mul(r, code.dim(self.weights.strides[axis] * steps))),
        )

    def _at(self, axis: int | None, step: int, data: SSAValue, weights: SSAValue) -> tuple[SSAValue, SSAValue]:
        if axis is None or step == 0:
            return data, weights
        code = self.code
        return (
            code.add(data, code.dim(self.data.strides[axis] * step)),
            code.add(weights, code.dim(self.weights.strides[axis] * step)),
        )

    def _step(
        self, sums: SSAValue, places: Sequence[Sequence[Sequence[SSAValue]]], data: SSAValue, weights: SSAValue
    ) -> None:
        """One product for each sum."""
        code, blocks, what = self.code, self.blocks, self.product.what
        (outer,) = what.outer or (None,)
        jump = constant(0) if outer is None else self.weights.strides[outer]
        columns = [
            code.load(self.weights.memory, [code.add(weights, code.dim(jump * q + v * self.lanes))], self.lanes)
            for q in range(self.count)
            for v in range(blocks.vectors)
        ]
        along = self.data.strides[blocks.pixels[-1]]
        for p, line in enumerate(places):
            element = code.load(self.data.memory, [code.add(data, code.dim(along * p))])
            factor = code.splat(element, self.lanes)
            for place, column in zip(line, columns, strict=True):
                code.store(code.fma(factor, column, code.load(sums, place, self.lanes)), sums, place)
