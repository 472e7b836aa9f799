"""3-D convolutions on channel-blocked data: a pattern of `convert-layout`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.relax.layout.blocking import Blocking, Conversions, dims_of
from lowering.relax.layout.layout_plan import LONG_SUM
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.convolution import Conv3dOp
from relax_dialect.ops.rearranging import LayoutTransformOp
from relax_dialect.struct_info.types import TensorType

DATA, WEIGHTS = "NCDHW", "OIDHW"


@dataclass(frozen=True)
class BlockConv3d(RewritePattern):
    """A 3-D convolution computes on blocks: `conv3d(x, w)  ->  layout_transform(conv3d(layout_transform(x), w'))`.

    Without blocks the windows of each position are gathered, which takes as long as the products of some ten filters.
    Changed are convolutions of `f32` of one group in the default layouts, with whole blocks of channels and filters,
    and so many products for each result that the changes of layout are profitable.
    """

    blocking: Blocking
    conversions: Conversions
    """The weights in their new layout, each made once."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv3dOp, rewriter: PatternRewriter) -> None:
        if not _is_profitable(op, self.blocking):
            return
        size, windows = self.blocking.size, op.windows
        blocks, kernel = f"{DATA}{size}c", f"{WEIGHTS}{size}i{size}o"
        data = LayoutTransformOp(op.x, DATA, blocks)
        made = Conv3dOp(
            data,
            self.conversions.transformed(op.w, WEIGHTS, kernel),
            strides=windows.strides,
            padding=windows.padding,
            dilation=windows.dilation,
            data_layout=blocks,
            kernel_layout=kernel,
        )
        result = LayoutTransformOp(made, blocks, DATA)
        if result.result.type == op.result.type:
            rewriter.replace(op, [data, made, result])


def _is_profitable(op: Conv3dOp, blocking: Blocking) -> bool:
    data, weights = dims_of(op.x), dims_of(op.w)
    types = [*op.operand_types, *op.result_types]
    if data is None or weights is None or dims_of(op.result) is None:
        return False
    if not all(isinstance(each, TensorType) and isinstance(each.dtype, Float32Type) for each in types):
        return False
    filters, channels, *window = (dim.constant_value or 0 for dim in weights)
    positions = window[0] * window[1] * window[2]
    return (
        [layout.text for layout in op.layouts] == [DATA, WEIGHTS, DATA]
        and filters > 0
        and blocking.is_whole(filters)
        and blocking.is_whole(channels)
        and positions > 1
        and channels * positions >= LONG_SUM
        and op.groups.value.data == 1
        and data[1] == weights[1]
    )
