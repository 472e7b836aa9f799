"""Scans along contiguous rows: prefix sums within a vector, to which the carry of all earlier elements is added.

A vector of L lanes takes log2 L steps, each of which combines lanes with those 1, 2, 4, ... before them, so sums are
reassociated. Only the carry from one vector to the next is a dependence chain, which ends with a block of vectors. With
AVX-512 these steps cross vectors: after them each lane has the sum of L elements, and adds the result L elements
earlier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, VectorType
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.explicit import Explicit, Lanes
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.shuffles import shuffle
from lowering.kernels.cpu.emit.vectorization import masks_are_cheap, masks_are_registers
from lowering.kernels.cpu.scan.scan import Scan, neutral
from lowering.kernels.cpu.structure.contraction import access_of
from lowering.kernels.cpu.structure.stages import work_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType

VECTORS_OF_A_BLOCK = 128
"""Longer rows are scanned in blocks, so that their rounding errors do not add up: one more addition for each vector."""


def emit_scan_rows(kernel: Kernel, scan: Scan) -> None:
    """The loops over rows, partitioned among threads, and each row."""
    stage = scan.stage
    rows = range(len(stage.axes) - 1)
    if not rows:
        _Row(kernel, scan, {}).emit()
        return
    with kernel.partition(stage.axes[0].extent, work_of(stage)) as chunk:
        _loops(kernel, scan, list(rows), {}, chunk)


def _loops(
    kernel: Kernel,
    scan: Scan,
    axes: Sequence[int],
    at: Mapping[int, SSAValue],
    chunk: tuple[SSAValue, SSAValue] | None,
) -> None:
    low, high = (None, kernel.code.dim(scan.stage.axes[axes[0]].extent)) if chunk is None else chunk
    with kernel.code.loop(high, "row", lower=low) as index:
        inner = {**at, axes[0]: index}
        if len(axes) == 1:
            _Row(kernel, scan, inner, kernel.code.sub(high, index)).emit()
        else:
            _loops(kernel, scan, axes[1:], inner, None)


class _Row:
    """Generates one row."""

    def __init__(self, kernel: Kernel, scan: Scan, at: Mapping[int, SSAValue], rows: SSAValue | None = None):
        """`rows` is how many rows are left for the loop around, including this one."""
        self.kernel, self.code, self.scan, self.at, self.rows = kernel, kernel.code, scan, at, rows
        self.axis = len(scan.stage.axes) - 1
        kind = scan.combine.results[0].type
        assert isinstance(kind, AnyFloat)  # as `find_scan` has found
        self.dtype, self.lanes = kind, kernel.target.lanes(8 * byte_size(kind))

    @cached_property
    def neutral(self) -> SSAValue:
        """A vector of the neutral element."""
        kind = VectorType(self.dtype, [self.lanes])
        number = neutral(self.scan.combine)
        assert isinstance(number, FloatAttr)  # as `find_scan` has found
        return self.code.value(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [number.value.data])))

    def emit(self) -> None:
        """Whole vectors; the remainder is masked, or done one by one."""
        code, lanes = self.code, self.lanes
        kept = [self._neutral_vector() for _ in range(1 + (len(self._distances) if self.slides else 0))]
        length = code.dim(self.scan.stage.axes[self.axis].extent)
        count = code.divide(length, lanes)
        done = self._blocks(count, kept)
        with code.loop(count, "v", lower=done) as iteration:
            body, element = self._elements(code.mul(iteration, lanes), Lanes(self.axis, lanes))
            self._store(body, self._vector(element, kept))
        self._rest(kept, code.mul(count, lanes), length)

    def _blocks(self, count: SSAValue, kept: Sequence[SSAValue]) -> SSAValue:
        """Blocks of vectors, each of which is scanned by itself and combined with the result of those before; gives the
        number of their vectors, after which the carry is that result.
        """
        code, lanes, zero, before = self.code, self.lanes, self.code.index(0), self._neutral_vector()
        blocks, carry = code.divide(count, VECTORS_OF_A_BLOCK), kept[-1]
        with code.loop(blocks, "block") as block:
            earlier = code.load(before, [zero], lanes)
            with code.loop(code.index(VECTORS_OF_A_BLOCK), "v") as vector:
                start = code.mul(code.add(code.mul(block, VECTORS_OF_A_BLOCK), vector), lanes)
                body, element = self._elements(start, Lanes(self.axis, lanes))
                self._store(body, self._combined(earlier, self._vector(element, kept)))
            code.store(self._combined(earlier, code.load(carry, [zero], lanes)), before, [zero])
            code.store(self.neutral, carry, [zero])
        code.store(code.load(before, [zero], lanes), carry, [zero])
        return code.mul(blocks, VECTORS_OF_A_BLOCK)

    def _neutral_vector(self) -> SSAValue:
        kind = BufferType([self.lanes], self.dtype, scope="local", align=64)
        memory = self.code.value(AllocBufferOp(kind), "carry")
        self.code.store(self.neutral, memory, [self.code.index(0)])
        return memory

    def _vector(self, element: SSAValue, kept: Sequence[SSAValue]) -> SSAValue:
        """The results of a vector, given the values kept from the previous one, which are replaced."""
        code, lanes, zero = self.code, self.lanes, self.code.index(0)
        *chunks, carry = kept
        if not self.slides:
            (accumulators, total), before = self._within(element), code.load(carry, [zero], lanes)
            code.store(self._combined(before, total), carry, [zero])
            return self._combined(before, accumulators)
        for distance, chunk in zip(self._distances, chunks, strict=True):
            earlier = self._shuffled(
                code.load(chunk, [zero], lanes), element, [lanes - distance + n for n in range(lanes)]
            )
            code.store(element, chunk, [zero])
            element = self._combined(earlier, element)
        result = self._combined(code.load(carry, [zero], lanes), element)
        code.store(result, carry, [zero])
        return result

    @property
    def slides(self) -> bool:
        """Whether the steps cross vectors, until each lane has combined as many elements as a vector has. The
        total of a vector is not needed then, which saves three of twelve instructions.
        """
        return masks_are_registers(self.kernel)

    @property
    def _distances(self) -> list[int]:
        """The powers of two below the number of lanes."""
        return [1 << step for step in range(self.lanes.bit_length() - 1)]

    def _rest(self, kept: Sequence[SSAValue], done: SSAValue, length: SSAValue) -> None:
        code, lanes, zero = self.code, self.lanes, self.code.index(0)
        if masks_are_cheap(self.kernel, [self.scan.stage, self.scan.last]):
            left = code.sub(length, done)
            with code.when(code.compare("sgt", left, 0)):
                body, element = self._elements(done, Lanes(self.axis, lanes, left))
                self._store_first(body, self._vector(element, kept), left, length)
            return
        carry = kept[-1]
        with code.loop(length, "e", lower=done, vectorize=False) as index:
            body, element = self._elements(index, None)
            total = self._combined(code.load(carry, [zero]), element)
            code.store(total, carry, [zero])
            self._store(body, total)

    def _store_first(self, body: Explicit, value: SSAValue, left: SSAValue, length: SSAValue) -> None:
        """The remainder of a row; lanes beyond it write into the next rows, which overwrite them later."""
        code, rows = self.code, self.rows
        if rows is None or masks_are_registers(self.kernel) or not self._is_contiguous():
            self._store(body, value)
            return
        room = code.add(left, code.mul(code.sub(rows, 1), length))
        with code.when(code.compare("sge", room, self.lanes)) as branch:
            self._store(body, value, Lanes(self.axis, self.lanes))
        with code.otherwise(branch):
            self._store(body, value)

    def _is_contiguous(self) -> bool:
        """Whether each row of the result begins where the previous one ends."""
        stage = self.scan.last
        access = access_of(stage, stage.stores[0])
        return access.strides[self.axis - 1] is stage.axes[self.axis].extent and not access.computed

    def _elements(self, start: SSAValue, lanes: Lanes | None) -> tuple[Explicit, SSAValue]:
        """The elements to scan, as a vector or one element."""
        body = Explicit(self.kernel, self.scan.stage, {**self.at, self.axis: start}, lanes)
        body.run(self.scan.element_ops)
        return body, body.widened(body.value(self.scan.element))

    def _within(self, accumulators: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The inclusive prefix of each lane, and the total in all lanes."""
        lanes, chunk = self.lanes, self._lanes_of_a_part
        step = 1
        while step < chunk:
            order = [lane if lane % chunk < step else lanes + lane - step for lane in range(lanes)]
            accumulators = self._combined(self._shuffled(self.neutral, accumulators, order), accumulators)
            step *= 2
        ends = self._shuffled(accumulators, accumulators, [lane // chunk * chunk + chunk - 1 for lane in range(lanes)])
        if chunk == lanes:
            return accumulators, ends
        order = [lane if lane < chunk else lanes + lane - chunk for lane in range(lanes)]
        before = self._shuffled(self.neutral, ends, order)
        others = self._shuffled(ends, ends, [(lane + chunk) % lanes for lane in range(lanes)])
        return self._combined(before, accumulators), self._combined(ends, others)

    @property
    def _lanes_of_a_part(self) -> int:
        """Lanes within which steps shuffle: those of 128 bits with AVX2, where crossing halves is slow, else all."""
        halves = self.kernel.target.arch.startswith("x86") and not masks_are_registers(self.kernel)
        return min(self.lanes, 128 // (8 * byte_size(self.dtype))) if halves else self.lanes

    def _shuffled(self, left: SSAValue, right: SSAValue, order: Sequence[int]) -> SSAValue:
        return shuffle(self.code, (left, right), order)

    def _combined(self, before: SSAValue, element: SSAValue) -> SSAValue:
        op = self.scan.combine
        copy = type(op).create(operands=(before, element), result_types=[element.type], properties=dict(op.properties))
        return self.code.value(copy)

    def _store(self, body: Explicit, value: SSAValue, lanes: Lanes | None = None) -> None:
        """Writes the scan, or the elementwise stage of it; with other lanes than the body if they are given."""
        stage, (store,) = self.scan.last, self.scan.stage.stores
        last = Explicit(self.kernel, stage, body.at, lanes or body.lanes)
        last.fills_cache_lines = True
        if self.scan.result is None:
            last.values[store.value] = value
            last.run(stage.stores)
            return
        last.values |= {load.result: value for load in stage.loads if load.buffer is store.buffer}
        last.run(stage.body)
