"""`simplify-permute-dims`: fewer permutations of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowering.passes import Pass
from lowering.relax.movement import (
    dims_of,
    is_elementwise,
    replace_with,
    used_only_by,
    with_operands,
)
from lowering.relax.rewrites.permuted_regions import (
    EARLY_REDUCTIONS,
    before_permutation,
    can_precede,
    is_left_by_one,
    keeps_order,
    moves_only_ones,
    viewed,
)
from relax_dialect.analysis.effects import may_be_view, unchanged_between
from relax_dialect.canonicalization.manipulation import permutation
from relax_dialect.ops.joining import ConcatOp
from relax_dialect.ops.manipulation import PermuteDimsOp, ReshapeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.reduction import ReductionOp
from relax_dialect.ops.shapes import ShapeOp


class SimplifyPermuteDimsPass(Pass):
    """Merges permutations of dimensions, also across elementwise operators, and drops identities.

    Before:

    ```mlir
    %0 = relax.permute_dims %x axes = [0, 2, 3, 1]      // tensor<[n, 8, 4, 4], f32>
    %1 = relax.add %0, %bias                            // a constant tensor<[8], f32>
    %2 = relax.nn.relu %1
    %3 = relax.permute_dims %2 axes = [0, 3, 1, 2]
    ```

    After:

    ```mlir
    %2 = relax.add %x, %bias_1                          // the same constant as a tensor<[1, 8, 1, 1], f32>
    %3 = relax.nn.relu %2
    ```

    The rules, in program order:

    * two permutations are one, and one that changes no order is its operand;
    * a permutation that only moves dimensions of 1 is a reshape, which costs nothing, unless an elementwise operator in
      front of it would be cut off from what follows;
    * a concatenation of tensors that are permuted alike is permuted afterwards
    * an elementwise operator comes before the permutation of its operand if no other op uses that, or all users of the
      result undo it, or the other users can come before it too and one result of theirs is permuted in its place
      (`x * sigmoid(x)`); its other operands have to be permuted alike, constants, single elements, or of dimensions
      whose order does not matter, as most are 1. There it can be fused with what made the operand, and the permutation
      can meet another one, or a product that reads in any order;
    * a sum, mean, maximum or minimum is computed before the permutation if that then only moves dimensions of 1.

    Nothing moves past a write into what it reads, and a copy that somebody writes into stays a copy. Values are the
    same bit for bit, except that sums may be added up in another order. Idempotent.
    """

    name = "simplify-permute-dims"
    requires = ("relax.permute_dims",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Walks in program order, so that what is simpler is seen by what follows, until nothing changes."""
        while any([_moved(inner) for inner in list(op.walk()) if inner is not op]):
            pass


def _moved(op: Operation) -> bool:
    """Whether a rule has replaced an op; one that is gone by then is left alone."""
    if _is_gone(op):
        return False
    if isinstance(op, PermuteDimsOp):
        _simplify(op)
    elif isinstance(op, ConcatOp):
        _join(op)
    elif isinstance(op, EARLY_REDUCTIONS):
        _reduce_first(op)
    elif isinstance(op, Operator) and is_elementwise(op):
        _sink(op)
    return _is_gone(op)


def _is_gone(op: Operation) -> bool:
    return op.parent is None


def _simplify(op: PermuteDimsOp) -> None:
    axes = permutation(op)
    if axes is None:
        return
    source, inner = op.x, op.x.owner
    if (
        isinstance(inner, PermuteDimsOp)
        and (first := permutation(inner)) is not None
        and unchanged_between([inner.x], inner, op)
    ):
        source, axes = inner.x, tuple(first[axis] for axis in axes)
    if axes == tuple(range(len(axes))) and source.type == op.result.type and may_be_view(op.result, source):
        replace_with(op, [], source)
    elif _moves_only_ones(source, axes) and not is_elementwise(source.owner) and may_be_view(op.result, source):
        shape = ShapeOp(dims_of(op.result) or ())
        replace_with(op, [shape, view := ReshapeOp(source, shape)], view.result)
    elif source is not op.x:
        made = PermuteDimsOp(source, axes)
        if made.result.type == op.result.type:
            replace_with(op, [made], made.result)


def _moves_only_ones(source: SSAValue, axes: Sequence[int]) -> bool:
    dims = dims_of(source)
    return dims is not None and moves_only_ones(dims, axes)


def _join(op: ConcatOp) -> None:
    """Permutes the result of a concatenation, in the place of each operand."""
    makers = [operand.owner for operand in op.inputs if used_only_by(operand, op)]
    sources = [
        maker for maker in makers if isinstance(maker, PermuteDimsOp) and unchanged_between([maker.x], maker, op)
    ]
    orders = {permutation(maker) for maker in sources}
    axes = orders.pop() if len(sources) == len(op.inputs) > 1 == len(orders) else None
    if axes is None:
        return
    joined = ConcatOp([maker.x for maker in sources], axes[op.axis.value.data])
    result = PermuteDimsOp(joined, axes)
    if result.result.type == op.result.type:
        replace_with(op, [joined, result], result.result)


def _reduce_first(op: ReductionOp) -> None:
    """Reduces what is permuted, instead of the permuted value, where the result's permutation costs nothing."""
    maker = op.x.owner
    axes = permutation(maker) if isinstance(maker, PermuteDimsOp) else None
    if axes is None or op.axes is None or not isinstance(maker, PermuteDimsOp) or not keeps_order(op, axes):
        return
    along = sorted(axes[int(axis) % len(axes)] for axis in op.axes.get_values())
    inner = type(op)(maker.x, along, keepdims=True)
    new: list[Operation] = [inner]
    result = viewed(inner.result, dims_of(op.result) or (), new)
    if unchanged_between([maker.x], maker, op) and result.type == op.result.type:
        replace_with(op, new, result)


def _sink(op: Operator) -> None:
    """Puts an elementwise operator in front of the permutation of its operands."""
    found = next((operand.owner for operand in op.operands if _can_follow(operand, op)), None)
    axes = permutation(found) if isinstance(found, PermuteDimsOp) else None
    if axes is None:
        return
    if not all(can_precede(operand, axes) for operand in op.operands):
        return
    new: list[Operation] = []
    inner = with_operands(op, [before_permutation(operand, axes, new) for operand in op.operands])
    outer = PermuteDimsOp(inner, axes)
    if outer.result.type != op.results[0].type:
        return
    inner.results[0].name_hint = op.results[0].name_hint
    replace_with(op, [*new, inner, outer], outer.result)


def _can_follow(operand: SSAValue, op: Operator) -> bool:
    """Whether an operand is permuted for this op alone, or the result's users undo that, and fills the result."""
    maker = operand.owner
    return (
        isinstance(maker, PermuteDimsOp)
        and (used_only_by(operand, op) or _is_undone(op, permutation(maker)) or is_left_by_one(maker))
        and dims_of(operand) is not None
        and dims_of(operand) == dims_of(op.results[0])
    )


def _is_undone(op: Operator, axes: Sequence[int] | None) -> bool:
    """Whether a permutation of the result of an op would meet the opposite one in each of its users."""
    users = [use.operation for use in op.results[0].uses]
    orders = [permutation(user) if isinstance(user, PermuteDimsOp) else None for user in users]
    identity = None if axes is None else tuple(range(len(axes)))
    return bool(users) and all(
        order is not None and axes is not None and tuple(axes[at] for at in order) == identity for order in orders
    )
