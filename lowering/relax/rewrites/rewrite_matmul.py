"""Passes on matrix products: the order of three, one for several that share an operand, of sums, and of columns
that are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.locations import fused_location
from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import RewriteMatch, array_of, dims_of
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.indexing import TakeOp
from relax_dialect.ops.joining import SplitOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.unary import UnaryOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.patterns import Match, is_op, wildcard
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, product
from tir_dialect.weights import tensor_attr


class AdjustMatmulOrderPass(Pass):
    """Reassociates two matrix products if that provably takes fewer multiplications for all values of the symbols.

    Before:

    ```mlir
    %0 = relax.matmul %a, %b                  // tensor<[512, 8], f32>, tensor<[8, 512], f32>
    %1 = relax.matmul %x, %0                  // tensor<[n, 512], f32>
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %a
    %1 = relax.matmul %0, %b
    ```

    Both orders are looked at: `x (a b)` and `(x a) b`, where `a` and `b` have two dimensions, `x` two or more, and no
    other op uses the product in between. The product of two constants costs nothing, as `fold-constants` computes it.
    Results may differ in their last bits, but not those of integers. Products with an `out_dtype` stay. Idempotent;
    mirrors TVM's `AdjustMatmulOrder`.
    """

    name = "adjust-matmul-order"
    requires = ("relax.matmul",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ReassociateMatmul()])


class ReassociateMatmul(RewritePattern):
    """Three matrices are multiplied in the cheaper order: `x (a b)  ->  (x a) b`, or the other way round."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        for inner in (op.x.owner, op.y.owner):
            if not isinstance(inner, MatmulOp) or not inner.result.has_one_use():
                continue
            if op.out_dtype is not None or inner.out_dtype is not None:
                continue
            left = inner.result is op.x
            chain = _Chain(inner.x, inner.y, op.y) if left else _Chain(op.x, inner.x, inner.y)
            if chain.is_known and chain.is_cheaper(op, left):
                first = MatmulOp(chain.a, chain.b) if left else MatmulOp(chain.x, chain.a)
                second = MatmulOp(chain.x, first) if left else MatmulOp(first, chain.b)
                if second.result.type == op.result.type:
                    first.location = second.location = fused_location((inner.location, op.location))
                    rewriter.replace(op, [first, second])
                return


@dataclass(frozen=True)
class _Chain:
    """The product of three matrices, `x` with any number of leading dimensions."""

    x: SSAValue
    a: SSAValue
    b: SSAValue

    @property
    def is_known(self) -> bool:
        """Whether the sizes are known, and the matrices those that they were at the first product."""
        ranks = [len(_dims(value)) for value in (self.x, self.a, self.b)]
        return ranks[0] >= 2 and ranks[1:] == [2, 2] and all(map(is_never_written, (self.x, self.a, self.b)))

    def costs(self) -> tuple[Dim, Dim]:
        """The multiplications of `(x a) b` and of `x (a b)`."""
        rows = product(_dims(self.x)[:-1])
        (depth, middle), (_, columns) = _dims(self.a), _dims(self.b)
        folded = _is_constant(self.a) and _is_constant(self.b)
        inner = constant(0) if folded else depth * middle * columns
        return rows * depth * middle + rows * middle * columns, inner + rows * depth * columns

    def is_cheaper(self, op: MatmulOp, left: bool) -> bool:
        """Whether the other order than `(x a) b`, if that is what stands on the `left` of an op, takes less work."""
        old, new = self.costs() if left else reversed(self.costs())
        prover = prover_at(op)
        return new is not old and prover.less_equal(new, old) is True and prover.less_equal(old, new) is not True


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return dims_of(value) or ()


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and value.owner.array is not None


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


def _weights(op: MatmulOp) -> Array | None:
    """The constant on the right, if the matmul may be part of another."""
    info, weights = op.x.type, array_of(op.y)
    ranked = isinstance(info, TensorType) and info.rank is not None and info.rank > 0 and info.dtype is not None
    return weights if ranked and weights is not None and weights.ndim == 2 and is_never_written(op.x) else None


def _next(heads: Sequence[Operator], weights: Sequence[Array], new: list[Operation]) -> list[Operator] | None:
    """What follows each of the matmuls if it can be done on all at once; adds that to `new`."""
    users = [next(iter(head.results[0].uses)).operation for head in heads if head.results[0].has_one_use()]
    if len(users) < len(heads) or len(set(users)) < len(users):
        return None
    adds = [user for user in users if isinstance(user, AddOp)]
    if len(adds) == len(users):
        values = [add.y if add.x is head.results[0] else add.x for add, head in zip(adds, heads, strict=True)]
        biases = [bias for value in values if (bias := array_of(value)) is not None]
        same = len(biases) == len(values) and all(
            b.shape == (w.shape[1],) for b, w in zip(biases, weights, strict=True)
        )
        if same and all(add.result.type == head.results[0].type for add, head in zip(adds, heads, strict=True)):
            bias = _joined(values, biases, 0)
            new += [bias, AddOp(new[-1], bias)]
            return list(adds)
    elementwise = [user for user in users if isinstance(user, UnaryOp)]
    if len(elementwise) == len(users) and len({type(each) for each in elementwise}) == 1:
        new.append(elementwise[0].with_operands([new[-1].results[0]]))
        return list(elementwise)
    return None


def _joined(values: Sequence[SSAValue], arrays: Sequence[Array], axis: int) -> ConstantOp:
    made = ConstantOp(tensor_attr(np.concatenate(arrays, axis)))
    made.result.name_hint = values[0].name_hint
    return made


class ExpandMatmulOfSumPass(ModulePass):
    """Distributes a matrix product over a sum of weights.

    Before:

    ```mlir
    %0 = relax.add %w, %delta                 // tensor<[k, n], f32>
    %1 = relax.matmul %x, %0
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %w
    %1 = relax.matmul %x, %delta
    %2 = relax.add %0, %1
    ```

    That is more work, unless one part is itself a product of low rank, as in LoRA: then `adjust-matmul-order` applies
    its factors one by one, and the sum of matrices is never made. So it is not part of `optimize-graph`. Both parts
    have the type of the sum; products with an `out_dtype` stay, and so does a sum that is used elsewhere too. Results
    may differ in their last bits. Idempotent; mirrors TVM's `ExpandMatmulOfSum`.
    """

    name = "expand-matmul-of-sum"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every product of a sum on the right."""
        apply_graph_patterns(op, [DistributeMatmul()], reverse=True)


class DistributeMatmul(RewriteMatch):
    """A product with a sum is the sum of two products: `matmul(x, a + b)  ->  matmul(x, a) + matmul(x, b)`."""

    def __init__(self) -> None:
        self.x, self.left, self.right = wildcard(), wildcard(), wildcard()
        super().__init__(is_op("relax.matmul")(self.x, self.left + self.right).has_attr(out_dtype=None))

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        if found[self.left].type != found[self.right].type:
            return None
        products = [MatmulOp(found[self.x], found[addend]) for addend in (self.left, self.right)]
        return [*products, AddOp(*products)]


class ReorderTakeAfterMatmulPass(ModulePass):
    """Moves a gather of columns from an operand of a matrix product to its result.

    Before:

    ```mlir
    %0 = relax.take %w, %columns axis = 1     // tensor<[k, n], f32>
    %1 = relax.matmul %x, %0                  // tensor<[m, k], f32>
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %w
    %1 = relax.take %0, %columns axis = -1
    ```

    It is profitable if M, the rows of `%x`, is small and many columns are taken, as when one of several adapters is
    chosen by index: copies of weights are larger than copies of results. So it is not part of `optimize-graph`. The
    matrix has two dimensions and the positions one; a product with an `out_dtype` stays. Values are the same but for
    the order of sums. Idempotent; mirrors TVM's `ReorderTakeAfterMatmul`.
    """

    name = "reorder-take-after-matmul"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every product with columns that are taken."""
        apply_graph_patterns(op, [TakeAfterMatmul()], reverse=True)


class TakeAfterMatmul(RewriteMatch):
    """Columns are taken from the product: `matmul(x, take(w, columns, 1))  ->  take(matmul(x, w), columns, -1)`."""

    def __init__(self) -> None:
        self.x, self.weights, self.columns = wildcard(), wildcard(), wildcard()
        self.taken = is_op("relax.take")(self.weights, self.columns)
        super().__init__(is_op("relax.matmul")(self.x, self.taken).has_attr(out_dtype=None))

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        take, weights, columns = found[self.taken].owner, found[self.weights], found[self.columns]
        ranks = [info.rank for value in (weights, columns) if isinstance(info := value.type, TensorType)]
        axis = take.axis if isinstance(take, TakeOp) else None
        if not isinstance(take, TakeOp) or ranks != [2, 1] or axis is None or axis.value.data % 2 != 1:
            return None
        product = MatmulOp(found[self.x], weights)
        return [product, TakeOp(product, columns, -1, take.mode.data)]
