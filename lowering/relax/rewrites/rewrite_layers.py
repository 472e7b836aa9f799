"""Decomposed layers become operators.

`rewrite-attention`: operands of attention are seen through what exporters put around them: permutations, scales,
repeated heads. `rewrite-normalization`: layer and RMS normalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import RewriteMatch, number_of
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.activation import SoftmaxOp
from relax_dialect.ops.binary import DivideOp, MultiplyOp
from relax_dialect.ops.joining import RepeatOp
from relax_dialect.ops.linear_algebra import LAYOUT, AttentionBiasOp, AttentionOp
from relax_dialect.ops.manipulation import BroadcastToOp, ExpandDimsOp, PermuteDimsOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.normalization import LayerNormOp, RMSNormOp
from relax_dialect.ops.reduction import ReductionOp
from relax_dialect.ops.unary import LogicalNotOp
from relax_dialect.patterns import Match, Pattern, is_const, is_op, wildcard
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim


@dataclass(frozen=True)
class Operand:
    """A value in the order of `letters`, that is multiplied by `scale` where it is read."""

    value: SSAValue
    letters: str
    """What each dimension is: batch, sequence, head, feature; without the head, there is one."""
    scale: float = 1.0

    def dim(self, letter: str) -> Dim | None:
        """The dimension of a letter, if it is known."""
        dims = dims_of(self.value)
        return dims[self.letters.index(letter)] if len(dims) == len(self.letters) else None


def queries(value: SSAValue, letters: str) -> Operand:
    """Queries before orders were changed and numbers multiplied."""
    return _look_through(Operand(value, letters), _permuted, _scaled)


def keys(value: SSAValue, letters: str) -> Operand:
    """Keys before orders were changed, numbers multiplied and heads repeated."""
    return _look_through(Operand(value, letters), _permuted, _scaled, _repeated)


def values(value: SSAValue, letters: str) -> Operand:
    """Values before orders were changed and heads repeated."""
    return _look_through(Operand(value, letters), _permuted, _repeated)


def in_any_order(value: SSAValue, letters: str) -> Operand:
    """A value before its order was changed."""
    return _look_through(Operand(value, letters), _permuted)


def _look_through(operand: Operand, *steps: Callable[[Operand], Operand | None]) -> Operand:
    while len(dims_of(operand.value)) == len(operand.letters) and is_never_written(operand.value):
        found = next((found for step in steps if (found := step(operand)) is not None), None)
        if found is None or not is_never_written(found.value):
            break
        operand = found
    return operand


def dims_of(value: SSAValue) -> tuple[Dim | None, ...]:
    """The dimensions of a tensor; none where the rank is not known."""
    info = value.type
    return info.dims or () if isinstance(info, TensorType) else ()


def permutation(op: PermuteDimsOp) -> tuple[int, ...]:
    """The dimension of the operand for each of the result."""
    rank = len(dims_of(op.x))
    axes = reversed(range(rank)) if op.axes is None else op.axes.get_values()
    return tuple(axis % rank for axis in axes)


def _permuted(operand: Operand) -> Operand | None:
    op = operand.value.owner
    if not isinstance(op, PermuteDimsOp) or not dims_of(op.x):
        return None
    axes = permutation(op)
    letters = "".join(operand.letters[axes.index(axis)] for axis in range(len(axes)))
    return replace(operand, value=op.x, letters=letters)


def _scaled(operand: Operand) -> Operand | None:
    op = operand.value.owner
    if isinstance(op, MultiplyOp):
        for x, y in ((op.x, op.y), (op.y, op.x)):
            factor = number_of(y)
            if factor is not None and dims_of(x) == dims_of(operand.value):
                return replace(operand, value=x, scale=operand.scale * factor)
    if isinstance(op, DivideOp):
        divisor = number_of(op.y)
        if divisor and dims_of(op.x) == dims_of(operand.value):
            return replace(operand, value=op.x, scale=operand.scale / divisor)
    return None


def _repeated(operand: Operand) -> Operand | None:
    """The heads of which each was repeated for consecutive heads of queries."""
    if "H" not in operand.letters:
        return None
    position, op = operand.letters.index("H"), operand.value.owner
    if isinstance(op, RepeatOp):
        same = op.axis is not None and op.axis.value.data % len(operand.letters) == position
        return replace(operand, value=op.x) if same else None
    wide = op.x.owner if isinstance(op, ReshapeOp) else None
    if not isinstance(wide, BroadcastToOp) or not is_never_written(wide.x):
        return None
    narrow = wide.x.owner
    source = narrow.x if isinstance(narrow, ReshapeOp | ExpandDimsOp) else None
    if source is None or not _is_repetition(source, wide, dims_of(operand.value), position):
        return None
    return replace(operand, value=source)


def _is_repetition(source: SSAValue, wide: BroadcastToOp, result: Sequence[Dim | None], index: int) -> bool:
    """Whether `source` has got a dimension after `position`, which was broadcast and then became one with that
    before.
    """
    old, one, many = dims_of(source), dims_of(wide.x), dims_of(wide.result)
    if None in (*old, *one, *many, *result) or len(old) != len(result) or len(many) != len(result) + 1:
        return False
    count = one[index + 1]
    rest = [(*dims[: index + 1], *dims[index + 2 :]) for dims in (one, many)]
    joined = (*result[:index], *result[index + 1 :])
    same = old == rest[0] == rest[1] and (*old[:index], *old[index + 1 :]) == joined
    return same and count is not None and count.constant_value == 1


class RewriteAttentionPass(Pass):
    """Recognises attention in the operators into which exporters decompose it.

    Before:

    ```mlir
    %0 = relax.permute_dims %q axes = [0, 2, 1, 3]
    %1 = relax.permute_dims %k axes = [0, 2, 3, 1]
    %2 = relax.permute_dims %v axes = [0, 2, 1, 3]
    %3 = relax.matmul %0, %1
    %4 = relax.divide %3, %eight
    %5 = relax.add %4, %mask
    %6 = relax.nn.softmax %5 axis = -1
    %7 = relax.matmul %6, %2
    %y = relax.permute_dims %7 axes = [0, 2, 1, 3]
    ```

    After:

    ```mlir
    %y = relax.nn.attention_bias %q, %k, %v, %mask scale = 0.125
    ```

    Operands may have rank 4, 3 or 2. Constant scales may stand before or after the first product, as factors or
    divisors; a mask may be added or choose, with a constant, by `relax.where`; heads of keys and values may have been
    repeated. Changed orders of dimensions become layouts, also those around the operator where it is used. What is
    written out is rewritten in `f32` and `f64`, and in 16 bits if the softmax is in `f32`: scores are not rounded then.
    Scales are multiplied with each other first, and the quotient of the softmax is taken last, so that results may
    differ in their last bits. Nothing is rewritten if another op uses a value on the way, or if sizes might be
    broadcast. Idempotent.
    """

    name = "rewrite-attention"
    requires = ("relax.nn.softmax", "relax.nn.attention", "relax.nn.attention_bias")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """In reverse order: the permutation of a result belongs to the attention before it."""
        apply_graph_patterns(op, [RecognizeAttention(), FoldPermutations()], reverse=True)


class FoldPermutations(RewritePattern):
    """Permutations around attention become layouts: `attention(permute_dims(q, p), k, v)  ->  attention(q, k, v)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AttentionOp | AttentionBiasOp, rewriter: PatternRewriter) -> None:
        pairs = zip((op.q, op.k, op.v), op.layouts, strict=False)
        operands = [in_any_order(value, layout.text) for value, layout in pairs]
        # The op that changes the order of a result that nobody else uses.
        users = [use.operation for use in op.result.uses]
        out, last = op.layouts[3].text, (users[0] if len(users) == 1 and isinstance(users[0], PermuteDimsOp) else None)
        whole = out if last is None else "".join(out[axis] for axis in permutation(last))
        if last is None and [operand.value for operand in operands] == [op.q, op.k, op.v]:
            return
        q, k, v, result = (_layout(letters) for letters in (*(operand.letters for operand in operands), whole))
        layouts = {"q_layout": q, "k_layout": k, "v_layout": v, "out_layout": result}
        kept = {name: value for name, value in op.properties.items() if name not in layouts}
        named = {name: StringAttr(text) for name, text in layouts.items() if text is not None}
        values = [*(operand.value for operand in operands), *op.operands[3:]]
        old = op if last is None else last
        new = type(op).create(operands=values, result_types=old.result_types, properties={**kept, **named})
        new.location = op.location
        new.results[0].name_hint = old.results[0].name_hint
        rewriter.insert(new, InsertPoint.before(op))
        rewriter.replace(old, [], new.results)
        if last is not None:
            rewriter.erase(op)


_LETTERS = {2: "SD", 3: "BSD", 4: "BHSD"}
"""The dimensions of what is multiplied, by rank."""


class RecognizeAttention(RewriteMatch):
    """`softmax(q @ k * scale + bias) @ v  ->  attention(q, k, v, bias)`, with what exporters write around it."""

    def __init__(self) -> None:
        self.q, self.k, self.v, self.bias, self.seen, self.hidden = (wildcard() for _ in range(6))
        self.fill, self.factor, self.divisor = (is_const() for _ in range(3))
        self.products = is_op("relax.matmul")(self.q, self.k)
        scaled = is_op("relax.multiply")(self.products, self.factor).in_any_order() | self.products / self.divisor
        scores = scaled | self.products
        chosen = is_op("relax.where")(self.seen, scores, self.fill)
        refused = is_op("relax.where")(self.hidden, self.fill, scores)
        moved = is_op("relax.add")(scores, self.bias).in_any_order()
        masked = moved | chosen | refused | scores
        self.softmax = is_op("relax.nn.softmax")(is_op("relax.astype")(masked) | masked)
        self.narrowed = is_op("relax.astype")(self.softmax)
        shares = self.narrowed | self.softmax
        result = (is_op("relax.nn.dropout")(shares) | shares) @ self.v
        self.ordered = is_op("relax.permute_dims")(result)
        super().__init__(self.ordered | result)

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        rank, scale = len(dims_of(found[self.products])), self._scale(found)
        bias = next((found[each] for each in (self.bias, self.seen, self.hidden) if each in found), None)
        fill = number_of(found[self.fill]) if self.fill in found else None
        if rank not in _LETTERS or scale is None or (fill is None) is not (self.fill not in found):
            return None
        if not self._is_plain(found) or not _keeps_shape(bias, found[self.products], found[self.softmax]):
            return None
        rows = _LETTERS[rank]
        columns = f"{rows[:-2]}DS"
        operands = queries(found[self.q], rows), keys(found[self.k], columns), values(found[self.v], rows)
        if not _sizes_agree(*operands):
            return None
        made = _Made()
        if bias is not None:
            bias = made.bias(bias, rank, negated=self.hidden in found)
        out = "".join(rows[axis] for axis in self._order(found, rank))
        return made.attention(operands, bias, out, scale, fill)

    def _is_plain(self, found: Match) -> bool:
        """Whether the softmax is along the last dimension, all dimensions are known, and it is in `f32` or `f64`: that
        of the products, or `f32` where these have 16 bits and its result has them again.
        """
        softmax = found[self.softmax]
        op, info, scores = softmax.owner, softmax.type, found[self.products].type
        if not isinstance(op, SoftmaxOp) or not isinstance(info, TensorType) or not isinstance(scores, TensorType):
            return False
        dims = dims_of(softmax)
        along_last = op.axis.value.data in (-1, len(dims) - 1)
        result = found[self.narrowed if self.narrowed in found else self.softmax].type
        is_wide = isinstance(info.dtype, Float32Type | Float64Type)
        is_half = isinstance(scores.dtype, Float16Type | BFloat16Type) and isinstance(info.dtype, Float32Type)
        same = isinstance(result, TensorType) and result.dtype == scores.dtype
        return along_last and None not in dims and is_wide and same and (is_half or info.dtype == scores.dtype)

    def _scale(self, found: Match) -> float | None:
        if self.factor in found:
            return number_of(found[self.factor])
        divisor = number_of(found[self.divisor]) if self.divisor in found else 1.0
        return 1 / divisor if divisor else None

    def _order(self, found: Match, rank: int) -> Sequence[int]:
        """The order of dimensions in which the result is used."""
        op = found[self.ordered].owner if self.ordered in found else None
        return permutation(op) if isinstance(op, PermuteDimsOp) else range(rank)


class _Made:
    """The new ops."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []

    def bias(self, value: SSAValue, rank: int, *, negated: bool) -> SSAValue:
        """A bias by batch, head, query and key; what is hidden becomes what is seen."""
        if negated:
            value = self._add(LogicalNotOp(value))
        return self._add(ExpandDimsOp(value, [1])) if rank == 3 and len(dims_of(value)) == 3 else value

    def attention(
        self, operands: Sequence[Operand], bias: SSAValue | None, out: str, scale: float, masked_score: float | None
    ) -> list[Operation]:
        """Attention in the layouts of its operands; with one head, where there is none."""
        query, key, value = (self._with_heads(operand) for operand in operands)
        q, k, v, whole = (_layout(each) for each in (*(operand.letters for operand in operands), out))
        scale *= operands[0].scale * operands[1].scale
        if bias is None:
            op = AttentionOp(query, key, value, scale=scale, q_layout=q, k_layout=k, v_layout=v, out_layout=whole)
        else:
            op = AttentionBiasOp(
                query,
                key,
                value,
                bias,
                scale=scale,
                masked_score=masked_score,
                q_layout=q,
                k_layout=k,
                v_layout=v,
                out_layout=whole,
            )
        result = self._add(op)
        if "H" not in out:
            self._add(SqueezeOp(result, [1] if "B" in out else [0, 1]))
        return self.ops

    def _with_heads(self, operand: Operand) -> SSAValue:
        if "H" in operand.letters:
            return operand.value
        return self._add(ExpandDimsOp(operand.value, [1] if "B" in operand.letters else [0, 1]))

    def _add(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        return op.results[0]


def _layout(letters: str) -> str | None:
    """The name of a layout; `None` for the default one. Heads that are not there stand after the batch, which is the
    first.
    """
    with_batch = letters if "B" in letters else f"B{letters}"
    whole = letters if "H" in letters else f"{with_batch[0]}H{with_batch[1:]}"
    return None if whole == LAYOUT else whole


def _sizes_agree(q: Operand, k: Operand, v: Operand) -> bool:
    """Whether sizes are equal where attention wants them to be: `relax.matmul` would broadcast some."""
    equal = {"B": (q, k, v), "S": (k, v), "D": (q, k)} | ({"H": (k, v)} if "H" in q.letters else {})
    for letter, operands in equal.items():
        if letter not in q.letters:
            continue
        dims = {operand.dim(letter) for operand in operands}
        if len(dims) > 1 or None in dims:
            return False
    if "H" not in q.letters or q.dim("H") is k.dim("H"):
        return True
    many, few = (dim.constant_value if dim else None for dim in (q.dim("H"), k.dim("H")))
    return many is not None and few is not None and many > 0 and few > 0 and many % few == 0


def _keeps_shape(bias: SSAValue | None, products: SSAValue, softmax: SSAValue) -> bool:
    """Whether a bias is broadcast to the scores, and not the other way round."""
    target = dims_of(products)
    if dims_of(softmax) != target:
        return False
    dims: Sequence[Dim | None] = () if bias is None else dims_of(bias)
    pairs = zip(reversed(dims), reversed(target), strict=False)
    return len(dims) <= len(target) and all(
        old is new or (old is not None and old.constant_value == 1) for old, new in pairs
    )


class RewriteNormalizationPass(Pass):
    """Recognises layer and RMS normalisation, and softmax, in the operators into which exporters decompose them.

    Before:

    ```mlir
    %m = relax.mean %x axes = [-1] keepdims
    %d = relax.subtract %x, %m
    %q = relax.multiply %d, %d
    %v = relax.mean %q axes = [-1] keepdims
    %e = relax.add %v, %epsilon
    %s = relax.sqrt %e
    %n = relax.divide %d, %s
    %g = relax.multiply %n, %gamma
    %y = relax.add %g, %beta
    ```

    After:

    ```mlir
    %y = relax.nn.layer_norm %x, %gamma, %beta axes = [-1]
    ```

    The square may be a product, a power or `relax.square`; the quotient may be a product with `relax.rsqrt`,
    `relax.reciprocal` or `1 / sqrt`; operands of products and sums may stand in any order. Means have to be of `f32` or
    `f64`, over the same axes, and weights of the shape of these axes. A softmax is `exp(x - max(x))`, or `exp(x)`, over
    its sum along one axis; the operator has no overflow where that of `exp(x)` does. Results may differ in their last
    bits. Nothing is
    rewritten if another op uses a value on the way. Idempotent.
    """

    name = "rewrite-normalization"
    requires = ("relax.mean", "relax.exp")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """In reverse order: without its last two ops a layer normalisation could look like an RMS normalisation."""
        apply_graph_patterns(op, [RecognizeLayerNorm(), RecognizeRMSNorm(), RecognizeSoftmax()], reverse=True)


def _product(x: Pattern, y: Pattern) -> Pattern:
    return is_op("relax.multiply")(x, y).in_any_order()


def _sum(x: Pattern, y: Pattern) -> Pattern:
    return is_op("relax.add")(x, y).in_any_order()


def _square(x: Pattern) -> Pattern:
    return is_op("relax.multiply")(x, x) | is_op("relax.power")(x, is_const(2.0)) | is_op("relax.square")(x)


def _over_root(x: Pattern, variance: Pattern) -> Pattern:
    """`x / sqrt(variance)` in its forms."""
    root = is_op("relax.sqrt")(variance)
    inverse = is_op("relax.rsqrt")(variance) | is_op("relax.reciprocal")(root) | is_const(1.0) / root
    return x / root | _product(x, inverse)


class RecognizeLayerNorm(RewriteMatch):
    """`(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + e) * gamma + beta  ->  layer_norm(x, gamma, beta)`."""

    def __init__(self) -> None:
        self.x, self.gamma, self.beta, self.epsilon = wildcard(), wildcard(), wildcard(), is_const()
        self.mean = is_op("relax.mean")(self.x)
        distance = self.x - self.mean
        self.variance = is_op("relax.mean")(_square(distance))
        normalized = _over_root(distance, _sum(self.variance, self.epsilon))
        super().__init__(_sum(_product(normalized, self.gamma), self.beta))

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        axes, number = _axes(found[self.mean], found[self.variance]), number_of(found[self.epsilon])
        weights = (found[self.gamma], found[self.beta])
        if axes is None or number is None or not _weights_fit(found[self.x], weights, axes):
            return None
        return [LayerNormOp(found[self.x], *weights, axes, number)]


class RecognizeRMSNorm(RewriteMatch):
    """`x / sqrt(mean(x ** 2) + e) * weight  ->  rms_norm(x, weight)`."""

    def __init__(self) -> None:
        self.x, self.weight, self.epsilon = wildcard(), wildcard(), is_const()
        self.mean = is_op("relax.mean")(_square(self.x))
        super().__init__(_product(_over_root(self.x, _sum(self.mean, self.epsilon)), self.weight))

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        axes, number = _axes(found[self.mean]), number_of(found[self.epsilon])
        if axes is None or number is None or not _weights_fit(found[self.x], [found[self.weight]], axes):
            return None
        return [RMSNormOp(found[self.x], found[self.weight], axes, number)]


class RecognizeSoftmax(RewriteMatch):
    """`exp(x - max(x)) / sum(exp(x - max(x)))  ->  softmax(x)`, also without the maximum."""

    def __init__(self) -> None:
        self.x = wildcard()
        self.maximum = is_op("relax.max")(self.x)
        grown = is_op("relax.exp")(self.x - self.maximum) | is_op("relax.exp")(self.x)
        self.total = is_op("relax.sum")(grown)
        super().__init__(grown / self.total | _product(grown, is_op("relax.reciprocal")(self.total)))

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        reductions = [found[self.total], *([found[self.maximum]] if self.maximum in found else [])]
        axes, info = _axes(*reductions), found[self.x].type
        if axes is None or len(axes) != 1 or not isinstance(info, TensorType):
            return None
        return [SoftmaxOp(found[self.x], axes[0])] if isinstance(info.dtype, Float32Type | Float64Type) else None


def _axes(*reductions: SSAValue) -> list[int] | None:
    """The axes over which all the reductions are, with the dimensions kept."""
    found: set[tuple[int, ...]] = set()
    for value in reductions:
        op, info = value.owner, value.type
        if not isinstance(op, ReductionOp) or op.keepdims is None or op.axes is None:
            return None
        if not isinstance(info, TensorType) or info.rank is None:
            return None
        found.add(tuple(sorted(axis % info.rank for axis in op.axes.get_values())))
    return list(found.pop()) if len(found) == 1 else None


def _weights_fit(x: SSAValue, weights: Sequence[SSAValue], axes: Sequence[int]) -> bool:
    """Whether the weights have the shape of the axes, the last ones, and all is of a dtype that is not widened."""
    info = x.type
    if not isinstance(info, TensorType) or info.dims is None or not isinstance(info.dtype, Float32Type | Float64Type):
        return False
    if list(axes) != list(range(len(info.dims) - len(axes), len(info.dims))):
        return False
    wanted = TensorType(info.dims[-len(axes) :], info.dtype)
    return None not in info.dims[-len(axes) :] and all(weight.type == wanted for weight in weights)
