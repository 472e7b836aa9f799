"""`check-accesses`: sizes with which a PrimFunc would leave its buffers are refused at its start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.scalars import AssertOp, DimOp

if TYPE_CHECKING:
    from tir_dialect.analysis.size_conditions import SizeCondition


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

    Nothing is added where the sizes are known to fit. An index that is data (`A[I[i]]`) is asserted to be in range
    where it is used, unless it is made so by `min` and `max`: `IndexError`. Not checked are vectors of indices, masked
    accesses, ends that are not attained, and sizes of what runs under a condition. Has to run before fusion, which a
    function with assertions takes no part in, and before schedules. Idempotent.
    """

    name = "check-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks at each PrimFunc by itself."""
        for func in op.ops:
            if isinstance(func, PrimFuncOp):
                _check(func)


def _check(func: PrimFuncOp) -> None:
    # Not at the top: most modules have operators only.
    from lowering.tir.data_indices import check_data_indices
    from tir_dialect.analysis.size_conditions import first_effect, size_conditions

    place = first_effect(func)
    conditions = size_conditions(func)
    check_data_indices(func)
    if place is None or not conditions:
        return
    present = {op.message.data for op in func.body.block.ops if isinstance(op, AssertOp)}
    for condition in conditions:
        if condition.message not in present:
            ops = list(_assertion(condition))
            inherit_location(func, ops)
            Rewriter.insert_op(ops, InsertPoint.before(place))


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
