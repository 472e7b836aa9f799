"""`fold-batch-norm`: batch normalisation with known statistics is folded into the preceding weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.locations import fused_location
from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import array_of
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.binary import AddOp, MultiplyOp
from relax_dialect.ops.convolution import ForwardConvolutionOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.normalization import BatchNormOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.weights import Elements, Weight, WeightAttr, computed, tensor_attr

Array = NDArray[Any]


class FoldBatchNormPass(Pass):
    """Folds batch normalisation with constant parameters into a scale and a shift per channel.

    Before:

    ```mlir
    %0 = relax.nn.conv2d %x, %w                       // %w, %gamma, %beta, %mean, %variance are constants
    %1 = relax.nn.batch_norm %0, %gamma, %beta, %mean, %variance
    ```

    After:

    ```mlir
    %0 = relax.nn.conv2d %x, %w_scaled
    %1 = relax.add %0, %shift
    ```

    The scale goes into the weights of a convolution or a product whose result nothing else uses, also past the addition
    of a constant bias; elsewhere it is multiplied. Other constant scales and shifts by channel after a convolution,
    of which exporters make an operator each, go the same way. Results may differ in their last bits. Parameters that
    are no constants, or not in this process, stay as they are. Idempotent.
    """

    name = "fold-batch-norm"
    requires = (
        "relax.nn.batch_norm",
        "relax.matmul",
        "relax.nn.conv1d",
        "relax.nn.conv2d",
        "relax.nn.conv3d",
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ExpandBatchNorm(), FoldScale()])


class ExpandBatchNorm(RewritePattern):
    """Normalisation with known statistics is a scale and a shift: `batch_norm(x, ...)  ->  x * scale + shift`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: BatchNormOp, rewriter: PatternRewriter) -> None:
        affine = _affine(op)
        if affine is None:
            return
        new: list[Operation] = []
        affine = _past_bias(affine)
        product = _scaled(affine, new)
        if product is None:
            scale = affine.column(affine.scale)
            product = MultiplyOp(affine.value, scale)
            new += [scale, product]
        shift = affine.column(affine.shift)
        _replace(op, affine, [*new, shift, AddOp(product, shift)], rewriter)


class FoldScale(RewritePattern):
    """A constant by channel goes into weights and bias: `(conv(x, w) + b) * c  ->  conv(x, w * c) + b * c`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MultiplyOp | AddOp, rewriter: PatternRewriter) -> None:
        for value, other in ((op.x, op.y), (op.y, op.x)):
            affine = _by_channel(op, value, other)
            past = None if affine is None else _past_bias(affine)
            if past is None or value.type != op.result.type:
                continue
            new: list[Operation] = []
            product: Operation | SSAValue | None = past.value
            if isinstance(op, MultiplyOp):
                product = _scaled(past, new)
            elif past is affine:
                continue  # an addition without another one before it
            if product is None:
                continue
            if past.shift.any() or not new:
                shift = past.column(past.shift)
                new += [shift, AddOp(product, shift)]
            _replace(op, past, new, rewriter)
            return


@dataclass(frozen=True)
class _Affine:
    """`value * scale + shift`, by channel."""

    value: SSAValue
    scale: Array
    shift: Array
    axis: int
    rank: int

    def column(self, values: Array) -> ConstantOp:
        """Values by channel, in a shape that broadcasts along the other dimensions."""
        after = self.rank - 1 - self.axis
        return ConstantOp(tensor_attr(np.ascontiguousarray(values.reshape(-1, *(1,) * after))))


def _by_channel(op: MultiplyOp | AddOp, value: SSAValue, other: SSAValue) -> _Affine | None:
    """What an op with a constant is, if the constant is by channel of what a convolution made."""
    made, constant, info = value.owner, array_of(other), value.type
    if isinstance(made, AddOp):
        sources = (operand.owner for operand in made.operands)
        made = next((source for source in sources if isinstance(source, ForwardConvolutionOp)), made)
    if constant is None or not isinstance(made, ForwardConvolutionOp) or not isinstance(info, TensorType):
        return None
    axis, rank = made.layouts[2].letters.index("C"), made.RANK + 2
    shape = (1,) * (rank - constant.ndim) + constant.shape
    count = None if info.known_dims is None else info.known_dims[axis].constant_value
    if (
        len(shape) != rank
        or constant.dtype.kind != "f"
        or any(size != 1 for at, size in enumerate(shape) if at != axis)
    ):
        return None
    if shape[axis] != count:
        return None
    column = constant.reshape(-1)
    ones, zeros = np.ones_like(column), np.zeros_like(column)
    pair = (column, zeros) if isinstance(op, MultiplyOp) else (ones, column)
    return _Affine(value, *pair, axis, rank)


def _replace(
    op: BatchNormOp | MultiplyOp | AddOp, affine: _Affine, new: list[Operation], rewriter: PatternRewriter
) -> None:
    """Puts new ops, of which the last one has the value, in place of an op."""
    sources = [op, *(owner for value in (op.operands[0], affine.value) if isinstance(owner := value.owner, Operation))]
    for made in new:
        made.location = fused_location(source.location for source in reversed(dict.fromkeys(sources)))
    rewriter.insert(new, InsertPoint.before(op))
    rewriter.replace(op, [], new[-1].results)  # of the new values, only the result has its name


def _affine(op: BatchNormOp) -> _Affine | None:
    """What the normalisation is, if its parameters are known."""
    info = op.x.type
    gamma, beta, mean, variance = (array_of(value) for value in (op.gamma, op.beta, op.mean, op.variance))
    if not isinstance(info, TensorType) or info.known_dims is None or mean is None or variance is None:
        return None
    axis = op.axis.value.data % len(info.known_dims)
    if info.known_dims[axis].constant_value != mean.size:
        return None  # what a normalisation refuses would be broadcast
    if (gamma is None and op.no_scale is None) or (beta is None and op.no_center is None):
        return None
    scale = 1 / np.sqrt(variance.astype(np.float64) + op.epsilon.value.data)
    scale = scale if gamma is None or op.no_scale is not None else scale * gamma.astype(np.float64)
    shift = -mean.astype(np.float64) * scale
    shift = shift if beta is None or op.no_center is not None else shift + beta.astype(np.float64)
    dtype = mean.dtype
    return _Affine(op.x, scale.astype(dtype), shift.astype(dtype), axis, len(info.known_dims))


def _past_bias(affine: _Affine) -> _Affine:
    """The same before the addition of a constant by channel."""
    add = affine.value.owner
    if not isinstance(add, AddOp) or not add.result.has_one_use():
        return affine
    for value, other in ((add.x, add.y), (add.y, add.x)):
        bias = array_of(other)
        if (
            bias is None
            or not is_never_written(value)
            or value.type != add.result.type
            or not isinstance(value.owner, ForwardConvolutionOp | MatmulOp)
        ):
            continue
        shape = (1,) * (affine.rank - bias.ndim) + bias.shape
        if all(size == 1 for axis, size in enumerate(shape) if axis != affine.axis):
            return replace(affine, value=value, shift=affine.shift + bias.reshape(-1) * affine.scale)
    return affine


def _scaled(affine: _Affine, new: list[Operation]) -> Operation | None:
    """The op that makes the value, with scaled weights, if it has weights that are constants."""
    op = affine.value.owner
    if not isinstance(op, ForwardConvolutionOp | MatmulOp) or not affine.value.has_one_use():
        return None
    if not all(map(is_never_written, op.operands)):
        return None  # it is computed later than before
    made = op.operands[1].owner
    weights = made.sources if isinstance(made, ConstantOp) else None
    axis = None if weights is None else _output_axis(op, affine, weights)
    if weights is None or axis is None or weights.shape[axis] != affine.scale.size:
        return None
    if weights.dtype != affine.scale.dtype:
        return None
    shape = [affine.scale.size if at == axis else 1 for at in range(weights.ndim)]
    # Scaled weights. A name of theirs is that of the weights with a digest of the scale, which has
    # fewer elements.
    value = op.operands[1]
    scale = affine.scale.reshape(shape)
    weight = value.owner.value if isinstance(value.owner, ConstantOp) else None
    name = f"{weight.weight_name}.{Weight.of_content(scale).name}" if isinstance(weight, WeightAttr) else None
    constant = ConstantOp(
        tensor_attr(computed(lambda array: array * scale, weights, weights.shape, weights.dtype), name)
    )
    constant.result.name_hint = op.operands[1].name_hint
    product = op.clone({op.operands[1]: constant.result})
    new += [constant, product]
    return product


def _output_axis(op: ForwardConvolutionOp | MatmulOp, affine: _Affine, weights: Elements) -> int | None:
    """Which dimension of the weights is that of the channels of the result, if it is one."""
    if isinstance(op, MatmulOp):
        return weights.ndim - 1 if weights.ndim == 2 and affine.axis == affine.rank - 1 else None
    _, kernel, out = op.layouts
    return kernel.letters.index("O") if out.letters.index("C") == affine.axis else None
