"""From a tile of sums to the output: what earlier turns left is added, what follows is computed, then it is stored."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import SSAValue

from lowering.schedule.cpu.epilogue import Step
from lowering.schedule.cpu.explicit import Explicit, Lanes
from lowering.schedule.cpu.product import Product, Spot


class Finish:
    """Puts vectors of sums into the output, for one turn along the sums.

    `first` and `last` say whether it is the first and the last turn; `None` where there is only one.
    """

    def __init__(self, product: Product, first: SSAValue | None, last: SSAValue | None):
        self.product = product
        self.code = product.code
        self.first = first
        self.last = last

    def store(self, sums: SSAValue, spot: Spot, count: SSAValue) -> None:
        """A vector of sums; `count` lanes or more are on."""
        code, tiles = self.code, self.product.tiles
        mask = code.leading(count, tiles.lanes)
        value = self._as_output(sums)
        if self.first is not None:
            # In the first turn there is nothing to add: no lane is read.
            earlier = code.leading(code.select(self.first, code.index(0), count), tiles.lanes)
            value = self._added(value, self._load(spot, earlier))
        if not self.product.epilogue.steps:
            self._keep(value, spot, mask)
        elif self.last is None:
            self._follow(value, spot, count)
        else:
            with code.when(self.last) as branch:
                self._follow(value, spot, count)
            with code.otherwise(branch):
                self._keep(value, spot, mask)

    def _as_output(self, value: SSAValue) -> SSAValue:
        if not self.product.what.is_integer:
            return value
        kind = VectorType(i32, [self.product.tiles.lanes])
        return self.code.value(arith.FPToSIOp.create(operands=[value], result_types=[kind]))

    def _added(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.code.value(arith.AddiOp(a, b) if self.product.what.is_integer else arith.AddfOp(a, b))

    def _index(self, spot: Spot) -> SSAValue:
        """Where the output of a place is."""
        return self.product.offset(self.product.what.output, spot)

    def _load(self, spot: Spot, mask: SSAValue) -> SSAValue:
        product = self.product
        return self.code.load(product.sums, [self._index(spot)], product.tiles.lanes, mask)

    def _keep(self, value: SSAValue, spot: Spot, mask: SSAValue) -> None:
        self.code.store(value, self.product.sums, [self._index(spot)], mask)

    def _follow(self, value: SSAValue, spot: Spot, on: SSAValue) -> None:
        """The epilogue of a vector of complete sums."""
        what, epilogue = self.product.what, self.product.epilogue
        count = len(what.stage.axes)
        at = self.product.at([step.place(op, count) for step, op in epilogue.accesses], (), spot)
        produced = {what.store.buffer: value}
        if what.store.buffer not in epilogue.unread:
            self._keep(value, spot, self.code.leading(on, self.product.tiles.lanes))
        for step in epilogue.steps:
            self._step(step, at, produced, on)

    def _step(self, step: Step, at: dict[int, SSAValue], produced: dict[SSAValue, SSAValue], on: SSAValue) -> None:
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
