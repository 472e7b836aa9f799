"""Patterns of branches and loops whose way is known."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.hints import isa

from relax_dialect.analysis.effects import is_never_written, may_be_view, unchanged_between
from relax_dialect.external import PATTERNS
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.control_flow import ForOp, IfOp, YieldOp
from relax_dialect.ops.manipulation import PermuteDimsOp, permutation
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.scope import prover_at, symbols_witnessed
from relax_dialect.struct_info.match import Mismatch, Verdict
from relax_dialect.struct_info.types import PrimType, as_struct_infos


class TakeKnownBranch(RewritePattern):
    """A branch on a constant is one of its regions: `if true { A } else { B }  ->  A`.

    A region that binds symbols stays, since they would be visible after it, and a branch whose results witness one.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, rewriter: PatternRewriter) -> None:
        condition = known_truth(op.condition)
        if condition is None or op.result_witnesses:
            return
        block = (op.then_region if condition else op.else_region).block
        terminator = block.last_op
        if not isinstance(terminator, YieldOp) or any(symbols_witnessed(inner) for inner in block.ops):
            return
        values = terminator.values
        rewriter.erase(terminator)
        rewriter.inline_block(block, InsertPoint.before(op))
        _replace_by(op, values, rewriter)


class SkipEmptyLoop(RewritePattern):
    """A loop that provably does nothing is its first values: `for %i = 4 to 3 (%a = %x) { ... }  ->  %x`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        if not _provably_empty(op):
            return
        try:
            if op.match(op.inits).verdict is not Verdict.YES:
                return
        except Mismatch:
            return
        _replace_by(op, op.inits, rewriter)


@PATTERNS.attach("relax.if")
def branch_patterns() -> tuple[RewritePattern, ...]:
    """What a `relax.if` is canonicalized by."""
    return (TakeKnownBranch(),)


@PATTERNS.attach("relax.for")
def loop_patterns() -> tuple[RewritePattern, ...]:
    """What a `relax.for` is canonicalized by."""
    return (SkipEmptyLoop(),)


def _provably_empty(op: ForOp) -> bool:
    lower, upper = op.lower.type, op.upper.type
    if not isinstance(lower, PrimType) or not isinstance(upper, PrimType) or lower.value is None or upper.value is None:
        return False
    if op.counts_up is None:
        return prover_at(op).equal(upper.value, lower.value) is True
    first, last = (lower.value, upper.value) if op.counts_up else (upper.value, lower.value)
    return prover_at(op).less_equal(last, first) is True


def known_truth(value: SSAValue) -> bool | None:
    """The truth value that a condition is known to have."""
    maker = value.owner
    if isinstance(maker, PrimOp) and isa(maker.value, IntegerAttr):
        return bool(maker.value.value.data)
    if isinstance(maker, ConstantOp) and (array := maker.array) is not None and array.size == 1:
        if not is_never_written(value):
            return None
        return bool(array.reshape(()))
    return None


def _replace_by(op: Operation, values: Sequence[SSAValue], rewriter: PatternRewriter) -> None:
    """Replaces an op by values, which keep the types that its results have."""
    new: list[SSAValue] = []
    for value, info in zip(values, as_struct_infos(op.result_types), strict=True):
        if value.type != info:
            cast = MatchCastOp(value, info)
            cast.location = op.location
            rewriter.insert(cast, InsertPoint.before(op))
            value = cast.result
        new.append(value)
    rewriter.replace(op, [], new)


class MergePermutations(RewritePattern):
    """Two permutations are one: `permute_dims(permute_dims(x, p), q)  ->  permute_dims(x, p . q)`.

    Or none, if that is the order of `x`. Unless somebody may write between them.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PermuteDimsOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, PermuteDimsOp) or not unchanged_between([inner.x, op.x], inner, op):
            return
        outer_axes, inner_axes = permutation(op), permutation(inner)
        if outer_axes is None or inner_axes is None:
            return
        axes = [inner_axes[axis] for axis in outer_axes]
        if axes == sorted(axes) and inner.x.type == op.result.type and may_be_view(op.result, inner.x):
            rewriter.replace(op, [], [inner.x])
            return
        new = PermuteDimsOp(inner.x, axes)
        if new.result.type == op.result.type:
            new.location = op.location
            rewriter.replace(op, new)


@PATTERNS.attach("relax.permute_dims")
def permutation_patterns() -> tuple[RewritePattern, ...]:
    """What a `relax.permute_dims` is canonicalized by."""
    return (MergePermutations(),)
