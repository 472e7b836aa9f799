"""`simplify-reshapes`: fewer reshapes, and none between operators that one kernel can compute."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowering.passes import Pass
from lowering.relax.movement import (
    dims_of,
    is_elementwise,
    is_single_element,
    replace_with,
    used_only_by,
    with_operands,
)
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from tir_dialect.elements import tensor_attr

View = ReshapeOp | FlattenOp | ExpandDimsOp | SqueezeOp


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
      elements, or broadcast along dimensions that the reshape leaves alone.

    Nothing moves past a write into what it reads. Values are the same bit for bit. Idempotent.
    """

    name = "simplify-reshapes"
    requires = ("relax.reshape", "relax.flatten", "relax.expand_dims", "relax.squeeze")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """One walk in program order: what is simpler is seen by what follows."""
        for inner in list(op.walk()):
            if inner.parent is None:
                continue
            if isinstance(inner, View):
                _merge(inner)
            elif isinstance(inner, Operator) and is_elementwise(inner):
                _sink(inner)


def _merge(op: View) -> None:
    source = op.x
    while isinstance(maker := source.owner, View):
        source = maker.x
    if source.type == op.result.type and dims_of(source) is not None:
        replace_with(op, [], source)
    elif source is not op.x and (dims := dims_of(op.result)) is not None:
        shape: list[Operation] = [] if isinstance(op, ReshapeOp) else [ShapeOp(dims)]
        made = ReshapeOp(source, op.shape if isinstance(op, ReshapeOp) else shape[0])
        if made.result.type == op.result.type:
            replace_with(op, [*shape, made], made.result)


def _sink(op: Operator) -> None:
    """Puts an elementwise operator in front of the reshape of its operand."""
    view = next((operand.owner for operand in op.operands if _can_follow(operand, op)), None)
    dims = dims_of(op.results[0])
    if not isinstance(view, View) or dims is None:
        return
    new: list[Operation] = []
    sources = [source for operand in op.operands if (source := _before(operand, view, new)) is not None]
    if len(sources) < len(op.operands):
        return
    inner, shape = with_operands(op, sources), ShapeOp(dims)
    outer = ReshapeOp(inner, shape)
    if dims_of(inner.results[0]) != dims_of(view.x) or outer.result.type != op.results[0].type:
        return
    inner.results[0].name_hint = op.results[0].name_hint
    replace_with(op, [*new, inner, shape, outer], outer.result)


def _can_follow(operand: SSAValue, op: Operator) -> bool:
    """Whether an operand is reshaped for this op alone, fills the result, and is computed by an operator."""
    view = operand.owner
    if not isinstance(view, View) or not used_only_by(operand, op) or dims_of(view.x) is None:
        return False
    computed = isinstance(view.x.owner, Operator) and is_never_written(view.x)
    return computed and dims_of(operand) is not None and dims_of(operand) == dims_of(op.results[0])


def _before(operand: SSAValue, view: View, new: list[Operation]) -> SSAValue | None:
    """What goes with the value in front of `view` as `operand` goes with the one behind it."""
    before, after, own = dims_of(view.x) or (), dims_of(view.result) or (), dims_of(operand)
    maker = operand.owner
    if isinstance(maker, View) and dims_of(maker.x) == before and own == after and is_never_written(maker.x):
        return maker.x
    if own is None:
        return None
    rank = len(own)
    if rank <= len(before) and (
        is_single_element(operand) or before[len(before) - rank :] == after[len(after) - rank :]
    ):
        return operand
    array = maker.array if isinstance(maker, ConstantOp) and is_single_element(operand) else None
    if array is None:
        return None
    new.append(made := ConstantOp(tensor_attr(array.reshape(()))))
    return made.result
