"""`channels-last`: integer convolutions compute on channels-last data."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import dims_of, is_elementwise, is_single_element, used_only_by
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.convolution import Conv1dOp, Conv2dOp, Conv3dOp, ForwardConvolutionOp
from relax_dialect.ops.layouts import spatial_letters
from relax_dialect.ops.manipulation import PermuteDimsOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.rearranging import PadOp
from relax_dialect.struct_info.types import TensorType


class ChannelsLastPass(Pass):
    """Converts integer convolutions to channels-last layouts, so that the channels of a pixel are contiguous.

    Before:

    ```mlir
    %0 = relax.nn.conv2d %x, %w out_dtype = i32            // %x : [n, 64, h, w] of ui8, %w : [32, 64, 1, 1] of i8
    ```

    After:

    ```mlir
    %1 = relax.permute_dims %x axes = [0, 2, 3, 1]
    %2 = relax.permute_dims %w axes = [0, 2, 3, 1]
    %3 = relax.nn.conv2d %1, %2 data_layout = "NHWC" kernel_layout = "OHWI" out_dtype = i32
    %0 = relax.permute_dims %3 axes = [0, 3, 1, 2]
    ```

    Then a sum of products of bytes is over neighbours in memory, for which machines have instructions; and a
    convolution of each channel for itself has the channels as vectors. `simplify-permute-dims` merges the permutations
    of convolutions that follow each other, across what is elementwise.

    Converted are convolutions in the default layouts of one group, whose data are integers, and of each channel for
    itself, whose data are integers or converted from such: less a zero point as numbers of `f32`, in which small sums
    are exact. Padding and what is elementwise between integers and convolution is done in the new order. Other groups
    stay: within them there are few channels. Nothing is converted that somebody may write into. Values are the same,
    those of `f32` but for the order of their sums. Idempotent.
    """

    name = "channels-last"
    requires = ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [MoveChannelsLast()])


class MoveChannelsLast(RewritePattern):
    """A convolution of integers has its channels last: `conv(x, w)  ->  permute_dims(conv(permute_dims(x), w'))`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ForwardConvolutionOp, rewriter: PatternRewriter) -> None:
        if _is_converted(op):
            rewriter.replace(op, _converted(op))


def _is_converted(op: ForwardConvolutionOp) -> bool:
    spatial = spatial_letters(op.RANK)
    plain = "NC" + spatial, op.KERNEL_LETTERS + spatial, "NC" + spatial
    if tuple(layout.text for layout in op.layouts) != plain:
        return False
    data, kernel = dims_of(op.x), dims_of(op.w)
    if data is None or kernel is None or not (is_never_written(op.result) and is_never_written(op.x)):
        return False
    groups = op.groups.value.data
    if groups == 1:
        return _is_integers(op.x)
    alone = data[1].constant_value == groups == kernel[0].constant_value
    return alone and _is_from_integers(op.x)


def _is_integers(value: SSAValue) -> bool:
    info = value.type
    return isinstance(info, TensorType) and isinstance(info.dtype, IntegerType)


def _is_from_integers(value: SSAValue) -> bool:
    """Whether a value is integers, or made of some one by one."""
    op = value.owner
    if _is_integers(value) or not isinstance(op, Operator) or not is_elementwise(op):
        return _is_integers(value)
    return all(map(is_single_element, op.operands[1:])) and _is_from_integers(op.operands[0])


_FORWARD: dict[int, type[Conv1dOp | Conv2dOp | Conv3dOp]] = {1: Conv1dOp, 2: Conv2dOp, 3: Conv3dOp}


def _converted(op: ForwardConvolutionOp) -> list[Operation]:
    """The ops in place of a convolution in the default layouts."""
    rank, alone = op.RANK, op.groups.value.data > 1
    letters = spatial_letters(rank)
    last = (0, *range(2, rank + 2), 1)
    new: list[Operation] = []
    x = _permuted(op.x, op, last, new)
    new.append(w := PermuteDimsOp(op.w, (*range(2, rank + 2), 1, 0) if alone else last))
    windows = op.windows
    made = _FORWARD[rank](
        x,
        w,
        strides=windows.strides,
        padding=windows.padding,
        dilation=windows.dilation,
        groups=op.groups.value.data,
        data_layout=f"N{letters}C",
        kernel_layout=f"{letters}IO" if alone else f"O{letters}I",
        out_dtype=op.out_dtype,
    )
    return [*new, made, PermuteDimsOp(made, (0, rank + 1, *range(1, rank + 1)))]


def _permuted(value: SSAValue, user: Operation, axes: Sequence[int], new: list[Operation]) -> SSAValue:
    """A value with its dimensions in another order; what makes it for `user` alone is made in that order."""
    op = value.owner
    if isinstance(op, Operator) and used_only_by(value, user) and all(map(is_never_written, op.operands)):
        if isinstance(op, PadOp):
            widths = op.pad_width.get_values()
            moved = [width for axis in axes for width in widths[2 * axis : 2 * axis + 2]]
            made = PadOp(_permuted(op.x, op, axes, new), moved, op.mode.data, op.pad_value.value.data)
            made.location = op.location
            new.append(made)
            return made.result
        if is_elementwise(op) and all(map(is_single_element, op.operands[1:])):
            new.append(inner := op.with_operands([_permuted(op.operands[0], op, axes, new), *op.operands[1:]]))
            return inner.results[0]
    new.append(made := PermuteDimsOp(value, axes))
    return made.result
