"""`rewrite-normalization`: decomposed normalisation becomes the operator."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import RewriteMatch, number_of
from relax_dialect.ops.activation import SoftmaxOp
from relax_dialect.ops.normalization import LayerNormOp, RMSNormOp
from relax_dialect.ops.reduction import ReductionOp
from relax_dialect.patterns import Match, Pattern, is_const, is_op, wildcard
from relax_dialect.struct_info.types import TensorType


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
        if axes is None or number is None or not _fit(found[self.x], weights, axes):
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
        if axes is None or number is None or not _fit(found[self.x], [found[self.weight]], axes):
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


def _fit(x: SSAValue, weights: Sequence[SSAValue], axes: Sequence[int]) -> bool:
    """Whether the weights have the shape of the axes, the last ones, and all is of a dtype that is not widened."""
    info = x.type
    if not isinstance(info, TensorType) or info.dims is None or not isinstance(info.dtype, Float32Type | Float64Type):
        return False
    if list(axes) != list(range(len(info.dims) - len(axes), len(info.dims))):
        return False
    wanted = TensorType(info.dims[-len(axes) :], info.dtype)
    return None not in info.dims[-len(axes) :] and all(weight.type == wanted for weight in weights)
