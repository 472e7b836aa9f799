"""Vectorisation of loops that only check indices."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import has_no_effects
from tir_dialect.dims import Prover, constant, floordiv, maximum
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, lanes_of
from tir_dialect.ops.scalars import AssertOp, DimOp
from tir_dialect.types import LoopKind

LANES = 32
"""Iterations per vector: 64-bit indices fill eight AVX2 registers, with one branch for all of them."""


def vectorize_checks(loop: ForOp) -> None:
    """Vectorises a loop that only checks, so that there is one branch for `LANES` indices.

    ```mlir
    tir.for (%i) in (%m) { %j = tir.load %I[%i]; %ok = arith.cmpi ult, %j, %n; tir.assert %ok, "..." }
    // becomes
    tir.for (%c) in (floordiv(m, 32)) {
      tir.for vectorized (%l) in (32) { %i = 32 * %c + %l; %j = tir.load %I[%i]; ...; tir.assert %ok, "..." }
    }
    tir.for (%i) in (32 * floordiv(m, 32) to m) { %j = tir.load %I[%i]; ...; tir.assert %ok, "..." }
    ```

    Loops whose bounds depend on data, and those that contain loops or vectors, are left unchanged.
    """
    lower, upper = constant(0) if loop.lower is None else dim_of(loop.lower), dim_of(loop.upper)
    if lower is None or upper is None or loop.annotations is not None or not all(map(_has_lanes, loop.body.walk())):
        return
    length = upper - lower
    chunks = floordiv(length if Prover().less_equal(0, length) else maximum(length, 0), LANES)
    if chunks.constant_value == 0:
        return
    ends = first, count, lanes, rest = [DimOp(dim) for dim in (lower, chunks, constant(LANES), lower + LANES * chunks)]
    outer = ForOp(count, kind=loop.kind.data, name_hint="chunk")
    tail = ForOp(loop.upper, lower=rest, name_hint=loop.induction_var.name_hint)
    inner = ForOp(lanes, kind=LoopKind.VECTORIZED, name_hint="lane")
    begin = arith.MuliOp(outer.induction_var, lanes)
    start = arith.AddiOp(begin, first)
    number = arith.AddiOp(start, inner.induction_var)
    inherit_location(loop, (*ends, outer, tail, begin, start, inner, number))
    outer.body.block.add_ops((begin, start, inner))
    values: dict[SSAValue, SSAValue] = {loop.induction_var: number.result}
    inner.body.block.add_ops((number, *(op.clone(values) for op in loop.body.block.ops)))
    Rewriter.insert_op((*ends, outer, tail), InsertPoint.before(loop))
    Rewriter.inline_block(loop.body.block, InsertPoint.at_end(tail.body.block), [tail.induction_var])
    Rewriter.erase_op(loop)


def _has_lanes(op: Operation) -> bool:
    """Whether an op computes one number from others, or asserts something of one, perhaps under a condition."""
    if isinstance(op, AssertOp | YieldOp) or (isinstance(op, IfOp) and not op.outputs):
        return True
    known = isinstance(op, LoadOp) or (not op.regions and has_no_effects(op))
    return known and all(lanes_of(value.type) is None for value in (*op.operands, *op.results))
