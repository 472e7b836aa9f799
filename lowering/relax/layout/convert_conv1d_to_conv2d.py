"""`convert-conv1d-to-conv2d`: 1-D convolutions become 2-D convolutions of images with one row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.layout.blocking import array_of, dims_of
from lowering.relax.layout.convert_layout import LONG_SUM
from lowering.relax.shapes.insert_guards import apply_graph_patterns
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.convolution import Conv1dOp, Conv2dOp
from relax_dialect.ops.manipulation import ExpandDimsOp, SqueezeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.weights import tensor_attr

CHANNELS = 16
"""Of data and of filters there are multiples of so many, so that blocks of any machine are full."""


@dataclass(frozen=True)
class ConvertConv1dToConv2dPass(Pass):
    """Rewrites 1-D convolutions as 2-D ones, which `convert-layout` can block.

    Before:

    ```mlir
    %y = relax.nn.conv1d %x, %w padding = [1, 1]            // %x : [n, 64, w], %w : [32, 64, 3]
    ```

    After:

    ```mlir
    %v = ...                                                // [32, 64, 1, 3], the elements of %w
    %0 = relax.expand_dims %x axes = [2]
    %2 = relax.nn.conv2d %0, %v padding = [0, 1, 0, 1]      // [n, 32, 1, w]
    %y = relax.squeeze %2 axes = [2]
    ```

    Changed are convolutions of `f32` of one group in the default layouts, with so many channels and products for each
    result that blocks are profitable; without a stride only if the weights are known. Values are the same, but for
    the order of sums. Idempotent.
    """

    name = "convert-conv1d-to-conv2d"
    requires = ("relax.nn.conv1d",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ConvertConv1d()])


class ConvertConv1d(RewritePattern):
    """A 1-D convolution is one of images of one row: `conv1d(x, w)  ->  squeeze(conv2d(expand_dims(x), w'))`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv1dOp, rewriter: PatternRewriter) -> None:
        if not _is_profitable(op):
            return
        windows, weights = op.windows, array_of(op.w)
        x = ExpandDimsOp(op.x, [2])
        w = ExpandDimsOp(op.w, [2]) if weights is None else ConstantOp(tensor_attr(np.expand_dims(weights, 2)))
        low, high = windows.padding
        made = Conv2dOp(x, w, strides=[1, *windows.strides], padding=[0, low, 0, high], dilation=[1, *windows.dilation])
        result = SqueezeOp(made, [2])
        if result.result.type == op.result.type:
            rewriter.replace(op, [x, w, made, result])


def _is_profitable(op: Conv1dOp) -> bool:
    data, weights = dims_of(op.x), dims_of(op.w)
    types = [*op.operand_types, *op.result_types]
    if data is None or weights is None or dims_of(op.result) is None:
        return False
    if not all(isinstance(each, TensorType) and isinstance(each.dtype, Float32Type) for each in types):
        return False
    if [layout.text for layout in op.layouts] != ["NCW", "OIW", "NCW"]:
        return False
    filters, channels, size = (dim.constant_value or 0 for dim in weights)
    whole = filters > 0 and filters % CHANNELS == channels % CHANNELS == 0
    skips = max(op.windows.strides) > 1  # else windows are rows as they lie
    return (
        whole
        and (skips or array_of(op.w) is not None)
        and size > 1
        and channels * size >= LONG_SUM
        and op.groups.value.data == 1
        and data[1] == weights[1]
    )
