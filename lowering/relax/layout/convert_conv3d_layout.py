"""`convert-conv3d-layout`: 3-D convolutions compute on channel-blocked data."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.passes import Pass, pass_target
from lowering.relax.layout.blocking import Blocking, Conversions, dims_of
from lowering.relax.layout.layout_plan import LONG_SUM
from lowering.relax.shapes.kept_checks import apply_graph_patterns
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.convolution import Conv3dOp
from relax_dialect.ops.rearranging import LayoutTransformOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.target import Target

DATA, WEIGHTS = "NCDHW", "OIDHW"


@dataclass(frozen=True)
class ConvertConv3dLayoutPass(Pass):
    """Converts 3-D convolutions to a channel-blocked layout such as `NCDHW16c`, whose block is one vector of `f32`.

    Before:

    ```mlir
    %y = relax.nn.conv3d %x, %w padding = [1, 1, 1, 1, 1, 1]    // %x : [n, 32, d, h, w], %w : [64, 32, 3, 3, 3]
    ```

    After:

    ```mlir
    %v = ...                                                    // [4, 2, 3, 3, 3, 16, 16], the elements of %w
    %0 = relax.layout_transform %x source = "NCDHW" target = "NCDHW16c"
    %1 = relax.nn.conv3d %0, %v padding = [1, 1, 1, 1, 1, 1] data_layout = "NCDHW16c" kernel_layout = "OIDHW16i16o"
    %y = relax.layout_transform %1 source = "NCDHW16c" target = "NCDHW"
    ```

    Without blocks the windows of each position are gathered, which takes as long as the products of some ten filters.
    Changed are convolutions of `f32` of one group in the default layouts, with whole blocks of channels and filters,
    and so many products for each result that the changes of layout are profitable. Values are the same, but for
    the order of sums. Idempotent.
    """

    name = "convert-conv3d-layout"
    requires = ("relax.nn.conv3d",)

    block: int = 0
    """The channels of a block; 0 for the elements of a vector of the target."""

    target: str = ""
    """The machine; this one if it is not named."""

    def __post_init__(self) -> None:
        """`ValueError` for a block of fewer channels than none."""
        if self.block < 0:
            raise ValueError(f"block expected a number of channels, or 0, got {self.block}")

    def for_target(self, target: Target) -> ConvertConv3dLayoutPass:
        return ConvertConv3dLayoutPass(block=target.lanes(32))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, Conv3dOp) for inner in op.walk()):
            blocking = Blocking(self.block or pass_target(self.target).lanes(32))
            apply_graph_patterns(op, [BlockConv3d(blocking, Conversions(blocking))])


@dataclass(frozen=True)
class BlockConv3d(RewritePattern):
    """A 3-D convolution computes on blocks: `conv3d(x, w)  ->  layout_transform(conv3d(layout_transform(x), w'))`."""

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
