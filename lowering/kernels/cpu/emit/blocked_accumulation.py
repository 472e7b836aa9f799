"""Blocked accumulation of long sums: no accumulator takes more than some elements one after the other.

The rounding error of sequential summation grows with the number of elements n: it is up to n / 2 ulp. So an accumulator
that has taken `MOST` elements is added to a total, and begins anew. The error is then that of `MOST` elements, and of
one for each block. Sums of a single block have no total, and take no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import buffer_type
from tir_dialect.dims import Dim, constant, floordiv, maximum, minimum, product

MOST = 256
"""Elements of a block: long enough that the end of a block does not count."""


class Totals(Protocol):
    """Where accumulators are added up after each block."""

    def put_away(self, is_first: SSAValue) -> None:
        """Adds the accumulators to the totals, which do not exist yet if `is_first`, and clears them."""
        ...

    def take_back(self) -> None:
        """Adds the totals to the accumulators."""
        ...


def iterations_of_block(inner: Iterable[Dim]) -> Dim:
    """How many iterations of a loop make a block, if the loops inside have these extents."""
    return maximum(floordiv(constant(MOST), maximum(product(inner), constant(1))), constant(1))


def in_blocks(
    code: Code,
    bounds: tuple[SSAValue | None, SSAValue],
    body: Callable[[SSAValue | None, SSAValue], None],
    totals: Callable[[], Totals],
    most: Dim,
) -> None:
    """A loop over the range `bounds` that accumulates in its `body`, in blocks of `most` iterations."""
    lower, upper = bounds
    length, known = upper if lower is None else code.sub(upper, lower), most.constant_value
    count = code.known(length)
    if known is not None and count is not None and count <= known:
        body(lower, upper)
        return
    kept, size = totals(), code.dim(most)
    blocks = code.divide(code.add(length, code.sub(size, 1)), size)
    with code.loop(blocks, "chunk", vectorize=False) as block:
        first = code.mul(block, size)
        first = first if lower is None else code.add(lower, first)
        end = code.minimum(code.add(first, size), upper)
        body(first, end)
        with code.when(code.compare("slt", end, upper)):
            kept.put_away(code.compare("eq", block, 0))
    with code.when(code.compare("sgt", blocks, 1)):
        kept.take_back()


def with_and_without_blocks(code: Code, spare: Iterable[Dim], emit: Callable[[bool], None]) -> None:
    """Two versions of a loop nest, with and without blocks in the inner loops; none are needed if `spare` is
    not negative.
    """
    open_, all_known = list[Dim](), True
    for each in spare:
        if each.constant_value is None:
            open_.append(each)
        else:
            all_known = all_known and each.constant_value >= 0
    if not all_known or not open_:
        emit(not all_known)
        return
    with code.when(code.compare("sge", code.dim(minimum(*open_)), 0)) as branch:
        emit(False)
    with code.otherwise(branch):
        emit(True)


@dataclass
class VectorTotals:
    """The totals of vectors at constant indices of a buffer that LLVM keeps in registers."""

    code: Code
    dtype: AnyFloat
    buffer: SSAValue
    indices: Sequence[Sequence[SSAValue]]
    lanes: int

    def __post_init__(self) -> None:
        self._totals = self.code.alloc(buffer_type(self.buffer).shape, self.dtype, "totals", scope="local")

    def put_away(self, is_first: SSAValue) -> None:
        """As in `Totals`."""
        code = self.code
        with code.when(is_first) as branch:
            for index in self.indices:
                code.store(code.load(self.buffer, index, self.lanes), self._totals, index)
        with code.otherwise(branch):
            for index in self.indices:
                code.store(self._added(index), self._totals, index)
        zeros = code.zeros(self.dtype, self.lanes)
        for index in self.indices:
            code.store(zeros, self.buffer, index)

    def take_back(self) -> None:
        """As in `Totals`."""
        for index in self.indices:
            self.code.store(self._added(index), self.buffer, index)

    def _added(self, index: Sequence[SSAValue]) -> SSAValue:
        values = (self.code.load(memory, index, self.lanes) for memory in (self._totals, self.buffer))
        return self.code.add_floats(*values)
