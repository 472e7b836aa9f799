"""Which elements a block writes that writes elements on conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors, enclosing_loops
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp, WhileOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.accesses import Access
from tir_dialect.schedule.legality.boxes import loops_between
from tir_dialect.schedule.legality.instances import is_dense, leaves_some
from tir_dialect.schedule.rewriting.edits import set_condition
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.rewriting.normalize import emit_less
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, conjuncts


@dataclass(frozen=True)
class Bound:
    """The condition `index + offset < limit`, or `limit < index + offset`, on the index of an axis."""

    axis: int
    offset: Dim
    limit: Dim
    is_upper: bool

    def at(self, indices: Sequence[Dim], offset: Dim, limit: Dim) -> Less:
        """The condition at an element, with offset and limit in terms of the symbols there."""
        index = indices[self.axis] + offset
        return Less(index, limit) if self.is_upper else Less(limit, index)


def written_where(
    self: ScheduleState, stores: Sequence[Access], block: BlockOp, loop: ForOp | None, box: Sequence[AxisRange]
) -> list[list[Bound]] | None:
    """Conditions, all of one list, on which an element of the box is written in an iteration of the loop.

    `None` if they are not known: where a store would not fill the box without its conditions, or these are not on
    single indices.
    """
    found: list[list[Bound]] = []
    for store in stores:
        names = {self.symbol(op).as_symbol or "" for op in loops_between(store, loop)}
        bounds = _bounds(self, store, block, names)
        if bounds is None or not is_dense(self, [store], loop, box):
            return None
        found.append(bounds)
    return found


def _bounds(self: ScheduleState, store: Access, block: BlockOp, names: set[str]) -> list[Bound] | None:
    found: list[Bound] = []
    inside = store.op
    for outer in ancestors(store.op):
        if not is_inside(outer, block):
            break
        if isinstance(outer, WhileOp) or (isinstance(outer, IfOp) and inside.parent_region() is not outer.then_body):
            return None
        inside = outer
        condition = outer.condition if isinstance(outer, IfOp | BlockOp) else None
        for each in [] if condition is None else conjuncts(self.space, condition):
            if outer is block and leaves_some(self, block, store, each):
                continue
            bound = _bound(store, each, names)
            if bound is None:
                return None
            found.append(bound)
    return found


def _bound(store: Access, condition: Less | SSAValue, names: set[str]) -> Bound | None:
    """A condition as one on an index; `names` are the loops that an element does not tell."""
    if not isinstance(condition, Less):
        return None
    for number, axis in enumerate(store.axes):
        if axis.low is None:
            continue
        for side, limit, is_upper in ((condition.lhs, condition.rhs, True), (condition.rhs, condition.lhs, False)):
            offset = side - axis.low
            if names.isdisjoint(offset.symbols | limit.symbols):
                return Bound(number, offset, limit, is_upper)
    return None


def copy_only(self: ScheduleState, copy: BlockOp, where: Sequence[Sequence[Bound]]) -> None:
    """Lets a block that copies elements leave out those for which no list of conditions holds."""
    bounds = [bound for each in where for bound in each]
    carried = self.carry([dim for bound in bounds for dim in (bound.offset, bound.limit)])
    dims = iter(carried)
    indices = [self.symbol(op) for op in enclosing_loops(copy)][-len(copy.iterators) :]
    emitter = Materializer(self.func, self.space, InsertPoint.before(copy))
    result: SSAValue | None = None
    for each in where:
        holds: SSAValue | None = None
        for bound in each:
            value = emit_less(emitter, bound.at(indices, next(dims), next(dims)))
            holds = value if holds is None else emitter.insert(arith.AndIOp(holds, value))
        if holds is None:
            return
        result = holds if result is None else emitter.insert(arith.OrIOp(result, holds))
    set_condition(copy, result)
