"""`rewrite-normalization`: decomposed normalisation becomes the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowering.passes import Pass
from relax_dialect.ops.activation import SoftmaxOp
from relax_dialect.ops.normalization import LayerNormOp, RMSNormOp
from relax_dialect.ops.reduction import MeanOp, ReductionOp, SumOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.patterns import Match, Pattern, is_const, is_op, rewrite, wildcard
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
        """Layer normalisation first: what is left of it would look like the other."""
        means, sums = (any(isinstance(inner, kind) for inner in op.walk()) for kind in (MeanOp, SumOp))
        for make in (*((_layer_norm, _rms_norm) if means else ()), *((_softmax,) if sums else ())):
            pattern, replace = make()
            rewrite(op, pattern, replace)


Rule = tuple[Pattern, Callable[[Match], Sequence[Operation] | None]]


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


def _layer_norm() -> Rule:
    x, gamma, beta, epsilon = wildcard(), wildcard(), wildcard(), is_const()
    mean = is_op("relax.mean")(x)
    distance = x - mean
    variance = is_op("relax.mean")(_square(distance))
    pattern = _sum(_product(_over_root(distance, _sum(variance, epsilon)), gamma), beta)

    def replace(found: Match) -> Sequence[Operation] | None:
        axes, number = _axes(found[mean], found[variance]), _number(found[epsilon])
        weights = (found[gamma], found[beta])
        if axes is None or number is None or not _fit(found[x], weights, axes):
            return None
        return [LayerNormOp(found[x], *weights, axes, number)]

    return pattern, replace


def _rms_norm() -> Rule:
    x, weight, epsilon = wildcard(), wildcard(), is_const()
    mean = is_op("relax.mean")(_square(x))
    pattern = _product(_over_root(x, _sum(mean, epsilon)), weight)

    def replace(found: Match) -> Sequence[Operation] | None:
        axes, number = _axes(found[mean]), _number(found[epsilon])
        if axes is None or number is None or not _fit(found[x], [found[weight]], axes):
            return None
        return [RMSNormOp(found[x], found[weight], axes, number)]

    return pattern, replace


def _softmax() -> Rule:
    x = wildcard()
    greatest = is_op("relax.max")(x)
    grown = is_op("relax.exp")(x - greatest) | is_op("relax.exp")(x)
    total = is_op("relax.sum")(grown)

    def replace(found: Match) -> Sequence[Operation] | None:
        reductions = [found[total], *([found[greatest]] if greatest in found else [])]
        axes, info = _axes(*reductions), found[x].type
        if axes is None or len(axes) != 1 or not isinstance(info, TensorType):
            return None
        return [SoftmaxOp(found[x], axes[0])] if isinstance(info.dtype, Float32Type | Float64Type) else None

    return _over(grown, total), replace


def _over(x: Pattern, total: Pattern) -> Pattern:
    """`x / total`, or the product with the reciprocal."""
    return x / total | _product(x, is_op("relax.reciprocal")(total))


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


def _number(value: SSAValue) -> float | None:
    array = value.owner.array if isinstance(value.owner, ConstantOp) else None
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _fit(x: SSAValue, weights: Sequence[SSAValue], axes: Sequence[int]) -> bool:
    """Whether the weights have the shape of the axes, the last ones, and all is of a dtype that is not widened."""
    info = x.type
    if not isinstance(info, TensorType) or info.dims is None or not isinstance(info.dtype, Float32Type | Float64Type):
        return False
    if list(axes) != list(range(len(info.dims) - len(axes), len(info.dims))):
        return False
    wanted = TensorType(info.dims[-len(axes) :], info.dtype)
    return None not in info.dims[-len(axes) :] and all(weight.type == wanted for weight in weights)
