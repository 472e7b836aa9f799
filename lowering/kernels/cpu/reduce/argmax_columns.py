"""Argmax and argmin along an axis that is not contiguous: each lane has a result of its own.

Indices in lanes are as wide as the elements. A band of a few rows is read at a time, so that pages are visited in
order; the best elements and their indices are in memory between two bands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.prefetching import BAND, NextBand
from lowering.kernels.cpu.emit.vectorization import AxisGroup, masks_are_cheap, vector_iteration
from lowering.kernels.cpu.reduce.argmax import Order, element_ops
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import constant
from tir_dialect.dtypes import lookup
from tir_dialect.ops.memory import StoreOp
from tir_dialect.types import IteratorKind, LoopKind

VECTORS_AT_ONCE = 4
"""Vectors of each row of a band."""

MAX_ROWS = 1 << 31
"""Rows that are counted in 32 bits."""

Block = Callable[[SSAValue, int, SSAValue | None], None]
"""Handles so many elements from an index on, or the first ones of them."""


class ArgColumns:
    """Generates adjacent results."""

    def __init__(
        self,
        kernel: Kernel,
        stage: Stage,
        reduction: Reduction,
        order: Order,
        lane: AxisGroup,
        ahead: NextBand | None,
    ):
        """`ahead` prefetches the next band where several vectors of a row are read."""
        self.kernel, self.code, self.stage, self.reduction = kernel, kernel.code, stage, reduction
        self.order, self.lane, self.lanes = order, lane, kernel.target.lanes(order.bits)
        (self.axis,) = stage.of_kind(IteratorKind.REDUCE)
        self.rows = stage.axes[self.axis].extent
        self.ops, self.ahead = element_ops(stage, reduction), ahead

    @property
    def can_count(self) -> bool | SSAValue:
        """Whether indices are wide enough: known now, or at run time."""
        known = self.rows.constant_value
        if self.order.bits > 32 or (known is not None and known < MAX_ROWS):
            return True
        return known is None and self.code.compare("slt", self.code.dim(self.rows), MAX_ROWS)

    def prepare(self) -> None:
        """Allocates memory for all results, in whole vectors, before the loops."""
        size = self.lane.extent + constant(self.lanes)
        self.best = self.code.alloc([size], self.order.dtype, "best")
        self.indices = self.code.alloc([size], self.order.index_type, "indices")

    def emit(
        self,
        at: Mapping[int, SSAValue],
        low: SSAValue | None,
        length: SSAValue,
        rows: tuple[SSAValue, SSAValue] | None = None,
    ) -> None:
        """The results from `low` on, for given values of the other kept axes, of all rows or a range."""
        code = self.code
        low = code.index(0) if low is None else low
        begin, end_row = rows or (code.index(0), code.dim(self.rows))
        self._blocks(length, True, partial(self._start, at))
        with code.loop(code.divide(code.add(code.sub(end_row, begin), BAND - 1), BAND), "band") as band:
            first = code.add(begin, code.mul(band, BAND))
            end = code.minimum(code.add(first, BAND), end_row)
            self._blocks(length, False, partial(self._update, at, low, (first, end)))
        self._blocks(length, False, partial(self._write, at, low))

    def _blocks(self, length: SSAValue, is_own: bool, block: Block) -> None:
        """Several vectors at a time, then single ones. The remainder is masked, or done one by one where masks
        are expensive. Memory that `is_own` has room for a whole vector.
        """
        code, lanes = self.code, self.lanes
        done: SSAValue = code.index(0)
        for step in (VECTORS_AT_ONCE * lanes, lanes):
            with code.loop(code.divide(length, step), "block", lower=code.divide(done, step)) as number:
                block(code.mul(number, step), step, None)
            done = code.mul(code.divide(length, step), step)
        left = code.sub(length, done)
        if is_own or masks_are_cheap(self.kernel, [self.stage]):
            with code.when(code.compare("sgt", left, 0)):
                block(done, lanes, None if is_own else left)
            return
        with code.loop(length, "e", lower=done, vectorize=False) as element:
            block(element, 1, None)

    def _start(self, at: Mapping[int, SSAValue], start: SSAValue, count: int, left: SSAValue | None) -> None:
        """Initialises the best elements."""
        code, body = self.code, Body(self.kernel, self.stage, at)
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        worst = self.order.widened(code, body.value(self.reduction.first[0]))
        first = code.value(arith.ConstantOp(IntegerAttr(0, self.order.index_type)))
        with code.loop(code.index(count), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(worst, self.best, [code.add(start, lane)])
            code.store(first, self.indices, [code.add(start, lane)])

    def _update(
        self,
        at: Mapping[int, SSAValue],
        low: SSAValue,
        rows: tuple[SSAValue, SSAValue],
        start: SSAValue,
        count: int,
        left: SSAValue | None,
    ) -> None:
        """Updates the best elements by the rows of a band."""
        code, memory = self.code, (self.best, self.indices)
        chunks = [code.alloc([count], dtype, "part", "local") for dtype in (self.order.dtype, self.order.index_type)]
        self._copied(memory, start, chunks, code.index(0), count)
        with code.loop(rows[1], "row", lower=rows[0]) as row:
            if self.ahead is not None and count > self.lanes:
                self.ahead.prefetch({**at, self.axis: row}, code.add(low, start), count)
            body = Body(self.kernel, self.stage, {**at, self.axis: row}, self.lane.last)
            body.hoist(self.ops, frozenset(store.buffer for store in self.stage.stores))
            number = code.value(arith.IndexCastOp(row, self.order.index_type))

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                here = body.at_index(code.add(low, index))
                here.run(self.ops)
                new = self.order.widened(code, here.value(self.reduction.sources[0]))
                comes_before = self.order.comes_before(code, new, old[0])
                return [code.select(comes_before, *pair) for pair in zip((new, number), old, strict=True)]

            vector_iteration(self.kernel, start, count, left, chunks, step)
        self._copied(chunks, code.index(0), memory, start, count)

    def _copied(
        self, sources: Sequence[SSAValue], first: SSAValue, targets: Sequence[SSAValue], start: SSAValue, count: int
    ) -> None:
        code = self.code
        with code.loop(code.index(count), "lane", kind=LoopKind.VECTORIZED) as lane:
            for source, target in zip(sources, targets, strict=True):
                code.store(code.load(source, [code.add(first, lane)]), target, [code.add(start, lane)])

    def _write(
        self, at: Mapping[int, SSAValue], low: SSAValue, start: SSAValue, count: int, left: SSAValue | None
    ) -> None:
        """Writes the results; without rows the initial values."""
        code, reduction = self.code, self.reduction
        body = Body(self.kernel, self.stage, at)
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        none, has_rows = body.value(reduction.first[1]), code.compare("sgt", code.dim(self.rows), 0)

        def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            here = Body(self.kernel, self.stage, {**at, self.lane.last: code.add(low, index)}, self.lane.last)
            best, number = (code.load(memory, [index]) for memory in (self.best, self.indices))
            number = code.select(has_rows, self._as_result(number), none)
            results = self.order.narrowed(code, best), number
            here.values |= {store.value: value for store, value in zip(reduction.stores, results, strict=True)}
            here.run(reduction.stores)
            return []

        vector_iteration(self.kernel, start, count, left, [], step)

    def _as_result(self, number: SSAValue) -> SSAValue:
        """A row index in the type of the results."""
        kind = lookup(self.reduction.sources[1].type).type
        assert isinstance(kind, IntegerType)  # `order_of` accepts only integers
        if kind == self.order.index_type:
            return number
        is_wider = kind.width.data > self.order.bits
        return self.code.value(arith.ExtUIOp(number, kind) if is_wider else arith.TruncIOp(number, kind))
