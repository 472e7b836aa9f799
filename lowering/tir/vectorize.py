"""Unrolled loops to straight-line code, where their bounds are constants; and vectorized loops of any length to loops
of vectors of a constant length.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import has_no_effects
from tir_dialect.dims import Prover, constant, floordiv, maximum
from tir_dialect.ops.arithmetic import AssertOp, DimOp
from tir_dialect.ops.control_flow import ForOp, IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, lanes_of
from tir_dialect.types import LoopKind


def constant_value(value: SSAValue) -> int | None:
    """The integer that a value is, or None."""
    dim = dim_of(value)
    return None if dim is None else dim.constant_value


def constant_bounds(loop: ForOp) -> tuple[int, int] | None:
    """Lower and upper bound of a loop, if they are constants; the upper one is at least the lower one."""
    lower = 0 if loop.lower is None else constant_value(loop.lower)
    upper = constant_value(loop.upper)
    return None if lower is None or upper is None else (lower, max(lower, upper))


@dataclass(frozen=True)
class UnrollPass(ModulePass):
    """Unrolls every `tir.for unrolled` of constant extent.

    ```mlir
    tir.for unrolled (%i) in (%c2) { body(%i) }
    // becomes
    %0 = arith.constant 0 : index
    body(%0)
    %1 = arith.constant 1 : index
    body(%1)
    ```

    A loop of unknown trip count, or whose copies would have more than `max_ops` ops, is kept; `convert-tir-to-llvm`
    marks it for LLVM's unroller, which is also faster. Innermost loops come first. Accepts every valid module.
    """

    name = "unroll"

    max_ops: int = 4096
    """The limit on the number of ops after unrolling one loop."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [UnrollLoop(self.max_ops)], reverse=True)


@dataclass(frozen=True)
class UnrollLoop(RewritePattern):
    """A loop of constant extent is its body for each index: `for unrolled (i) in (2) { f(i) }  ->  f(0); f(1)`."""

    max_ops: int

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        bounds = constant_bounds(op)
        if op.kind.data is not LoopKind.UNROLLED or bounds is None:
            return
        if sum(1 for _ in op.body.walk()) * (bounds[1] - bounds[0]) > self.max_ops:
            return
        copies: list[Operation] = []
        for number in range(*bounds):
            index = arith.ConstantOp(IntegerAttr(number, IndexType()))
            index.result.name_hint = op.induction_var.name_hint
            inherit_location(op, index)
            values: dict[SSAValue, SSAValue] = {op.induction_var: index.result}
            copies += [index, *(inner.clone(values) for inner in op.body.block.ops)]
        rewriter.replace(op, copies, [])


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


@dataclass(frozen=True)
class VectorizePass(ModulePass):
    """Splits every `tir.for vectorized` of symbolic extent into a loop over vectors of `lanes` and a remainder loop.

    ```mlir
    tir.for vectorized (%i) in (%n) { body(%i) }
    // becomes, with main = n - n mod 16
    tir.for (%o) in (%trips) {
      tir.for vectorized (%l) in (%c16) {
        %base = arith.muli %o, %c16 : index
        %i = arith.addi %base, %l : index
        body(%i)
      }
    }
    tir.for (%i) in (%main to %n) { body(%i) }
    ```

    `convert-tir-to-llvm` makes vectors of the inner loop. Without this pass such a loop is lowered as a serial loop,
    which LLVM vectorises if it can prove that this is legal. Loops of constant length stay. Accepts every valid module.
    """

    name = "vectorize"

    lanes: int = 16
    """Length of the inner loop."""

    def __post_init__(self) -> None:
        """`ValueError` for no lanes."""
        if self.lanes < 1:
            raise ValueError(f"lanes expected a positive number, got {self.lanes}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Splits in first, innermost loops first."""
        for loop in reversed([inner for inner in op.walk() if isinstance(inner, ForOp)]):
            if loop.kind.data is LoopKind.VECTORIZED and constant_bounds(loop) is None:
                _split(loop, self.lanes)


def _split(loop: ForOp, lanes: int) -> None:
    ops: list[Operation] = []

    def emit(op: Operation) -> SSAValue:
        ops.append(op)
        return op.results[0]

    count = emit(arith.ConstantOp(IntegerAttr(lanes, IndexType())))
    zero = emit(arith.ConstantOp(IntegerAttr(0, IndexType())))
    lower = zero if loop.lower is None else loop.lower
    # An empty range has no vector iterations, and its remainder is empty, too.
    length = emit(arith.MaxSIOp(emit(arith.SubiOp(loop.upper, lower)), zero))
    trips = emit(arith.FloorDivSIOp(length, count))
    whole = emit(arith.AddiOp(lower, emit(arith.MuliOp(trips, count))))
    outer = ForOp(trips)
    inner = ForOp(
        count,
        kind=LoopKind.VECTORIZED,
        annotations=None if loop.annotations is None else loop.annotations.data,
        name_hint="lane",
    )
    outer.body.block.add_op(inner)
    _fill(loop, inner, outer, lower, count)
    rest = ForOp(loop.upper, lower=whole, name_hint=loop.induction_var.name_hint)
    values: dict[SSAValue, SSAValue] = {loop.induction_var: rest.induction_var}
    rest.body.block.add_ops([op.clone(values) for op in loop.body.block.ops])
    ops += [outer, rest]
    inherit_location(loop, ops)
    Rewriter.insert_op(ops, InsertPoint.before(loop))
    Rewriter.erase_op(loop)


def _fill(loop: ForOp, inner: ForOp, outer: ForOp, lower: SSAValue, count: SSAValue) -> None:
    """The body for the iteration `lower + trip * lanes + lane`."""
    base = arith.MuliOp(outer.induction_var, count)
    first = arith.AddiOp(lower, base)
    index = arith.AddiOp(first, inner.induction_var)
    index.result.name_hint = loop.induction_var.name_hint
    values: dict[SSAValue, SSAValue] = {loop.induction_var: index.result}
    inner.body.block.add_ops([base, first, index])
    inner.body.block.add_ops([op.clone(values) for op in loop.body.block.ops])
