"""Vector accumulators in registers, for reductions along the contiguous axis of their operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST, VectorTotals, in_blocks
from lowering.kernels.cpu.gemm.operands import Computed
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.structure.contraction import Factor
from tir_dialect.dims import constant
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES

Line = Callable[[SSAValue, SSAValue | None], SSAValue]
"""A vector of a line at a step of the reduction; all its lanes, or so many or more."""
Ask = Callable[[SSAValue, SSAValue], None]
"""Asks for what a line that is far, by its number, has at a step of the reduction."""
L3_PART = 2
"""Lines that take more than such a part of the last-level cache come from memory."""
STREAMS = 4
"""Lines that are read side by side: a set of the first-level cache has room for them, and all may fall into one."""


def line_sums(
    product: Product,
    near: Sequence[Line],
    far: Callable[[SSAValue], Line],
    memory: SSAValue,
    count: int,
    ask: Ask | None = None,
    head: SSAValue | None = None,
) -> None:
    """Fills memory with vectors of partial sums, those of the first of the `near` lines with each `far` one, and so on.

    Of the lines that are far, which are numbered up to `count`, a power of two, some are taken at a time, while the
    next ones may be asked for. All vectors are whole but the last one, and the first one if there is a `head`: so many
    elements are before the others, fewer than a vector has lanes.
    """
    code, group = product.code, min(count, STREAMS)
    with code.loop(code.index(count // group), "part") as part:
        first = code.mul(part, group)
        numbers = [code.add(first, j) for j in range(group)]
        soon = [] if ask is None else [partial(ask, code.add(number, group)) for number in numbers]
        found = _streams(product, near, [far(number) for number in numbers], soon, head)
        for i, line in enumerate(found):
            for number, sums in zip(numbers, line, strict=True):
                code.store(sums, memory, [code.add(number, i * count), code.index(0)])


def _streams(
    product: Product,
    near: Sequence[Line],
    far: Sequence[Line],
    soon: Sequence[Callable[[SSAValue], None]],
    head: SSAValue | None,
) -> list[list[SSAValue]]:
    """For each of the `near` lines the partial sums with all `far` ones."""
    code, lanes = product.code, product.tiles.lanes
    k, sums = code.dim(product.k, "k"), _Accumulators(product, len(near), len(far))
    first = code.index(0)
    if head is not None:
        first = code.minimum(head, k)
        with code.when(code.compare("sgt", first, 0)):
            sums.add(near, far, code.index(0), first)
    whole = code.divide(code.sub(k, first), lanes)

    def run(lower: SSAValue | None, upper: SSAValue) -> None:
        with code.loop(upper, "v", lower=lower) as v:
            r = code.add(first, code.mul(v, lanes))
            for each in soon:
                each(r)
            sums.add(near, far, r, None)

    in_blocks(code, (None, whole), run, sums.totals, constant(MOST))
    done = code.add(first, code.mul(whole, lanes))
    with code.when(code.compare("slt", done, k)):
        sums.add(near, far, done, code.sub(k, done))
    return sums.found()


class _Accumulators:
    """Vectors of partial sums in registers, all zero at first: one for each near line with each far one."""

    def __init__(self, product: Product, near: int, far: int):
        self._code, self._lanes, self._dtype = product.code, product.tiles.lanes, product.what.element
        code, dtype = self._code, self._dtype
        self._memory = code.alloc([near * far, self._lanes], dtype, "sums", scope="local")
        self._places = [[[code.index(i * far + j), code.index(0)] for j in range(far)] for i in range(near)]
        for place in (place for line in self._places for place in line):
            code.store(code.zeros(dtype, self._lanes), self._memory, place)

    def add(self, near: Sequence[Line], far: Sequence[Line], r: SSAValue, on: SSAValue | None) -> None:
        """Adds the products of all lines at a step of the reduction: of all lanes, or so many."""
        code, lanes = self._code, self._lanes
        factors = [line(r, on) for line in near]
        for j, line in enumerate(far):
            vector = line(r, on)
            for factor, own in zip(factors, self._places, strict=True):
                sums = code.fma(factor, vector, code.load(self._memory, own[j], lanes))
                code.store(sums, self._memory, own[j])

    def totals(self) -> VectorTotals:
        """Room for what sums are between two blocks."""
        places = [place for line in self._places for place in line]
        return VectorTotals(self._code, self._dtype, self._memory, places, self._lanes)

    def found(self) -> list[list[SSAValue]]:
        """The sums: for each near line, those with all far ones."""
        return [[self._code.load(self._memory, place, self._lanes) for place in line] for line in self._places]


def asking(product: Product, factor: Factor, coords: Coords, along: tuple[int, ...]) -> Ask | None:
    """What asks for the lines of a factor that follow given values of some axes, if they come from memory.

    `None` where a vector is not a whole line of the cache.
    """
    code, size = product.code, byte_size(product.what.element)
    if product.tiles.lanes * size < LINE_BYTES:
        return None
    room = product.kernel.target.l3_bytes // L3_PART // size
    is_far = code.compare("sgt", code.dim(product.size(along) * product.k), room)
    lines = Computed(product, factor, coords, along)

    def ask(number: SSAValue, r: SSAValue) -> None:
        with code.when(is_far):
            lines.prefetch(code, r, 0, number, 2)

    return ask
