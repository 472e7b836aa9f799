"""Fewer operators that only move elements, or say their shape.

`simplify-permute-dims`: fewer permutations of dimensions. Elementwise operators may stand before a permutation as well
as after it. `simplify-reshapes`: fewer reshapes, and none between operators that one kernel can compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import (
    Elementwise,
    array_of,
    dims_of,
    dtype_of,
    is_elementwise,
    is_single_element,
    used_only_by,
)
from lowering.rewriting import Canonicalize, PatternIndex, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written, may_be_view, unchanged_between
from relax_dialect.ops.joining import ConcatOp
from relax_dialect.ops.layouts import spatial_letters
from relax_dialect.ops.manipulation import PermuteDimsOp, ReshapeOp, ViewOp, permutation
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.pooling import MaxPoolOp
from relax_dialect.ops.reduction import MaxOp, MeanOp, MinOp, ReductionOp, SumOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from tir_dialect.dims import Dim
from tir_dialect.ops.vectors import ui8
from tir_dialect.weights import tensor_attr

MOST_ELEMENTS = 1 << 16
"""Constants up to this size are permuted when the program is compiled."""

EarlyReductionOp: TypeAlias = SumOp | MeanOp | MaxOp | MinOp
"""Reductions that give the same in any order of their elements, but for rounding."""

_MOST_OPS = 32
"""Regions up to this size are looked for."""


def moves_only_ones(dims: Sequence[Dim], axes: Sequence[int]) -> bool:
    """Whether a permutation leaves the order of all dimensions that are not 1, and so of the elements."""
    kept = [axis for axis in axes if dims[axis].constant_value != 1]
    return kept == sorted(kept)


def can_precede(operand: SSAValue, axes: Sequence[int]) -> bool:
    """Whether it is known what an operand was before a permutation by `axes`, without a copy when the program runs."""
    return _is_permuted_by(operand.owner, axes) or is_single_element(operand) or _is_cheap(operand, _back(axes))


def before_permutation(operand: SSAValue, axes: Sequence[int], new: list[Operation]) -> SSAValue:
    """What an operand was before a permutation by `axes`, where it can precede that; makers are added to `new`."""
    maker = operand.owner
    if isinstance(maker, PermuteDimsOp) and _is_permuted_by(maker, axes):
        return maker.x
    if is_single_element(operand):
        return operand
    array, dims = _small_array(operand), dims_of(operand)
    if array is None and dims is not None:
        return viewed(operand, [dims[axis] for axis in _back(axes)], new)
    assert array is not None  # the caller has asked whether it can
    full = array.reshape((1,) * (len(axes) - array.ndim) + array.shape)
    made = ConstantOp(tensor_attr(np.ascontiguousarray(full.transpose(_back(axes)))))
    made.result.name_hint = operand.name_hint
    new.append(made)
    return made.result


def viewed(value: SSAValue, dims: Sequence[Dim], new: list[Operation]) -> SSAValue:
    """The elements of a value, in their order, with other dimensions; ops that make it are added to `new`."""
    maker = value.owner
    if isinstance(maker, ReshapeOp) and dims_of(maker.x) == tuple(dims) and is_never_written(maker.x):
        return maker.x
    shape = ShapeOp(dims)
    new += [shape, view := ReshapeOp(value, shape)]
    return view.result


def keeps_order(op: ReductionOp, axes: Sequence[int]) -> bool:
    """Whether the result of a reduction of what is permuted by `axes` has its elements in the order before that."""
    dims = dims_of(op.result)
    return op.keepdims is not None and op.axes is not None and dims is not None and moves_only_ones(dims, _back(axes))


def is_left_by_one(permuted: PermuteDimsOp) -> bool:
    """Whether all users of a permuted value can come before the permutation, with users of theirs until one is left.

    The one result that is used elsewhere is permuted then: a program with as many permutations, whose elementwise ops
    are next to what made their operands. Reductions after which order does not matter use what is not permuted.
    """
    axes, dims = permutation(permuted), dims_of(permuted.result)
    if axes is None or dims is None or not is_never_written(permuted.x):
        return False
    region: set[Operation] = set()
    inside: set[SSAValue] = {permuted.result}
    waiting = _users(permuted.result, axes)
    while waiting and len(region) < _MOST_OPS:
        user = waiting.pop(0)
        if user in region or not _can_join(user, inside, axes, dims):
            continue
        region.add(user)
        inside.add(user.results[0])
        left = [value for value in inside if any(each not in region for each in _users(value, axes))]
        if permuted.result not in left and len(left) <= 1:
            return True
        # What waited for the result of this op may follow now
        waiting += _users(user.results[0], axes)
    return False


def _back(axes: Sequence[int]) -> list[int]:
    return [list(axes).index(axis) for axis in range(len(axes))]


def _is_permuted_by(maker: object, axes: Sequence[int]) -> bool:
    if not isinstance(maker, PermuteDimsOp) or permutation(maker) != tuple(axes):
        return False
    return is_never_written(maker.x) and is_never_written(maker.result)


def _small_array(operand: SSAValue) -> np.ndarray | None:
    array = array_of(operand)
    return array if array is not None and array.size <= MOST_ELEMENTS else None


def _is_cheap(operand: SSAValue, back: Sequence[int]) -> bool:
    if _small_array(operand) is not None:
        return True
    dims = dims_of(operand)
    if dims is None or len(dims) != len(back) or not is_never_written(operand):
        return False
    return moves_only_ones(dims, back)


def _users(value: SSAValue, axes: Sequence[int]) -> list[Operation]:
    """The users of a value, without reductions that can come before its permutation."""
    users = dict.fromkeys(use.operation for use in value.uses)
    return [user for user in users if not (isinstance(user, EarlyReductionOp) and keeps_order(user, axes))]


def _can_join(op: Operation, inside: set[SSAValue], axes: Sequence[int], dims: Sequence[Dim]) -> bool:
    if not is_elementwise(op) or dims_of(op.results[0]) != tuple(dims):
        return False
    return all(operand in inside or can_precede(operand, axes) for operand in op.operands)


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
    * a permutation that only moves dimensions of 1 is a reshape, which costs nothing, unless an elementwise operator
      before
       it would be cut off from what follows;
    * a concatenation of tensors that are permuted alike is permuted afterwards, and one whose permutation undoes that
      of an operand joins permuted operands;
    * bytes are pooled before their channels, which are last, are moved to the front;
    * an elementwise operator comes before the permutation of its operand if no other op uses that, or all users of the
      result undo it, or the other users can come before it too and one result of theirs is permuted instead of it
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
        """Applies the rules until none matches. All is looked at again as long as a permutation has several users.

        A rewrite visits what it touches. Whether the users of a permutation can come before it depends on ops further
        down.
        """
        patterns = PatternIndex(
            [
                Canonicalize(PermuteDimsOp),
                ViewUnitDims(),
                PermuteConcatenation(),
                PermuteOperands(),
                PoolBeforePermutation(),
                ReduceBeforePermutation(),
                SinkPermutation(),
            ]
        )
        while apply_graph_patterns(op, patterns) and any(map(_has_several_users, op.walk())):
            pass


class ViewUnitDims(RewritePattern):
    """A permutation that only moves dimensions of 1 is a reshape: `permute_dims(x, p)  ->  reshape(x, s)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: PermuteDimsOp, rewriter: PatternRewriter) -> None:
        axes, dims = permutation(op), dims_of(op.x)
        if axes is None or dims is None or not moves_only_ones(dims, axes) or is_elementwise(op.x.owner):
            return
        if may_be_view(op.result, op.x):
            shape = ShapeOp(dims_of(op.result) or ())
            rewriter.replace(op, [shape, ReshapeOp(op.x, shape)])


class PermuteConcatenation(RewritePattern):
    """What is permuted alike is joined: `concat(permute_dims(x, p), ...)  ->  permute_dims(concat(x, ...), p)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter) -> None:
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
            rewriter.replace(op, [joined, result])


class PermuteOperands(RewritePattern):
    """What is joined meets its opposite: `permute_dims(concat(permute_dims(x, p), y), q)  ->  concat(x, y')` where q
    undoes p.
    """

    @op_rewrite_pattern
    def match_and_rewrite(self, op: PermuteDimsOp, rewriter: PatternRewriter) -> None:
        maker, axes, dims = op.x.owner, permutation(op), dims_of(op.x)
        if not isinstance(maker, ConcatOp) or axes is None or dims is None or not used_only_by(op.x, op):
            return
        if not any(_is_opposite(operand.owner, axes) for operand in maker.inputs):
            return
        if not unchanged_between([*maker.inputs, op.x], maker, op):
            return
        new = [PermuteDimsOp(operand, axes) for operand in maker.inputs]
        joined = ConcatOp(new, axes.index(maker.axis.value.data % len(dims)))
        if joined.result.type == op.result.type:
            rewriter.replace(op, [*new, joined])


def _is_opposite(op: Operation | Block, axes: Sequence[int]) -> bool:
    """Whether a permutation by these axes undoes another one."""
    found = permutation(op) if isinstance(op, PermuteDimsOp) else None
    return found is not None and all(found[axis] == index for index, axis in enumerate(axes))


class PoolBeforePermutation(RewritePattern):
    """Bytes are pooled with their channels last: `max_pool2d(permute_dims(x, p))  ->  permute_dims(max_pool2d(x), p)`.

    That reads neighbours, and there is less to permute.
    """

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MaxPoolOp, rewriter: PatternRewriter) -> None:
        maker, letters = op.x.owner, spatial_letters(op.RANK)
        axes = permutation(maker) if isinstance(maker, PermuteDimsOp) else None
        if not isinstance(maker, PermuteDimsOp) or axes != (0, op.RANK + 1, *range(1, op.RANK + 1)):
            return
        if dtype_of(op.x) not in (i8, ui8) or not unchanged_between([maker.x, op.x], maker, op):
            return
        if any(layout.text != f"NC{letters}" for layout in op.layouts):
            return
        sizes = [size.data for size in op.pool_size]
        inner = type(op)(
            maker.x,
            sizes,
            strides=op.windows.strides,
            padding=op.windows.padding,
            dilation=op.windows.dilation,
            ceil_mode=op.ceil_mode is not None,
            layout=f"N{letters}C",
        )
        outer = PermuteDimsOp(inner, axes)
        if outer.result.type == op.result.type:
            rewriter.replace(op, [inner, outer])


class ReduceBeforePermutation(RewritePattern):
    """A reduction comes before a permutation that costs nothing after it: `sum(permute_dims(x, p))  ->  sum(x)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: EarlyReductionOp, rewriter: PatternRewriter) -> None:
        maker = op.x.owner
        axes = permutation(maker) if isinstance(maker, PermuteDimsOp) else None
        if axes is None or op.axes is None or not isinstance(maker, PermuteDimsOp) or not keeps_order(op, axes):
            return
        along = sorted(axes[int(axis) % len(axes)] for axis in op.axes.get_values())
        inner = type(op)(maker.x, along, keepdims=True)
        new: list[Operation] = [inner]
        result = viewed(inner.result, dims_of(op.result) or (), new)
        if unchanged_between([maker.x, op.x], maker, op) and result.type == op.result.type:
            rewriter.replace(op, new, [result])


class SinkPermutation(RewritePattern):
    """An elementwise operator comes before a permutation: `f(permute_dims(x, p))  ->  permute_dims(f(x), p)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Elementwise, rewriter: PatternRewriter) -> None:
        found = next((operand.owner for operand in op.operands if _is_permuted_for(operand, op)), None)
        axes = permutation(found) if isinstance(found, PermuteDimsOp) else None
        if axes is None or not all(can_precede(operand, axes) for operand in op.operands):
            return
        new: list[Operation] = []
        inner = op.with_operands([before_permutation(operand, axes, new) for operand in op.operands])
        outer = PermuteDimsOp(inner, axes)
        if outer.result.type == op.results[0].type:
            inner.results[0].name_hint = op.results[0].name_hint
            rewriter.replace(op, [*new, inner, outer])


def _has_several_users(op: Operation) -> bool:
    return isinstance(op, PermuteDimsOp) and op.result.has_more_than_one_use()


def _is_permuted_for(operand: SSAValue, op: Elementwise) -> bool:
    """Whether an operand is permuted for this op alone, or the result's users undo that, and fills the result."""
    maker = operand.owner
    return (
        isinstance(maker, PermuteDimsOp)
        and is_never_written(operand)
        and (used_only_by(operand, op) or _is_undone(op, permutation(maker)) or is_left_by_one(maker))
        and dims_of(operand) is not None
        and dims_of(operand) == dims_of(op.results[0])
    )


def _is_undone(op: Elementwise, axes: Sequence[int] | None) -> bool:
    """Whether a permutation of the result of an op would meet the opposite one in each of its users."""
    users = [use.operation for use in op.results[0].uses]
    orders = [permutation(user) if isinstance(user, PermuteDimsOp) else None for user in users]
    identity = None if axes is None else tuple(range(len(axes)))
    return bool(users) and all(
        order is not None and axes is not None and tuple(axes[at] for at in order) == identity for order in orders
    )


class SimplifyReshapesPass(Pass):
    """Merges reshapes, and moves elementwise operators before them.

    Before:

    ```mlir
    %0 = relax.matmul %x, %w                     // tensor<[m * n, 8], f32>
    %1 = relax.reshape %0, %s                    // tensor<[m, n, 8], f32>
    %2 = relax.add %1, %bias                     // tensor<[8], f32>
    %3 = relax.flatten %2
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %w
    %2 = relax.add %0, %bias
    %3 = relax.flatten %2
    ```

    The rules, in program order:

    * a reshape, flatten, squeeze or expand_dims of another one is a single reshape, or nothing if the type is the same
    * an elementwise operator comes before the reshape of a computed operand that no other op uses: the two can be one
      kernel then, while a reshape stands between kernels. The other operands have to be reshaped alike, single
      elements, broadcast along dimensions that the reshape leaves alone, or 1 where it adds dimensions of 1.

    Nothing moves past a write into what it reads. Values are the same bit for bit. Idempotent.
    """

    name = "simplify-reshapes"
    requires = ("relax.reshape", "relax.flatten", "relax.expand_dims", "relax.squeeze")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [Canonicalize(ViewOp), SinkReshape()])


class SinkReshape(RewritePattern):
    """An elementwise operator comes before the reshape of its operand: `f(reshape(x, s))  ->  reshape(f(x), s)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Elementwise, rewriter: PatternRewriter) -> None:
        view = next((operand.owner for operand in op.operands if _is_reshaped_for(operand, op)), None)
        dims = dims_of(op.results[0])
        if not isinstance(view, ViewOp) or dims is None:
            return
        new: list[Operation] = []
        sources = [source for operand in op.operands if (source := _before(operand, view, new)) is not None]
        if len(sources) < len(op.operands):
            return
        inner, shape = op.with_operands(sources), ShapeOp(dims)
        outer = ReshapeOp(inner, shape)
        if dims_of(inner.results[0]) == dims_of(view.operands[0]) and outer.result.type == op.results[0].type:
            inner.results[0].name_hint = op.results[0].name_hint
            rewriter.replace(op, [*new, inner, shape, outer])


def _is_reshaped_for(operand: SSAValue, op: Elementwise) -> bool:
    """Whether an operand is reshaped for this op alone, fills the result, and is computed by an operator."""
    view = operand.owner
    if not isinstance(view, ViewOp) or not used_only_by(operand, op) or dims_of(view.operands[0]) is None:
        return False
    source = view.operands[0]
    computed = isinstance(source.owner, Operator) and is_never_written(source)
    return computed and dims_of(operand) is not None and dims_of(operand) == dims_of(op.results[0])


def _before(operand: SSAValue, view: ViewOp, new: list[Operation]) -> SSAValue | None:
    """What goes with the value before `view` as `operand` goes with the one after it."""
    before, after, own = dims_of(view.operands[0]) or (), dims_of(view.results[0]) or (), dims_of(operand)
    maker = operand.owner
    if isinstance(maker, ViewOp) and own == after:
        source = maker.operands[0]
        if dims_of(source) == before and is_never_written(source):
            return source
    if own is None:
        return None
    rank = len(own)
    if rank <= len(before) and (
        is_single_element(operand) or before[len(before) - rank :] == after[len(after) - rank :]
    ):
        return operand
    squeezed = () if is_single_element(operand) else _without(own, _added_units(before, after), len(after))
    if squeezed is None:
        return None
    array = array_of(operand)
    if array is not None:
        new.append(made := ConstantOp(tensor_attr(array.reshape([dim.constant_value or 0 for dim in squeezed]))))
        return made.result
    if not is_never_written(operand):
        return None
    new += [shape := ShapeOp(squeezed), made := ReshapeOp(operand, shape)]
    return made.result


def _added_units(before: Sequence[Dim], after: Sequence[Dim]) -> frozenset[int] | None:
    """The axes of `after` that are 1 and not in `before`; `None` if anything else is different."""
    rest, added = list(before), set[int]()
    for axis, dim in enumerate(after):
        if rest and rest[0] == dim:
            rest.pop(0)
        elif dim.constant_value == 1:
            added.add(axis)
        else:
            return None
    return None if rest else frozenset(added)


def _without(dims: Sequence[Dim], axes: frozenset[int] | None, rank: int) -> tuple[Dim, ...] | None:
    """The dimensions of an operand that broadcasts against `rank` dimensions, without some of these."""
    if axes is None:
        return None
    return tuple(dim for axis, dim in enumerate(dims, rank - len(dims)) if axis not in axes)
