"""The micro-kernel of products in blocks: sums of some pixels and blocks of channels, in registers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from xdsl.ir import SSAValue

from lowering.schedule.cpu.blocked_sums import Blocks, load_of
from lowering.schedule.cpu.code import Code
from lowering.schedule.cpu.product import Product
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size

LINE_BYTES = 64


@dataclass(frozen=True)
class Access:
    """A buffer of one dimension, and its steps along the axes of the product."""

    memory: SSAValue
    strides: tuple[Dim, ...]
    base: Dim


@dataclass(frozen=True)
class Ahead:
    """Weights that the second-level cache should have soon, some lines in each turn of the innermost loop."""

    start: SSAValue
    number: SSAValue
    """Of the turn."""
    lines: int

    def turn(self, code: Code, r: SSAValue, extent: Dim) -> Ahead:
        """The same, inside of one more loop."""
        return replace(self, number=code.add(code.mul(self.number, code.dim(extent)), r))


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

    @cached_property
    def turns(self) -> Dim:
        """How often the innermost loop of a tile runs."""
        extents = self.product.what.stage.extents
        return product_of(extents[axis] for axes in self.blocks.reduced[:-1] for axis in axes)

    def emit(self, height: int, data: SSAValue, weights: SSAValue, tile: SSAValue, ahead: Ahead | None = None) -> None:
        """Sums into the buffer `tile`; `data` and `weights` are where those of the first pixel and block begin.

        They are made in a buffer that LLVM keeps in registers: every access to it has constant indices. One step of the
        sums keeps the multipliers busy for longer than its loop takes, so that nothing is written out more than once.
        """
        code, dtype = self.code, self.product.what.element
        sums = code.alloc([height, self.width * self.lanes], dtype, "sums", scope="local")
        zeros = code.zeros(dtype, self.lanes)
        places = [[[code.index(p), code.index(v * self.lanes)] for v in range(self.width)] for p in range(height)]
        for place in chain(*places):
            code.store(zeros, sums, place)
        with ExitStack() as loops:
            for number, axes in enumerate(self.blocks.reduced):
                if ahead is not None and number == len(self.blocks.reduced) - 1:
                    self._ask(ahead)
                extent = product_of(self.product.what.stage.extents[axis] for axis in axes)
                r = loops.enter_context(code.loop(code.dim(extent), "r", vectorize=False))
                data = code.add(data, code.mul(r, code.dim(self.data.strides[axes[-1]])))
                ahead = None if ahead is None else ahead.turn(code, r, extent)
                weights = code.add(weights, code.mul(r, code.dim(self.weights.strides[axes[-1]])))
            self._step(sums, places, data, weights)
        for place in chain(*places):
            code.store(code.load(sums, place, self.lanes), tile, place)

    def _ask(self, ahead: Ahead) -> None:
        """Asks for the next lines of what is needed later."""
        code, line = self.code, LINE_BYTES // byte_size(self.product.what.element)
        place = code.mul(ahead.number, ahead.lines * line)
        for number in range(ahead.lines):
            code.prefetch(self.weights.memory, [code.add(ahead.start, code.add(place, number * line))], 2)

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
