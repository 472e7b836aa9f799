"""From accumulators to the output: partial sums of earlier blocks are added, the epilogue is computed, the result
stored.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.explicit import Explicit, Lanes
from lowering.kernels.cpu.emit.shuffles import element_of
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.structure.contraction import is_chain
from lowering.kernels.cpu.structure.epilogue import Step


class Finish:
    """Stores vectors of accumulators to the output, for one block of the reduction.

    `first` and `last` say whether it is the first and the last block; they are `None` where there is only one, and
    `last` is in code that only the last one runs.
    """

    def __init__(self, product: Product, first: SSAValue | None, last: SSAValue | None):
        self.product = product
        self.code = product.code
        self.first = first
        self.last = last

    def store(self, sums: SSAValue, coords: Coords, count: SSAValue) -> None:
        """A vector of sums; `count` lanes or more are on."""
        lanes = self.product.tiles.lanes
        self.product.masked(count, lanes, lambda masked: self.store_lanes(sums, coords, count if masked else None))

    def prefetch(self, coords: Coords) -> None:
        """Asks for the sums that earlier blocks of the reduction left, where rows are evenly spaced."""
        what, sums = self.product.what, self.product.kernel.flat.get(self.product.what.store.buffer)
        if sums is not None and is_chain([what.output], what.stage.extents, what.row):
            self.code.prefetch(sums, [self._index(coords)], 2)

    def store_lanes(self, sums: SSAValue, coords: Coords, on: SSAValue | None) -> None:
        """All lanes of a vector of sums, or those that are on."""
        self.put(self._total(sums, coords, on), coords, on)

    def put(self, value: SSAValue, coords: Coords, on: SSAValue | None) -> None:
        """The same for sums that have all that earlier blocks of the reduction left, as the output has them."""
        code = self.code
        if not self.product.epilogue.steps:
            self._keep(value, coords, on)
        elif self.last is None:
            self._follow(value, coords, on)
        else:
            with code.when(self.last) as branch:
                self._follow(value, coords, on)
            with code.otherwise(branch):
                self._keep(value, coords, on)

    def _total(self, sums: SSAValue, coords: Coords, on: SSAValue | None) -> SSAValue:
        """A vector of sums with what earlier blocks of the reduction left."""
        value = self.as_output(sums)
        return value if self.first is None else self.added(value, self._earlier(coords, on))

    def as_output(self, value: SSAValue) -> SSAValue:
        """A vector of sums of products as the output has them: as integers if it is of these."""
        if not self.product.what.is_integer or element_of(value) == i32:
            return value
        kind = VectorType(i32, [self.product.tiles.lanes])
        return self.code.value(arith.FPToSIOp.create(operands=[value], result_types=[kind]))

    def added(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The sum of two vectors as the output has them."""
        return self.code.value(arith.AddiOp(a, b) if self.product.what.is_integer else arith.AddfOp(a, b))

    def _index(self, coords: Coords) -> SSAValue:
        """The index in the output."""
        return self.product.offset(self.product.what.output, coords)

    def _earlier(self, coords: Coords, on: SSAValue | None) -> SSAValue:
        """What earlier blocks of the reduction left: zeros in the first one."""
        code, lanes, index = self.code, self.product.tiles.lanes, self._index(coords)
        assert self.first is not None  # the reduction is split
        if on is None:
            old = code.load(self.product.sums, [index], lanes)
            zeros = code.value(arith.SubiOp(old, old)) if self.product.what.is_integer else self._zeros
            return code.select(self.first, zeros, old)
        some = code.leading(code.select(self.first, code.index(0), on), lanes)
        return code.load(self.product.sums, [index], lanes, some)

    @property
    def _zeros(self) -> SSAValue:
        return self.code.zeros(self.product.what.element, self.product.tiles.lanes)

    def _keep(self, value: SSAValue, coords: Coords, on: SSAValue | None) -> None:
        mask = None if on is None else self.code.leading(on, self.product.tiles.lanes)
        self.code.store(value, self.product.sums, [self._index(coords)], mask)

    def _follow(self, value: SSAValue, coords: Coords, on: SSAValue | None) -> None:
        """The epilogue of a vector of complete sums."""
        what, epilogue = self.product.what, self.product.epilogue
        count = len(what.stage.axes)
        at = self.product.at([step.access(op, count) for step, op in epilogue.accesses], (), coords)
        produced = {what.store.buffer: value}
        if what.store.buffer not in epilogue.unread:
            self._keep(value, coords, on)
        for step in epilogue.steps:
            self._step(step, at, produced, on)

    def _step(
        self, step: Step, at: dict[int, SSAValue], produced: dict[SSAValue, SSAValue], on: SSAValue | None
    ) -> None:
        kernel, tiles, what = self.product.kernel, self.product.tiles, self.product.what
        own = {axis: at[target] for axis, target in step.axes.items() if target in at}
        axis = next(axis for axis, target in step.axes.items() if target == what.along[-1])
        body = Explicit(kernel, step.stage, own, Lanes(axis, tiles.lanes, on))
        for load in step.stage.loads:
            if load.buffer in produced:
                body.values[load.result] = produced[load.buffer]
        body.run(step.stage.body)
        for store in step.stage.stores:
            produced[store.buffer] = body.widened(body.value(store.value))
