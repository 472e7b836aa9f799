"""Convolutions that become other operators.

`convert-conv-to-matmul`: convolutions with one window become matrix products.

`expand-conv-transpose`: transposed convolutions become convolutions, whose filters make the positions between.
Transposed convolutions to few filters become a product for each element of the kernel, and sums of shifted products. As
a convolution such filters would leave lanes of a vector empty, and multiply by zeros where the kernel is no multiple
of the stride. The products of all positions of the data have neither; each index of the result adds a few of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product as combinations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import dims_of, reshaped, shape_of
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.inference import ONE
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.convolution import Conv1dOp, Conv2dOp, Conv3dOp, ForwardConvolutionOp, TransposedConvolutionOp
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.ops.joining import ConcatOp
from relax_dialect.ops.layouts import spatial_letters
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.manipulation import FlipOp, PermuteDimsOp
from relax_dialect.ops.rearranging import PadOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.weights import WeightAttr, computed, tensor_attr

LEAST_FILTERS = 16
"""With fewer a convolution is bound by memory, and several of them read the data several times."""
ZEROS = 1.4
"""So many times the products that are needed are worth sums without zeros."""
LEAST_CHANNELS = 64
"""With fewer channels of the data, or half as many where there would be zeros, a product takes less than to add it."""
MOST_PARTS = 4
"""Of products that are added, or twice as many where there would be zeros."""

_FORWARD = {1: Conv1dOp, 2: Conv2dOp, 3: Conv3dOp}


@dataclass(frozen=True)
class Shifts:
    """A spatial dimension: elements `t * stride` to `(t + 1) * stride` of the kernel go to positions `step * t`
    later.
    """

    size: int
    """Of the kernel."""
    stride: int
    step: int
    taps: int
    before: int
    """How many positions in front are left out."""
    added: int
    """How many positions there are more than of the data."""

    def part(self, tap: int) -> tuple[int, int, list[int], list[int]]:
        """Where a part of the kernel begins and ends, and what is added around its elements and its positions."""
        begin, end = tap * self.stride, min((tap + 1) * self.stride, self.size)
        low = self.step * tap - self.before
        return begin, end, [0, self.stride - (end - begin)], [low, self.added - low]


def are_few(op: TransposedConvolutionOp, axes: Sequence[Shifts]) -> bool:
    """Whether there are so few filters, and so few parts of the kernel, that sums of products are faster.

    Sums of narrower numbers than `f32` would be rounded more often.
    """
    kinds = [value.type.dtype for value in (op.x, op.result) if isinstance(value.type, TensorType)]
    if op.groups.value.data != 1 or kinds not in ([f32, f32], [f64, f64]):
        return False
    channels, filters = (dim.constant_value or 0 for dim in shape_of(op.w)[:2])
    filled = math.prod(axis.stride * axis.taps for axis in axes)
    factor = 2 if filled >= ZEROS * math.prod(axis.size for axis in axes) else 1
    parts = math.prod(axis.taps for axis in axes)
    fits = 1 < parts <= factor * MOST_PARTS and all(axis.stride > 1 for axis in axes)
    return fits and factor * channels >= LEAST_CHANNELS and 2 * filters < factor * LEAST_FILTERS


def sums_of_shifted(op: TransposedConvolutionOp, axes: Sequence[Shifts], data: Sequence[Dim]) -> list[Operation]:
    """The ops whose last result is `[n, O, *strides, *positions]`; `data` are the dimensions of the data."""
    rank, sizes = op.RANK, [axis.size for axis in axes]
    made = _products(op, sizes, data)
    value, total = made[-1].results[0], list[SSAValue]()
    for taps in combinations(*(range(axis.taps) for axis in axes)):
        parts = [axis.part(tap) for axis, tap in zip(axes, taps, strict=True)]
        begin, end = [part[0] for part in parts], [part[1] for part in parts]
        widths = [0] * 4 + [width for part in parts for width in part[2]] + [each for part in parts for each in part[3]]
        made.append(StridedSliceOp(value, [*range(2, 2 + rank)], begin, end))
        made.append(PadOp(made[-1].results[0], widths))
        if total:
            made.append(AddOp(total[-1], made[-1].results[0]))
        total.append(made[-1].results[0])
    return made


def _products(op: TransposedConvolutionOp, sizes: Sequence[int], data: Sequence[Dim]) -> list[Operation]:
    """The products `[n, O, *sizes, *positions]` of all positions of the data with all elements of the kernel."""
    rank, filters = op.RANK, shape_of(op.w)[1]
    made: list[Operation] = [PermuteDimsOp(op.w, [*range(1, 2 + rank), 0])]
    made += reshaped(made[-1].results[0], [filters * math.prod(sizes), shape_of(op.w)[0], *[constant(1)] * rank])
    made.append(_FORWARD[rank](op.x, made[-1].results[0]))
    split = [data[0], filters, *map(constant, sizes), *data[2:]]
    return [*made, *reshaped(made[-1].results[0], split)]


class ExpandConvTransposePass(Pass):
    """Rewrites transposed convolutions as convolutions.

    Before:

    ```mlir
    %y = relax.nn.conv2d_transpose %x, %w strides = [2, 2]  // %x : [n, 8, h, w], %w : [8, 5, 2, 2]
    ```

    After:

    ```mlir
    %v = ...                                                // %v : [20, 8, 1, 1], the elements of %w
    %0 = relax.nn.conv2d %x, %v
    %1 = relax.reshape %0, [n, 5, 2, 2, h, w]
    %2 = relax.permute_dims %1 axes = [0, 1, 4, 2, 5, 3]
    %y = relax.reshape %2, [n, 5, 2 * h, 2 * w]
    ```

    With a stride of `s` every position of the data gets `s` filters instead of one, for the `s` positions of the result
    that begin there; with a stride of 1 the kernel is turned around. A kernel that is no multiple of the stride gets
    zeros at its end, so that an infinity in the data may give NaN beside it; where much would be multiplied by these
    zeros, as with 3 x 3 and strides of 2, filters of each size have a convolution without them. Few filters of many
    channels are multiplied element by element, and the products added. Data without any
    position is refused, as by other convolutions, where its result would be empty.

    Expanded are those in the default layouts with a kernel of known size and dimensions that have names, unless a
    dimension has both a stride and a dilation above 1, or more padding than the kernel reaches. Idempotent.
    """

    name = "expand-conv-transpose"
    requires = ("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose", "relax.nn.conv3d_transpose")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ExpandTransposedConvolution()])


class ExpandTransposedConvolution(RewritePattern):
    """A transposed convolution is a convolution with interleaved filters: `conv_transpose(x, w)  ->  conv(x, v)`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: TransposedConvolutionOp, rewriter: PatternRewriter) -> None:
        made = _expanded(op)
        if made and made[-1].results[0].type == op.result.type:
            rewriter.replace(op, made)


@dataclass(frozen=True)
class _Axis:
    """A spatial dimension: its result begins at position `first` of `stride` positions for each position of the
    convolution.
    """

    stride: int
    dilation: int
    taps: int
    """The size of the new kernel."""
    zeros: int
    """What the kernel gets at its end."""
    before: int
    after: int
    first: int
    positions: Dim
    """Of the convolution."""
    length: Dim
    """Of the result."""
    start: int = 0
    """The first of the filters that are meant."""

    @property
    def parts(self) -> Sequence[_Axis]:
        """The filters without zeros, and those that end in one, without it; all of them if the data begins too late."""
        if not self.zeros or self.taps == 1 or not self.before:
            return [self]
        whole = self.stride - self.zeros
        shorter = replace(self, stride=self.zeros, start=whole, taps=self.taps - 1, before=self.before - 1)
        return [replace(self, stride=whole), shorter]

    @property
    def is_cut(self) -> bool:
        """Whether the result leaves out some of the positions that are made."""
        return self.positions * self.stride != self.length


def _axis(op: TransposedConvolutionOp, number: int, data: Dim, size: int, length: Dim) -> _Axis | None:
    """A dimension of data and result; `None` if it cannot be made by a convolution."""
    windows = op.windows
    stride, dilation = windows.strides[number], windows.dilation[number]
    low, high = windows.padding[number], windows.padding[number + op.RANK]
    end = dilation * (size - 1) + 1 + op.output_paddings[number] - high
    if (stride > 1 and dilation > 1) or low > end or low < 0 or high < 0:
        return None
    taps = -(-size // stride)
    reach = dilation * (taps - 1)
    after = max(-(-(end - stride) // stride), 0)
    skipped = min(low // stride, reach, after)  # a single position of the data has to give one
    positions = data + after - skipped
    first = low - skipped * stride
    return _Axis(stride, dilation, taps, taps * stride - size, reach - skipped, after, first, positions, length)


def _expanded(op: TransposedConvolutionOp) -> Sequence[Operation]:
    """The ops in place of one; none if it has to stay."""
    spatial = spatial_letters(op.RANK)
    data, kernel, result = (dims_of(value) for value in (op.x, op.w, op.result))
    sizes = [dim.constant_value or 0 for dim in kernel or ()]
    default = [each.text for each in op.layouts] == [f"NC{spatial}", f"IO{spatial}", f"NC{spatial}"]
    if data is None or result is None or not default or not all(sizes):
        return ()
    found = [_axis(op, number, *each) for number, each in enumerate(zip(data[2:], sizes[2:], result[2:], strict=True))]
    axes = [axis for axis in found if axis is not None]
    if len(axes) < len(found):
        return ()
    shifts = [_shifts(axis, size) for axis, size in zip(axes, sizes[2:], strict=True)]
    if are_few(op, shifts):
        made = sums_of_shifted(op, shifts, data)
        return [*made, *_between(made[-1].results[0], result, axes)]
    made, channels = _split_kernel(op, sizes, axes), sizes[1] * op.groups.value.data
    kernel_in_parts, groups = made[-1].results[0], op.groups.value.data
    saved = product_of(constant(axis.stride * axis.taps) for axis in axes).constant_value or 0
    is_profitable = groups == 1 and channels >= LEAST_FILTERS and saved >= ZEROS * math.prod(sizes[2:])
    if not is_profitable:
        made += _sums(op, kernel_in_parts, axes)
    else:
        made += _sums_in_parts(op, kernel_in_parts, [axis.parts for axis in axes], (*result[:2],))
    return [*made, *_between(made[-1].results[0], result, axes)]


def _shifts(axis: _Axis, size: int) -> Shifts:
    """How the products of a dimension are moved."""
    reach = axis.dilation * (axis.taps - 1)
    skipped = reach - axis.before
    return Shifts(size, axis.stride, axis.dilation, axis.taps, skipped, axis.after - skipped)


def _sums_in_parts(
    op: TransposedConvolutionOp, kernel: SSAValue, parts: Sequence[Sequence[_Axis]], result: Sequence[Dim]
) -> list[Operation]:
    """A convolution for each set of filters of one size; their results side by side."""
    made, found = list[Operation](), list[SSAValue]()
    for axes in combinations(*parts):
        made += _sums(op, kernel, axes)
        dims = [*result, *(constant(axis.stride) for axis in axes), *(axis.positions for axis in axes)]
        made += reshaped(made[-1].results[0], dims)
        found.append(made[-1].results[0])
    for number, choices in reversed(list(enumerate(parts))):
        count = len(choices)
        if count > 1:
            joined = [ConcatOp(found[i : i + count], axis=number + 2) for i in range(0, len(found), count)]
            made += joined
            found = [each.result for each in joined]
    return made


def _sums(op: TransposedConvolutionOp, kernel: SSAValue, axes: Sequence[_Axis]) -> list[Operation]:
    """The convolution with some of the filters."""
    made = _filters(op, kernel, axes)
    padding = [*(axis.before for axis in axes), *(axis.after for axis in axes)]
    dilation, groups = [axis.dilation for axis in axes], op.groups.value.data
    forward = _FORWARD[op.RANK]
    made.append(forward(op.x, made[-1], padding=padding, dilation=dilation, groups=groups, out_dtype=op.out_dtype))
    return made


def _split_kernel(op: TransposedConvolutionOp, sizes: Sequence[int], axes: Sequence[_Axis]) -> list[Operation]:
    """The kernel `[I, O / g, ...]` as `[g, I / g, O / g, taps, stride, ...]`."""
    groups = op.groups.value.data
    made: list[Operation] = []
    value: SSAValue = op.w
    if any(axis.zeros for axis in axes):
        made.append(PadOp(value, [0] * 4 + [width for axis in axes for width in (0, axis.zeros)]))
        value = made[-1].results[0]
    split = [groups, sizes[0] // groups, sizes[1], *(size for axis in axes for size in (axis.taps, axis.stride))]
    return [*made, *reshaped(value, [*map(constant, split)])]


def _filters(op: TransposedConvolutionOp, kernel: SSAValue, axes: Sequence[_Axis]) -> list[Operation]:
    """Some filters of a kernel that is split, as `[O * strides, I / g, ...]`, turned around."""
    rank, made = op.RANK, list[Operation]()
    dims = shape_of(kernel)
    begin = [number for axis in axes for number in (0, axis.start)]
    end = [number for axis in axes for number in (axis.taps, axis.start + axis.stride)]
    if [*map(constant, end)] != [*dims[3:]] or any(begin):
        made.append(StridedSliceOp(kernel, [*range(3, 3 + 2 * rank)], begin, end))
        kernel = made[-1].results[0]
    strides, taps = range(4, 4 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    made.append(PermuteDimsOp(kernel, [0, 2, *strides, 1, *taps]))
    filters = dims[0] * dims[2] * product_of(constant(axis.stride) for axis in axes)
    made += reshaped(made[-1].results[0], [filters, dims[1], *(constant(axis.taps) for axis in axes)])
    made += _turned(made[-1].results[0], axes)
    return made


def _turned(value: SSAValue, axes: Sequence[_Axis]) -> list[Operation]:
    made: list[Operation] = []
    for number, axis in enumerate(axes):
        if axis.taps > 1:
            made.append(FlipOp(value, number + 2))
            value = made[-1].results[0]
    return made


def _between(value: SSAValue, result: Sequence[Dim], axes: Sequence[_Axis]) -> list[Operation]:
    """The filters for each position of the data as positions of the result, and those that belong to it."""
    rank, made = len(axes), list[Operation]()
    if any(axis.stride > 1 for axis in axes):
        positions = [axis.positions for axis in axes]
        made += reshaped(value, [*result[:2], *(constant(axis.stride) for axis in axes), *positions])
        order = [each for number in range(rank) for each in (2 + rank + number, 2 + number)]
        made.append(PermuteDimsOp(made[-1], [0, 1, *order]))
        made += reshaped(made[-1].results[0], [*result[:2], *(axis.positions * axis.stride for axis in axes)])
        value = made[-1].results[0]
    cut = [(number + 2, axis) for number, axis in enumerate(axes) if axis.is_cut]
    if cut:
        begin = [constant(axis.first) for _, axis in cut]
        end = [axis.length + axis.first for _, axis in cut]
        made.append(StridedSliceOp(value, [number for number, _ in cut], begin, end, assume_inbound=True))
    return made


class ConvertConvToMatmulPass(Pass):
    """Rewrites convolutions whose window is the whole image as matrix products.

    Before:

    ```mlir
    %y = relax.nn.conv2d %x, %w                             // %x : [n, 64, 1, 1], %w : constant [32, 64, 1, 1]
    ```

    After:

    ```mlir
    %v = relax.constant "w.matrix" : !relax.tensor<[64, 32], f32>
    %0 = relax.reshape %x, %s                               // [n, 64]
    %1 = relax.matmul %0, %v                                // [n, 32]
    %y = relax.reshape %1, %t                               // [n, 32, 1, 1]
    ```

    Such are the two layers of a squeeze-and-excitation block, and classifiers on a pooled image. A convolution
    computes several positions of an image at once, and here there is one; the rows of the product are the batch.
    Converted are convolutions of one group without padding, in layouts whose channels and positions come in one order
    in data and kernel. Values are the same, but for the order of sums. Idempotent.
    """

    name = "convert-conv-to-matmul"
    requires = ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ConvertConv()])


class ConvertConv(RewritePattern):
    """A convolution with one window is a product: `conv(x, w)  ->  reshape(matmul(reshape(x), w'))`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv1dOp | Conv2dOp | Conv3dOp, rewriter: PatternRewriter) -> None:
        data, kernel, result = dims_of(op.x), dims_of(op.w), dims_of(op.result)
        if data is None or kernel is None or result is None or not _has_one_window(op):
            return
        depth, filters = 1, 1
        for letter, dim in zip(op.layouts[1].text, kernel, strict=True):
            size = dim.constant_value
            if size is None:
                return
            depth, filters = (depth, size) if letter == "O" else (depth * size, filters)
        # The ops that give the kernel as a matrix with a column for each filter; constants are rearranged at once.
        owner, is_transposed = op.w.owner, op.layouts[1].text[0] == "O"
        elements = owner.sources if isinstance(owner, ConstantOp) and is_never_written(op.w) else None
        if isinstance(owner, ConstantOp) and elements is not None:
            shape = (filters, depth) if is_transposed else (depth, filters)
            order = (1, 0) if is_transposed else (0, 1)
            made = computed(
                lambda array: array.reshape(shape).transpose(order).copy(), elements, (depth, filters), elements.dtype
            )
            weight = owner.value
            if isinstance(weight, WeightAttr):
                weights = [ConstantOp(tensor_attr(made, f"{weight.weight_name}.matrix"))]
            else:
                weights = [ConstantOp(tensor_attr(made))]
        elif not is_transposed:
            weights = reshaped(op.w, [constant(depth), constant(filters)])
        else:
            matrix = reshaped(op.w, [constant(filters), constant(depth)])
            weights = [*matrix, PermuteDimsOp(matrix[-1], [1, 0])]
        rows = reshaped(op.x, [data[0], constant(depth)])
        product = MatmulOp(rows[-1], weights[-1], op.out_dtype)
        whole = reshaped(product.result, list(result))
        if whole[-1].results[0].type == op.result.type:
            rewriter.replace(op, [*weights, *rows, product, *whole])


def _has_one_window(op: ForwardConvolutionOp) -> bool:
    """Whether the window is the image, and both have channels and positions in the same order, after the batch."""
    data, kernel, out = (layout.text for layout in op.layouts)
    spatial, windows = spatial_letters(op.RANK), op.windows
    letters = set(f"NC{spatial}")
    if op.groups.value.data != 1 or set(data) != letters or set(out) != letters:
        return False
    outer = kernel.find("O")
    same_order = data[0] == out[0] == "N" and data[1:] == kernel.replace("O", "").replace("I", "C")
    if not same_order or outer not in (0, op.RANK + 1) or any(windows.padding):
        return False
    lengths, sizes = (
        dict(zip(data, dims_of(op.x) or (), strict=True)),
        dict(zip(kernel, dims_of(op.w) or (), strict=True)),
    )
    return all(
        lengths[letter] is sizes[letter] and (step == 1 or sizes[letter] is ONE)
        for letter, step in zip(spatial, windows.dilation, strict=True)
    )
