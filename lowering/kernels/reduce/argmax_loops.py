"""Argmax and argmin: of a row, the first index of the best element; along an axis that is not contiguous, each lane has
a result of its own.

Each lane keeps its best element and the iteration that had it; an iteration has several vectors. Of the lanes with the
best element of all, the earliest iteration is searched once more for its index. A lane starts with the worst value at
iteration 0. The last iteration overlaps the one before, which then counts. Comparisons ignore NaN, which is detected
for pairs of elements; a row with NaN is scanned again for the first one.

Indices in lanes are as wide as the elements. A band of a few rows is read at a time, so that pages are visited in
order; the best elements and their indices are in memory between two bands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial, reduce
from math import nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, i64
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import BAND_ROWS, REDUCE_VECTORS
from lowering.kernels.emit.accumulators import Accumulators, folded
from lowering.kernels.emit.body import Body, number_like
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.prefetching import NextBand
from lowering.kernels.emit.vectorization import AxisGroup, masks_are_cheap, masks_are_registers, vector_iteration
from lowering.kernels.reduce.argmax import Order, element_ops
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import Stage
from tir_dialect.dims import constant, product
from tir_dialect.dtypes import lookup
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.ops.vectors import CompareOp, FirstLaneOp
from tir_dialect.types import IteratorKind, LoopKind


class ArgReduction:
    """Generates one row, or all elements as one row."""

    def __init__(self, kernel: Kernel, stage: Stage, reduction: Reduction, order: Order):
        self.kernel, self.code, self.stage, self.reduction, self.order = kernel, kernel.code, stage, reduction, order
        *self.outer, self.axis = stage.of_kind(IteratorKind.REDUCE)
        self.lanes = kernel.target.lanes(order.bits)
        self.width = self.lanes * REDUCE_VECTORS
        self.ops = element_ops(stage, reduction)

    def emit(self, at: Mapping[int, SSAValue], short: Callable[[], None] | None) -> None:
        """Writes the value and its index; `short` emits rows shorter than an iteration, if loads are not to be
        masked.
        """
        code = self.code
        with code.when(self.is_long) as is_long:
            body = self._body(at)
            _LongRow(self, body, self.length, self._worst(at)).emit()
        with code.otherwise(is_long):
            self.emit_short(at, short)

    @property
    def length(self) -> SSAValue:
        """The number of elements."""
        return self.code.dim(product(self.stage.extents[axis] for axis in (*self.outer, self.axis)))

    @property
    def is_long(self) -> SSAValue:
        """Whether there is a full iteration."""
        return self.code.compare("sge", self.length, self.width)

    def emit_short(self, at: Mapping[int, SSAValue], short: Callable[[], None] | None) -> None:
        """The same for fewer elements than an iteration has."""
        if short is None:
            # Less than an iteration, masked: a vector, or several; an empty row has the initial values.
            body = self._body(at)
            length = self.length
            worst = self._worst(at)
            first = self._first(at)
            code = self.code
            with code.when(code.compare("sgt", length, self.lanes)) as has_several:
                self._vectors(body, length, worst, self.width)
            with code.otherwise(has_several), code.when(code.compare("sgt", length, 0)) as is_short:
                self._vectors(body, length, worst, self.lanes)
            with code.otherwise(has_several), code.otherwise(is_short):
                self._write(body.at, first)
        else:
            short()

    def _worst(self, at: Mapping[int, SSAValue]) -> SSAValue:
        return self.order.widened(self.code, self._first(at)[0])

    def part(self, at: Mapping[int, SSAValue], low: SSAValue, length: SSAValue) -> list[SSAValue]:
        """The value and its index among at least one iteration of elements, from `low` on."""
        return _LongRow(self, self._body(at), length, self._worst(at), low).found()

    def _body(self, at: Mapping[int, SSAValue]) -> Body:
        """The code of an element; the innermost axis counts on through the outer ones."""
        body = Body(self.kernel, self.stage, {**dict.fromkeys(self.outer, self.code.index(0)), **at}, self.axis)
        body.hoist(self.ops, frozenset(store.buffer for store in self.stage.stores))
        return body

    def _first(self, at: Mapping[int, SSAValue]) -> list[SSAValue]:
        body = Body(self.kernel, self.stage, at)
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        return [body.value(first) for first in self.reduction.first]

    def _write(self, at: Mapping[int, SSAValue], results: Sequence[SSAValue]) -> None:
        Accumulators(self.kernel, [self.stage], {0: self.reduction}, 1, at).write({0: results})

    def write_at(self, body: Body, index: SSAValue) -> None:
        """Writes an index and the element there."""
        self._write(body.at, self.results_at(body, index))

    def results_at(self, body: Body, index: SSAValue) -> list[SSAValue]:
        """An index and the element there: zeros that are equal may differ in their signs."""
        here = body.at_index(index)
        here.run(self.ops)
        return [here.value(source) for source in self.reduction.sources]

    def _vectors(self, body: Body, length: SSAValue, worst: SSAValue, count: int) -> None:
        """A row of at most so many elements."""
        code = self.code
        buffer = self.values(body, code.index(0), length, worst, count)
        values = code.load(buffer, [code.index(0)], count)
        best = code.splat(folded(self.kernel, buffer, self.better_one), count)
        number = self.first_lane(CompareOp(self.order.equal, values, best))
        if self.order.is_float:
            fault = self.first_lane(CompareOp("uno", values, values))
            number = code.select(code.compare("slt", fault, count), fault, number)
        self.write_at(body, number)

    # Helpers

    def value_at(self, body: Body, index: SSAValue, is_there: SSAValue | None, worst: SSAValue) -> SSAValue:
        """An element, or the worst value if it is missing."""
        branch = None if is_there is None else IfOp(is_there, result_types=[self.order.dtype])
        if branch is None:
            return self._element(body, index)
        self.code.emit(branch)
        with self.code.inside(branch.then_body.block):
            self.code.emit(YieldOp(self._element(body, index)))
        with self.code.inside(branch.else_body.block):
            self.code.emit(YieldOp(worst))
        return branch.outputs[0]

    def _element(self, body: Body, index: SSAValue) -> SSAValue:
        here = body.at_index(index)
        here.run(self.ops)
        return self.order.widened(self.code, here.value(self.reduction.sources[0]))

    def values(self, body: Body, start: SSAValue, left: SSAValue, worst: SSAValue, count: int) -> SSAValue:
        """A buffer of `count` elements, of which `left` exist."""
        code = self.code
        buffer = self.memory(count, self.order.dtype, "values")
        with code.loop(code.index(count), "lane", kind=LoopKind.VECTORIZED) as lane:
            is_there = code.compare("slt", lane, left)
            code.store(self.value_at(body, code.add(start, lane), is_there, worst), buffer, [lane])
        return buffer

    def memory(self, count: int, dtype: AnyFloat | IntegerType, name: str) -> SSAValue:
        """A buffer that LLVM keeps in registers."""
        return self.code.alloc([count], dtype, name, scope="local")

    def better_one(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The better of two elements."""
        return self.code.select(self.order.is_better(self.code, left, right), left, right)

    def first_lane(self, test: CompareOp) -> SSAValue:
        """The first lane for which a comparison holds."""
        return self.first_of(self.code.value(test))

    def first_of(self, mask: SSAValue) -> SSAValue:
        """The first lane that is set; the number of lanes if none is."""
        return self.code.value(FirstLaneOp(mask))


class _LongRow:
    """Generates a row of at least one full iteration."""

    def __init__(
        self, reduction: ArgReduction, body: Body, length: SSAValue, worst: SSAValue, low: SSAValue | None = None
    ):
        self.low = reduction.code.index(0) if low is None else low
        self.parts, self.code, self.body, self.length, self.worst = reduction, reduction.code, body, length, worst
        self.order, self.lanes, self.width = reduction.order, reduction.lanes, reduction.width
        self.best = reduction.memory(self.lanes, self.order.dtype, "best")
        self.iterations, self.faults = (
            reduction.memory(self.lanes, self.order.index_type, name) for name in ("iterations", "faults")
        )
        self.peak = reduction.memory(1, self.order.dtype, "peak")
        self.none, self.zero = self._integer(-1), self._integer(0)

    def _integer(self, value: int) -> SSAValue:
        return self.code.value(arith.ConstantOp(IntegerAttr(value, self.order.index_type)))

    def emit(self) -> None:
        """Writes the index and its element."""
        self.parts.write_at(self.body, self._find_index())

    def found(self) -> list[SSAValue]:
        """The element and its index as values."""
        return self.parts.results_at(self.body, self._find_index())

    def _find_index(self) -> SSAValue:
        """Finds the iteration, then the element."""
        code, chunks, zero = self.code, self.parts, self.code.index(0)
        with self._each_lane() as lane:
            code.store(self.worst, self.best, [lane])
            code.store(self.zero, self.iterations, [lane])
            code.store(self.zero, self.faults, [lane])
        self._all_iterations(self._update)
        code.store(folded(chunks.kernel, self.best, chunks.better_one), self.peak, [zero])
        peak = code.load(self.peak, [zero])
        with self._each_lane() as lane:
            is_best = self.order.is_same(code, code.load(self.best, [lane]), peak)
            code.store(code.select(is_best, code.load(self.iterations, [lane]), self.none), self.iterations, [lane])
        if self.order.is_float:
            faults = CompareOp("ne", code.load(self.faults, [zero], self.lanes), code.splat(self.zero, self.lanes))
            with code.when(code.compare("slt", chunks.first_lane(faults), self.lanes)):
                self._find_nan()
        first = folded(chunks.kernel, self.iterations, lambda left, right: code.value(arith.MinUIOp(left, right)))
        first = first if self.order.index_type == i64 else code.value(arith.ExtUIOp(first, i64))
        start = self._start(code.value(arith.IndexCastOp(first, IndexType())))
        return code.add(start, self._lane_of(start))

    def _each_lane(self) -> AbstractContextManager[SSAValue]:
        return self.code.loop(self.code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED)

    def _all_iterations(self, update: Callable[[SSAValue, SSAValue], None]) -> None:
        code = self.code
        iterations = code.divide(code.add(self.length, self.width - 1), self.width)
        with code.loop(iterations, "v") as iteration:
            update(iteration, self._start(iteration))

    def _start(self, iteration: SSAValue) -> SSAValue:
        """Where an iteration begins."""
        code = self.code
        return code.add(self.low, code.minimum(code.mul(iteration, self.width), code.sub(self.length, self.width)))

    def _number(self, iteration: SSAValue) -> SSAValue:
        return self.code.value(arith.IndexCastOp(iteration, self.order.index_type))

    def _elements(self, start: SSAValue, lane: SSAValue) -> list[SSAValue]:
        """A lane's elements of an iteration."""
        code = self.code
        offsets = [code.add(lane, number * self.lanes) for number in range(REDUCE_VECTORS)]
        return [self.parts.value_at(self.body, code.add(start, offset), None, self.worst) for offset in offsets]

    def _update(self, iteration: SSAValue, start: SSAValue) -> None:
        """Updates the best elements by those of an iteration."""
        code, number = self.code, self._number(iteration)
        with self._each_lane() as lane:
            elements = self._elements(start, lane)
            new, old = reduce(self.parts.better_one, elements), code.load(self.best, [lane])
            is_better = self.order.is_better(code, new, old)
            code.store(code.select(is_better, new, old), self.best, [lane])
            code.store(code.select(is_better, number, code.load(self.iterations, [lane])), self.iterations, [lane])
            if self.order.is_float:
                faults = code.load(self.faults, [lane])
                for pair in zip(elements[::2], elements[1::2], strict=True):
                    faults = code.select(code.value(arith.CmpfOp(*pair, "uno")), self.none, faults)
                code.store(faults, self.faults, [lane])

    def _have_nan(self, elements: Sequence[SSAValue]) -> SSAValue:
        code = self.code
        pairs = zip(elements[::2], elements[1::2], strict=True)
        return reduce(code.either, [code.value(arith.CmpfOp(*pair, "uno")) for pair in pairs])

    def _find_nan(self) -> None:
        """Finds the first iteration of each lane that has a NaN."""
        code = self.code
        code.store(code.value(arith.ConstantOp(number_like(nan, self.worst))), self.peak, [code.index(0)])
        with self._each_lane() as lane:
            code.store(self.none, self.iterations, [lane])

        def search(iteration: SSAValue, start: SSAValue) -> None:
            number = self._number(iteration)
            with self._each_lane() as lane:
                have_nan = self._have_nan(self._elements(start, lane))
                iterations = code.load(self.iterations, [lane])
                earlier = code.value(arith.MinUIOp(iterations, number))
                code.store(code.select(have_nan, earlier, iterations), self.iterations, [lane])

        self._all_iterations(search)

    def _lane_of(self, start: SSAValue) -> SSAValue:
        """The first of an iteration's elements that is the best, or NaN.

        Where masks are vectors, each register is tested by itself: packing the masks of several takes long, and the
        next row waits for it.
        """
        code, width = self.code, self.width if masks_are_registers(self.parts.kernel) else self.lanes
        found: SSAValue | None = None
        for first in reversed(range(0, self.width, width)):
            lane = self.parts.first_of(self._is_wanted(code.add(start, first), width))
            here = code.add(lane, first)
            found = here if found is None else code.select(code.compare("slt", lane, width), here, found)
        assert found is not None  # an iteration has a vector
        return found

    def _is_wanted(self, start: SSAValue, count: int) -> SSAValue:
        """Which of `count` elements are the best, or NaN."""
        code, zero = self.code, self.code.index(0)
        buffer = self.parts.memory(count, self.order.dtype, "values")
        with code.loop(code.index(count), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(self.parts.value_at(self.body, code.add(start, lane), None, self.worst), buffer, [lane])
        values = code.load(buffer, [zero], count)
        peak = code.splat(code.load(self.peak, [zero]), count)
        is_best = code.value(CompareOp(self.order.equal, values, peak))
        return code.either(is_best, code.value(CompareOp("uno", values, values))) if self.order.is_float else is_best


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
        with code.loop(code.divide(code.add(code.sub(end_row, begin), BAND_ROWS - 1), BAND_ROWS), "band") as band:
            first = code.add(begin, code.mul(band, BAND_ROWS))
            end = code.minimum(code.add(first, BAND_ROWS), end_row)
            self._blocks(length, False, partial(self._update, at, low, (first, end)))
        self._blocks(length, False, partial(self._write, at, low))

    def _blocks(self, length: SSAValue, is_own: bool, block: Block) -> None:
        """Several vectors at a time, then single ones. The remainder is masked, or done one by one where masks
        are expensive. Memory that `is_own` has room for a whole vector.
        """
        code, lanes = self.code, self.lanes
        done: SSAValue = code.index(0)
        for step in (REDUCE_VECTORS * lanes, lanes):
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
