"""`check-accesses`: run-time bounds checks of what cannot be proved about the accesses of a PrimFunc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.dims import Dim, Prover, constant
from tir_dialect.ops.arithmetic import AssertOp, DimOp
from tir_dialect.ops.blocks import MatchBufferOp, ViewOp
from tir_dialect.ops.function import PrimFuncOp

if TYPE_CHECKING:
    from tir_dialect.analysis.accesses import SizeCondition


class CheckAccessesPass(ModulePass):
    """Asserts, before the loops of a PrimFunc, that its accesses are in bounds, where this cannot be proved.

    ```mlir
    tir.prim_func @add[%n, %m](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[m], f32>, %C: !tir.buffer<[n], f32>) {
      tir.for (%i) in (%n) { ... tir.load %B[%i] ... }
    // becomes
      %0 = tir.dim n
      %1 = tir.dim m
      %2 = arith.cmpi sle, %0, %1 : index
      tir.assert %2, "add: a 'tir.load' whose index 0 of %B reaches n - 1, expected less than m"
      tir.for (%i) in (%n) { ... tir.load %B[%i] ... }
    ```

    Conditions on sizes are checked once, at function entry (`ValueError`); nothing is added where they are known to
    hold. Any other access, view or iterator that loop bounds, enclosing conditions, `min` and `max` do not prove to be
    in bounds is asserted to be (`IndexError`): data-dependent indices (`A[I[i]]`), vectors of them (of which the set
    lanes of the mask count), and accesses under a condition or in a `tir.while`. These checks run in loops of their own
    before all others if the function does not write what the indices depend on (`hoisted_checks.py`), so that the
    computation can be scheduled, and otherwise right before the access. A `tir.match_buffer` whose extents differ from
    the lengths of its ranges is a `ValueError`.

    The pass has to run before fusion, from which functions with assertions are excluded, and before scheduling. Ops
    whose accesses have been asserted get the attribute `checked`, so that running the pass again changes nothing.

    Memory at raw addresses (`tir.memory_at`) and accesses of C functions (`tir.call_extern`) are not checked.
    """

    name = "check-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks at each PrimFunc by itself."""
        for func in op.ops:
            if isinstance(func, PrimFuncOp):
                _check(func)


def _check(func: PrimFuncOp) -> None:
    # Not at the top: most modules have operators only.
    from tir_dialect.analysis.accesses import CHECKED, first_effect, size_conditions, unproven_accesses

    first = first_effect(func)
    if first is None:
        return
    for op in list(func.body.walk()):
        if (
            isinstance(op, ViewOp)
            and op.start is None
            and not Prover(func.bounds).less_equal(op.view_type.span, op.room)
        ):
            zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
            view = ViewOp(op.buffer, op.view_type, zero)
            inherit_location(op, [zero, view])
            view.view.name_hint = op.view.name_hint
            Rewriter.replace_op(op, [zero, view], [view.view])
    _check_lengths(func)
    conditions = size_conditions(func)
    accesses = unproven_accesses(func, conditions)
    present = {op.message.data for op in func.body.block.ops if isinstance(op, AssertOp)}
    for condition in conditions:
        if condition.message not in present:
            ops = list(_assertion(condition))
            inherit_location(func, ops)
            Rewriter.insert_op(ops, InsertPoint.before(first))
    if accesses:
        from lowering.tir.hoisted_checks import assert_in_bounds, hoist_checks

        if not hoist_checks(func, accesses, first):
            for each in accesses:
                assert_in_bounds(each, each.op)
                each.op.attributes[CHECKED] = UnitAttr()


def _check_lengths(func: PrimFuncOp) -> None:
    """Asserts before each view that its extents are the lengths of its ranges."""
    views = [op for op in func.body.walk() if isinstance(op, MatchBufferOp)]
    if not views:
        return
    from tir_dialect.analysis.accesses import name_of
    from tir_dialect.analysis.functions import is_as_long, ranges
    from tir_dialect.analysis.index_space import DataSpace

    space = DataSpace(func)
    for op in views:
        before = () if op.parent is None else op.parent.ops
        asserted = {each.message.data for each in before if isinstance(each, AssertOp)}
        for axis, part, extent in ranges(op):
            what = f"{func.sym_name.data}: a 'tir.match_buffer' whose range {axis} of {name_of(op.buffer)}"
            message = f"{what} is not as long as the view, expected {extent} elements"
            if is_as_long(space, part, extent) or message in asserted:
                continue
            length, expected = arith.SubiOp(part.upper, part.lower), DimOp(extent)
            holds = arith.CmpiOp(length, expected, "eq")
            ops = [length, expected, holds, AssertOp(holds, message)]
            inherit_location(op, ops)
            Rewriter.insert_op(ops, InsertPoint.before(op))


def _assertion(condition: SizeCondition) -> Iterator[Operation]:
    sides = [(condition.smaller, condition.larger), *((length, constant(0)) for length in condition.lengths)]
    compared = [_compare(*pair) for pair in sides]
    for ops in compared:
        yield from ops
    holds = compared[0][-1]
    for ops in compared[1:]:
        holds = arith.OrIOp(holds, ops[-1])
        yield holds
    yield AssertOp(holds, condition.message)


def _compare(smaller: Dim, larger: Dim) -> Sequence[Operation]:
    sides = DimOp(smaller), DimOp(larger)
    return (*sides, arith.CmpiOp(*sides, "sle"))
