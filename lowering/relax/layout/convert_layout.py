"""`convert-layout`: networks of convolutions compute on channel-blocked data.
3-D convolutions have a pattern of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue, Use
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.locations import inherit_location
from lowering.passes import Pass, pass_target
from lowering.relax.layout.blocked_steps import Known, Role, Step
from lowering.relax.layout.blocking import WEIGHTS, Blocking, Conversions, dims_of, is_one_position
from lowering.relax.layout.layout_plan import LONG_SUM, plan
from lowering.relax.shapes.kept_checks import apply_graph_patterns
from lowering.rewriting import IndexedPattern, apply_patterns, op_rewrite_pattern
from relax_dialect.ops.convolution import Conv2dOp, Conv3dOp
from relax_dialect.ops.rearranging import LayoutTransformOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.target import Target

DATA_3D, WEIGHTS_3D = "NCDHW", "OIDHW"


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
        blocks, kernel = f"{DATA_3D}{size}c", f"{WEIGHTS_3D}{size}i{size}o"
        data = LayoutTransformOp(op.x, DATA_3D, blocks)
        made = Conv3dOp(
            data,
            self.conversions.transformed(op.w, WEIGHTS_3D, kernel),
            strides=windows.strides,
            padding=windows.padding,
            dilation=windows.dilation,
            data_layout=blocks,
            kernel_layout=kernel,
        )
        result = LayoutTransformOp(made, blocks, DATA_3D)
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
        [layout.text for layout in op.layouts] == [DATA_3D, WEIGHTS_3D, DATA_3D]
        and filters > 0
        and blocking.is_whole(filters)
        and blocking.is_whole(channels)
        and positions > 1
        and channels * positions >= LONG_SUM
        and op.groups.value.data == 1
        and data[1] == weights[1]
    )


@dataclass(frozen=True)
class ConvertLayoutPass(Pass):
    """Converts convolutions, and the operators between them, to a channel-blocked layout such as `NCHW16c`, whose block
    is one vector of `f32`.

    Before:

    ```mlir
    %0 = relax.nn.conv2d %x, %v                  // %x : !relax.tensor<[n, 3, h, w], f32>, %v of [32, 3, 1, 1]
    %1 = relax.add %0, %bias                     // %bias : !relax.tensor<[32, 1, 1], f32>
    %2 = relax.nn.conv2d %1, %w                  // %w : !relax.tensor<[64, 32, 1, 1], f32>
    ```

    After:

    ```mlir
    %0 = relax.nn.conv2d %x, %v1 kernel_layout = "OIHW16o" out_layout = "NCHW16c"
    %1 = relax.add %0, %bias1                    // %bias1 : !relax.tensor<[2, 1, 1, 16], f32>
    %2 = relax.nn.conv2d %1, %w1 data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
    %3 = relax.layout_transform %2 source = "NCHW16c" target = "NCHW"
    ```

    Converted are convolutions of `f32` in `NCHW` of one group, of each channel for itself or of groups that divide
    blocks or consist of some, and after them elementwise operators, also with operands that broadcast, pooling,
    reductions over positions, joining, cutting, padding and resizing. Constant weights are rearranged when the program
    is compiled, others in each call. Data with fewer channels than a block is read as it is. Where another operator
    needs a value, `relax.layout_transform` gives it back; of one position (after global pooling) that is a reshape.

    The rule of costs: operators that hand blocks to each other are a group, and a group is converted if its
    convolutions gain more than the weights that are not constant cost, and the values with more than one position that
    are needed in both layouts. A convolution of a window with long sums gains more than both transposes around it,
    others as much as one: a convolution of 1 x 1 between two transposes stays what it is.

    Channels that blocks have beyond the end are what channels with weights and biases of zero would be. They pass
    through operators that make finite numbers of finite numbers only, and the weights of zero of the next convolution
    leave them out; elsewhere they are cut off. So results are the same, but for the order of sums, as long as values
    are finite; if a value becomes infinite, the next convolution of such channels gives NaN, where it may have
    given an infinity. With whole blocks there is no such difference.

    3-D convolutions are converted one by one, with changes of layout around each (`BlockConv3d`).

    Nothing is converted that somebody may write into while the function runs. Idempotent.
    """

    name = "convert-layout"
    requires = ("relax.nn.conv2d", "relax.nn.conv3d")

    block: int = 0
    """The channels of a block; 0 for the elements of a vector of the target."""

    target: str = ""
    """The machine; this one if it is not named."""

    def __post_init__(self) -> None:
        """`ValueError` for a block of fewer channels than none."""
        if self.block < 0:
            raise ValueError(f"block expected a number of channels, or 0, got {self.block}")

    def for_target(self, target: Target) -> ConvertLayoutPass:
        return ConvertLayoutPass(block=target.lanes(32))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts each function by itself, then 3-D convolutions."""
        classes = {type(inner) for inner in op.walk()}
        if classes.isdisjoint((Conv2dOp, Conv3dOp)):
            return
        blocking = Blocking(self.block or pass_target(self.target).lanes(32))
        for func in op.ops:
            if isinstance(func, FuncOp) and any(isinstance(inner, Conv2dOp) for inner in func.walk()):
                steps, known = plan(func, blocking)
                if steps:
                    apply_patterns(func, [ComputeOnBlocks(blocking, steps, known)])
        if Conv3dOp in classes:
            apply_graph_patterns(op, [BlockConv3d(blocking, Conversions(blocking))])


class ComputeOnBlocks(IndexedPattern):
    """A planned operator computes on blocks: `relu(x)  ->  layout_transform(relu(blocks of x))`."""

    def __init__(self, blocking: Blocking, steps: Mapping[Operation, Step], known: Known):
        self._blocking = blocking
        self._steps = steps
        self._known = known
        self._classes = tuple({type(op) for op in steps})
        self._conversions = Conversions(blocking)
        self._blocked: dict[SSAValue, SSAValue] = {}
        """From what results have been replaced by to the blocks that are in it."""

    @override
    def may_match(self, op_class: type[Operation]) -> bool:
        return op_class in self._classes

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Converts an op after those that it reads."""
        step = self._steps.get(op)
        if step is None or any(operand.owner in self._steps for operand in op.operands):
            return
        operands = [self._operand(value, role) for value, role in zip(op.operands, step.roles, strict=True)]
        made = step.make(operands)
        for old, new in zip(op.results, made[-1].results, strict=True):
            new.name_hint = old.name_hint
        inherit_location(op, made)
        rewriter.insert(made)
        pairs = zip(op.results, made[-1].results, strict=True)
        rewriter.replace(op, [], [self._replacement(old, new) for old, new in pairs])

    def _operand(self, value: SSAValue, role: Role) -> SSAValue:
        match role:
            case Role.AS_IT_IS:
                return value
            case Role.BLOCKS:
                return self._blocked.get(value) or self._conversions.data(value)
            case Role.ALIGNED:
                return self._conversions.aligned(value)
            case Role.INNER_WEIGHTS:
                return self._conversions.transformed(value, WEIGHTS, self._blocking.inner)
            case Role.OUTER_WEIGHTS:
                return self._conversions.transformed(value, WEIGHTS, self._blocking.outer)

    def _replacement(self, old: OpResult, new: OpResult) -> SSAValue:
        """What a result is replaced by: data without blocks if an op needs that, else the blocks."""
        channels = self._known.of(old)
        if channels is None:
            return new
        plain = new
        if not all(map(self._reads_blocks, old.uses)):
            plain = self._conversions.plain(new, channels, is_one_position(old))
        self._blocked[plain] = new
        return plain

    def _reads_blocks(self, use: Use) -> bool:
        step = self._steps.get(use.operation)
        return step is not None and step.roles[use.index] is Role.BLOCKS
