"""`simplify-reshapes`: fewer reshapes, and none between operators that one kernel can compute.

The passes on permutations share what they ask of operators.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import Elementwise, dims_of, is_single_element, used_only_by
from lowering.rewriting import Canonicalize, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.manipulation import ReshapeOp, ViewOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from tir_dialect.dims import Dim
from tir_dialect.weights import tensor_attr


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
        view = next((operand.owner for operand in op.operands if _can_follow(operand, op)), None)
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


def _can_follow(operand: SSAValue, op: Elementwise) -> bool:
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
    array = maker.array if isinstance(maker, ConstantOp) else None
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
