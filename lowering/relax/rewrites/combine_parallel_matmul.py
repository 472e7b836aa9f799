"""`combine-parallel-matmul`: matmuls of one value with several constants are one matmul."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.locations import fused_location
from lowering.relax.movement import with_operands
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.joining import SplitOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.unary import UnaryOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.elements import tensor_attr

Array = NDArray[Any]


@dataclass(frozen=True)
class CombineParallelMatmulPass(ModulePass):
    """Combines matmuls with the same left operand and constant right operands into one.

    Before:

    ```mlir
    %0 = relax.matmul %x, %wq                 // %wq, %wk, %wv, %bq, %bk, %bv are constants
    %q = relax.add %0, %bq
    %1 = relax.matmul %x, %wk
    %k = relax.add %1, %bk
    %2 = relax.matmul %x, %wv
    %v = relax.add %2, %bv
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %w                  // the columns of %wq, %wk and %wv beside each other
    %1 = relax.add %0, %b
    %q, %k, %v = relax.split %1 indices = [768, 1536] axis = -1
    ```

    Biases are joined if all matmuls have one, and so are equal functions of one operand after that. Constants have
    two dimensions, and are in this process; `%x` has a known rank and is written by nobody. Results may differ in their
    last bits. Idempotent; mirrors TVM's `CombineParallelMatmul`.

    Not part of `optimize-graph`: with packed weights, three matmuls of 768 x 768 take as long as one of 768 x 2304
    (1.00 times at 128 rows, 1.05 at one row), and the parts have to be copied where a reader cannot slice. It is
    profitable for narrow constants, which `most-columns` selects.
    """

    name = "combine-parallel-matmul"

    most_columns: int | None = None
    """Constants with more columns than this stay alone; none do without it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Combines the matmuls of every block."""
        apply_patterns(op, [CombineMatmuls(self.most_columns)])


class CombineMatmuls(RewritePattern):
    """Matmuls of one value by constants are one: `matmul(x, a), matmul(x, b)  ->  split(matmul(x, concat(a, b)))`."""

    def __init__(self, most_columns: int | None = None):
        self._most_columns = most_columns

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        matmuls = self._beside(op)
        if len(matmuls) < 2:
            return
        weights = [array for each in matmuls if (array := _weights(each)) is not None]
        stacked = _joined([each.y for each in matmuls], weights, 1)
        new: list[Operation] = [stacked, MatmulOp(op.x, stacked, op.out_dtype)]
        heads: list[Operator] = list(matmuls)
        old = list(heads)
        while (following := _next(heads, weights, new)) is not None:
            heads = following
            old += heads
        ends = accumulate(array.shape[1] for array in weights[:-1])
        split = SplitOp(new[-1], indices=list(ends), axis=-1)
        if [tile.type for tile in split.res] != [head.results[0].type for head in heads]:
            return
        location = fused_location(each.location for each in old)
        for each in (*new, split):
            each.location = location
        rewriter.insert([*new, split], InsertPoint.before(op))
        for tile, head in zip(split.res, heads, strict=True):
            tile.name_hint = head.results[0].name_hint
            rewriter.replace(head, [], [tile])

    def _beside(self, op: MatmulOp) -> list[MatmulOp]:
        """The matmuls of a block that can be combined with the first of them, that one included; in program order."""
        rows = self._rows(op)
        users = (use.operation for use in op.x.uses) if rows is not None else ()
        others = {
            user
            for user in users
            if isinstance(user, MatmulOp)
            and user.parent is op.parent
            and user.x is op.x
            and user.out_dtype == op.out_dtype
            and self._rows(user) == rows
        }
        found: list[MatmulOp] = []
        inner: Operation | None = op
        while inner is not None and len(found) < len(others):
            if inner in others and isinstance(inner, MatmulOp):
                found.append(inner)
            inner = inner.next_op
        return found if len(found) == len(others) else []

    def _rows(self, op: MatmulOp) -> int | None:
        """The rows of the weights, if they may be combined with others of as many."""
        weights = _weights(op)
        if weights is None or (self._most_columns is not None and weights.shape[1] > self._most_columns):
            return None
        return weights.shape[0]


def _array(value: SSAValue) -> Array | None:
    return value.owner.array if isinstance(value.owner, ConstantOp) else None


def _weights(op: MatmulOp) -> Array | None:
    """The constant on the right, if the matmul may be part of another."""
    info, weights = op.x.type, _array(op.y)
    ranked = isinstance(info, TensorType) and info.rank is not None and info.rank > 0 and info.dtype is not None
    return weights if ranked and weights is not None and weights.ndim == 2 and is_never_written(op.x) else None


def _next(heads: Sequence[Operator], weights: Sequence[Array], new: list[Operation]) -> list[Operator] | None:
    """What follows each of the matmuls if it can be done on all at once; adds that to `new`."""
    users = [next(iter(head.results[0].uses)).operation for head in heads if head.results[0].has_one_use()]
    if len(users) < len(heads) or len(set(users)) < len(users):
        return None
    adds = [user for user in users if isinstance(user, AddOp)]
    if len(adds) == len(users):
        values = [_other(add, head.results[0]) for add, head in zip(adds, heads, strict=True)]
        biases = [bias for value in values if (bias := _array(value)) is not None]
        same = len(biases) == len(values) and all(
            b.shape == (w.shape[1],) for b, w in zip(biases, weights, strict=True)
        )
        if same and all(add.result.type == head.results[0].type for add, head in zip(adds, heads, strict=True)):
            bias = _joined(values, biases, 0)
            new += [bias, AddOp(new[-1], bias)]
            return list(adds)
    elementwise = [user for user in users if isinstance(user, UnaryOp)]
    if len(elementwise) == len(users) and len({type(each) for each in elementwise}) == 1:
        new.append(with_operands(elementwise[0], [new[-1].results[0]]))
        return list(elementwise)
    return None


def _other(add: AddOp, value: SSAValue) -> SSAValue:
    return add.y if add.x is value else add.x


def _joined(values: Sequence[SSAValue], arrays: Sequence[Array], axis: int) -> ConstantOp:
    made = ConstantOp(tensor_attr(np.concatenate(arrays, axis)))
    made.result.name_hint = values[0].name_hint
    return made
