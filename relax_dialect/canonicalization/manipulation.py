"""Patterns of operators that move elements."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relax_dialect.analysis.effects import unchanged_between
from relax_dialect.ops.manipulation import FlattenOp, PermuteDimsOp, ReshapeOp


class MergeReshapes(RewritePattern):
    """The shape in between does not matter: `reshape(reshape(x, s), t)  ->  reshape(x, t)`; also of `flatten`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if isinstance(inner, ReshapeOp | FlattenOp):
            new = ReshapeOp(inner.x, op.shape)
            if new.result.type == op.result.type:
                new.location = op.location
                rewriter.replace(op, new)


class MergePermutations(RewritePattern):
    """Two permutations are one: `permute_dims(permute_dims(x, p), q)  ->  permute_dims(x, p . q)`.

    Unless somebody may write into `x` between them.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PermuteDimsOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, PermuteDimsOp) or not unchanged_between([inner.x], inner, op):
            return
        outer_axes, inner_axes = permutation(op), permutation(inner)
        if outer_axes is None or inner_axes is None:
            return
        new = PermuteDimsOp(inner.x, [inner_axes[axis] for axis in outer_axes])
        if new.result.type == op.result.type:
            new.location = op.location
            rewriter.replace(op, new)


def permutation(op: PermuteDimsOp) -> tuple[int, ...] | None:
    """The axes, counted from the front; `None` if they depend on a rank that is not known."""
    rank = op.result.type.rank
    if rank is None:
        return None
    if not isinstance(op.axes, DenseArrayBase):
        return tuple(reversed(range(rank)))
    return tuple(int(axis) % rank for axis in op.axes.get_values())
