"""Patterns of operators that move elements."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relax_dialect.analysis.effects import may_be_view, unchanged_between
from relax_dialect.ops.manipulation import PermuteDimsOp, ReshapeOp, ViewOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.types import TensorType


class MergeReshapes(RewritePattern):
    """The shape in between does not matter: `reshape(reshape(x, s), t)  ->  reshape(x, t)`; also of other views."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ViewOp, rewriter: PatternRewriter) -> None:
        inner, info = op.operands[0].owner, op.results[0].type
        if not isinstance(inner, ViewOp) or not isinstance(info, TensorType):
            return
        if isinstance(op, ReshapeOp):
            new = [ReshapeOp(inner.operands[0], op.shape)]
        elif info.known_dims is not None:
            shape = ShapeOp(info.known_dims)
            new = [shape, ReshapeOp(inner.operands[0], shape)]
        else:
            return
        if new[-1].results[0].type == info:
            for made in new:
                made.location = op.location
            rewriter.replace(op, new)


class MergePermutations(RewritePattern):
    """Two permutations are one: `permute_dims(permute_dims(x, p), q)  ->  permute_dims(x, p . q)`.

    Or none, if that is the order of `x`. Unless somebody may write into `x` between them.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PermuteDimsOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, PermuteDimsOp) or not unchanged_between([inner.x], inner, op):
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


def permutation(op: PermuteDimsOp) -> tuple[int, ...] | None:
    """The axes, counted from the front; `None` if they depend on a rank that is not known."""
    rank = op.result.type.rank
    if rank is None:
        return None
    if not isinstance(op.axes, DenseArrayBase):
        return tuple(reversed(range(rank)))
    return tuple([int(axis) % rank for axis in op.axes.get_values()])
