"""Convolutions over one, two or three spatial dimensions, their transposes, convolutions over windows whose
positions are data, and columns folded into an image.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import DEFAULT_PROVER, ZERO, Inference
from relax_dialect.ops.fields import integer, integers, optional_integers
from relax_dialect.ops.layouts import (
    Layout,
    Windows,
    layout,
    make_windows,
    require_layout,
    require_rank,
    require_windows,
    spatial_letters,
    spread,
    window_properties,
)
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, constant, floordiv, product
from tir_dialect.ops.assembly_format import op_definition


class ConvolutionOp(Operator, ABC):
    """What convolutions and their transposes have in common.

    Strides and dilation have one number per spatial dimension, padding one before each and then one after each. The
    channels are cut into `groups`, each of which sees only its own. Layouts say which dimension is which: of the data
    N, C and the spatial ones, of the kernel O, I and the spatial ones. With `out_dtype` products are summed in that
    dtype. What is absent is: strides and dilations of 1, no padding, channels first, kernels O before I (I before O
    for transposes), the layout of the result that of the data. Channels may be cut into blocks: data in `NCHW16c` has
    dimensions N, C / 16, H, W and 16, a kernel in `OIHW16i16o` the position of the filter within its block last.

    C1: the dtypes are equal, or integers and there is an `out_dtype`.
    C2: data and kernel have the rank of the convolution.
    C3: layouts are permutations of the dimensions' letters, with blocks of channels at most.
    C4: there is one stride and dilation of at least 1 per spatial dimension, and two paddings.
    C5: there is at least one group, and channels and filters are multiples of it.
    C6: the kernel has the channels that a group sees.
    C7: blocks have the size that the layout says, and the filters are multiples of those of the result.
    """

    RANK: ClassVar[int]
    """The number of spatial dimensions."""

    KERNEL_LETTERS: ClassVar[str] = "OI"
    """The order of the kernel's channel dimensions if nothing is said."""

    strides = opt_prop_def(DenseArrayBase.constr(i64))
    padding = opt_prop_def(DenseArrayBase.constr(i64))
    dilation = opt_prop_def(DenseArrayBase.constr(i64))
    groups = prop_def(IntegerAttr[I64], default_value=integer(1))
    data_layout = opt_prop_def(StringAttr)
    kernel_layout = opt_prop_def(StringAttr)
    out_layout = opt_prop_def(StringAttr)
    out_dtype = opt_prop_def(Attribute)
    x = operand_def(TensorType)
    w = operand_def(TensorType)
    result = result_def(TensorType)

    @property
    def windows(self) -> Windows:
        """The strides, paddings and dilations, also when they are the defaults."""
        given = (self.strides, self.padding, self.dilation)
        return make_windows(self.RANK, *(None if each is None else each.get_values() for each in given))

    @property
    def layouts(self) -> tuple[Layout, Layout, Layout]:
        """The layouts of data, kernel and result, also when they are the defaults."""
        return self._layouts(Inference(type(self), self.operand_types, self.properties))

    @classmethod
    def _layouts(cls, inference: Inference) -> tuple[Layout, Layout, Layout]:
        spatial = spatial_letters(cls.RANK)
        data = layout(inference, "data_layout", "NC" + spatial, "C")
        kernel = layout(inference, "kernel_layout", cls.KERNEL_LETTERS + spatial, "OI")
        return data, kernel, layout(inference, "out_layout", data.text, "C")

    @classmethod
    @abstractmethod
    def filters(cls, inference: Inference, channels: Dim | None, outer: Dim | None, inner: Dim | None) -> Dim | None:
        """The channels of the result, from those of the data and the kernel's O and I; checks C5 and C6."""

    @classmethod
    @abstractmethod
    def extent(
        cls, inference: Inference, windows: Windows, axis: int, length: Dim | None, size: Dim | None
    ) -> Dim | None:
        """The size of a spatial dimension of the result, from those of the data and the kernel."""

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = inference.product_dtype()  # C1
        data, kernel, out = cls._layouts(inference)  # C3
        x, w = (require_layout(inference, index, each) for index, each in enumerate((data, kernel)))  # C2, C7
        windows = require_windows(inference, cls.RANK)  # C4
        if inference.integer("groups") < 1:
            inference.fail(f"expected at least one group, got {inference.integer('groups')}")  # C5
        spatial = spatial_letters(cls.RANK)
        batch, channels, *lengths = data.pick(x, "NC" + spatial)
        outer, inner, *sizes = kernel.pick(w, "OI" + spatial)
        dims = {"N": batch, "C": cls.filters(inference, channels, outer, inner)}  # C5, C6
        for axis, letter in enumerate(spatial):
            dims[letter] = cls.extent(inference, windows, axis, lengths[axis], sizes[axis])
        block = out.blocks.get("C", 1)
        inference.require_divisible(dims["C"], block, f"filters in blocks of {block}")  # C7
        return (TensorType(out.arrange(dims), dtype, inference.common_device()),)


class ForwardConvolutionOp(ConvolutionOp, ABC):
    """A sum of products over a window and over channels: `%0 = relax.nn.conv2d %x, %w strides = [2, 2] groups = 4`.

    C1: the window fits into the padded data.
    """

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int = 1,
        data_layout: str | None = None,
        kernel_layout: str | None = None,
        out_layout: str | None = None,
        out_dtype: Attribute | None = None,
    ):
        """One stride, padding or dilation counts for all dimensions, one padding per dimension for both of its
        sides.
        """
        properties = window_properties(self.RANK, strides, padding, dilation) | {
            "groups": integer(groups),
            "data_layout": None if data_layout is None else StringAttr(data_layout),
            "kernel_layout": None if kernel_layout is None else StringAttr(kernel_layout),
            "out_layout": None if out_layout is None else StringAttr(out_layout),
            "out_dtype": out_dtype,
        }
        super().__init__([x, w], properties)

    @classmethod
    def filters(cls, inference: Inference, channels: Dim | None, outer: Dim | None, inner: Dim | None) -> Dim | None:
        groups = inference.integer("groups")
        seen = None if inner is None else groups * inner
        plural = "" if groups == 1 else "s"
        inference.require_equal(channels, seen, f"as many channels as the kernel's times {groups} group{plural}")  # C6
        inference.require_divisible(outer, groups, f"filters in multiples of {groups}")  # C5
        return outer

    @classmethod
    def extent(
        cls, inference: Inference, windows: Windows, axis: int, length: Dim | None, size: Dim | None
    ) -> Dim | None:
        if length is not None and size is not None:
            reach = windows.dilation[axis] * (size - 1) + 1
            inference.require_at_most(reach, length + windows.padded(axis), "a window within the padded data")  # C1
        return windows.count(axis, length, size)


@op_definition
class Conv1dOp(ForwardConvolutionOp):
    """A convolution over one spatial dimension."""

    name = "relax.nn.conv1d"
    RANK: ClassVar[int] = 1


@op_definition
class Conv2dOp(ForwardConvolutionOp):
    """A convolution over two spatial dimensions."""

    name = "relax.nn.conv2d"
    RANK: ClassVar[int] = 2


@op_definition
class Conv3dOp(ForwardConvolutionOp):
    """A convolution over three spatial dimensions."""

    name = "relax.nn.conv3d"
    RANK: ClassVar[int] = 3


class TransposedConvolutionOp(ConvolutionOp, ABC):
    """The gradient of a convolution by its data: `%0 = relax.nn.conv2d_transpose %x, %w strides = [2, 2]`.

    Every element of the data is spread over a window of the result. `output_padding` adds positions at the end of the
    spatial dimensions of the result, of which several sizes lead to one of the data if the stride is above 1.

    C1: there is one output padding per spatial dimension, smaller than the stride or the dilation.
    C2: the padding takes no more away than there is.
    C3: the data has no empty spatial dimension.
    """

    KERNEL_LETTERS: ClassVar[str] = "IO"

    output_padding = opt_prop_def(DenseArrayBase.constr(i64))

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        output_padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int = 1,
        data_layout: str | None = None,
        kernel_layout: str | None = None,
        out_layout: str | None = None,
        out_dtype: Attribute | None = None,
    ):
        """One stride, padding or dilation counts for all dimensions, one padding per dimension for both of its
        sides.
        """
        extra = spread((0,) if output_padding is None else output_padding, self.RANK)
        properties = window_properties(self.RANK, strides, padding, dilation) | {
            "groups": integer(groups),
            "output_padding": optional_integers(extra if any(extra) else None),
            "data_layout": None if data_layout is None else StringAttr(data_layout),
            "kernel_layout": None if kernel_layout is None else StringAttr(kernel_layout),
            "out_layout": None if out_layout is None else StringAttr(out_layout),
            "out_dtype": out_dtype,
        }
        super().__init__([x, w], properties)

    @property
    def output_paddings(self) -> tuple[int, ...]:
        """The output padding of each spatial dimension, also when it is the default."""
        return (0,) * self.RANK if self.output_padding is None else tuple(self.output_padding.get_values())

    @classmethod
    def filters(cls, inference: Inference, channels: Dim | None, outer: Dim | None, inner: Dim | None) -> Dim | None:
        groups = inference.integer("groups")
        inference.require_equal(channels, inner, "the channels of the kernel")  # C6
        inference.require_divisible(channels, groups, f"channels in multiples of {groups}")  # C5
        return None if outer is None else groups * outer

    @classmethod
    def extent(
        cls, inference: Inference, windows: Windows, axis: int, length: Dim | None, size: Dim | None
    ) -> Dim | None:
        extra = inference.optional_integers("output_padding") or (0,) * cls.RANK
        limit = max(windows.strides[axis], windows.dilation[axis])
        if len(extra) != cls.RANK or not 0 <= extra[axis] < limit:
            inference.fail(f"expected {cls.RANK} output paddings below stride or dilation, got {list(extra)}")  # C1
        if length is None or size is None:
            return None
        spread_out = (length - 1) * windows.strides[axis] + windows.dilation[axis] * (size - 1) + 1
        result = DEFAULT_PROVER.simplify(spread_out - windows.padded(axis) + extra[axis])
        inference.require_at_most(constant(1), length, "data in each spatial dimension")  # C3
        inference.require_at_most(ZERO, result, "padding within the result")  # C2
        return result


@op_definition
class Conv1dTransposeOp(TransposedConvolutionOp):
    """A transposed convolution over one spatial dimension."""

    name = "relax.nn.conv1d_transpose"
    RANK: ClassVar[int] = 1


@op_definition
class Conv2dTransposeOp(TransposedConvolutionOp):
    """A transposed convolution over two spatial dimensions."""

    name = "relax.nn.conv2d_transpose"
    RANK: ClassVar[int] = 2


@op_definition
class Conv3dTransposeOp(TransposedConvolutionOp):
    """A transposed convolution over three spatial dimensions."""

    name = "relax.nn.conv3d_transpose"
    RANK: ClassVar[int] = 3


@op_definition
class DeformConv2dOp(Operator):
    """A convolution whose window has its positions moved by data (Dai et al., 2017; with a mask Zhu et al., 2019).

    ```mlir
    %0 = relax.nn.deform_conv2d %x, %w, %offsets, %mask padding = [1, 1, 1, 1] groups = 2 offset_groups = 2
    ```

    Data, kernel and result have their channels first. The offsets have for each offset group and each position of the
    window the distances by which it moves in rows and columns, the mask a factor, for each index of the result.
    Between elements the data is interpolated, outside it is zero. Mirrors ONNX `DeformConv`.

    C1: all operands have rank 4 and one floating-point dtype.
    C2: there is one stride and dilation of at least 1 per spatial dimension, and two paddings.
    C3: groups are at least 1, channels and filters multiples of them, channels of the offset groups too.
    C4: offsets and mask fit the window and the result.
    """

    name = "relax.nn.deform_conv2d"
    RANK: ClassVar[int] = 2

    strides = opt_prop_def(DenseArrayBase.constr(i64))
    padding = opt_prop_def(DenseArrayBase.constr(i64))
    dilation = opt_prop_def(DenseArrayBase.constr(i64))
    groups = prop_def(IntegerAttr[I64], default_value=integer(1))
    offset_groups = prop_def(IntegerAttr[I64], default_value=integer(1))
    x = operand_def(TensorType)
    w = operand_def(TensorType)
    offsets = operand_def(TensorType)
    mask = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        offsets: SSAValue | Operation,
        mask: SSAValue | Operation,
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int = 1,
        offset_groups: int = 1,
    ):
        """One stride, padding or dilation counts for both dimensions."""
        shared = {"groups": integer(groups), "offset_groups": integer(offset_groups)}
        super().__init__([x, w, offsets, mask], window_properties(self.RANK, strides, padding, dilation) | shared)

    @property
    def windows(self) -> Windows:
        """The strides, paddings and dilations, also when they are the defaults."""
        given = (self.strides, self.padding, self.dilation)
        return make_windows(self.RANK, *(None if each is None else each.get_values() for each in given))

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.common_dtype(range(4))  # C1
        inference.require_domain(0, Domain.FLOAT)  # C1
        x, w, offsets, mask = (require_rank(inference, index, 4) for index in range(4))  # C1
        windows = require_windows(inference, 2)  # C2
        groups, parts = inference.integer("groups"), inference.integer("offset_groups")
        if min(groups, parts) < 1:
            inference.fail(f"expected groups of at least 1, got {groups} and {parts}")  # C3
        inference.require_divisible(w[0], groups, f"filters in multiples of {groups}")  # C3
        inference.require_divisible(x[1], parts, f"channels in multiples of {parts}")  # C3
        seen = None if w[1] is None else groups * w[1]
        inference.require_equal(x[1], seen, "as many channels as the kernel sees")  # C3
        extents = [windows.count(axis, x[axis + 2], w[axis + 2]) for axis in (0, 1)]
        positions = None if w[2] is None or w[3] is None else parts * w[2] * w[3]
        expected = (x[0], None if positions is None else 2 * positions, *extents)
        for pair in zip(offsets, expected, strict=True):
            inference.require_equal(*pair, "offsets that fit the window and the result")  # C4
        for pair in zip(mask, (x[0], positions, *extents), strict=True):
            inference.require_equal(*pair, "a mask that fits the window and the result")  # C4
        return (inference.tensor(0).with_shape((x[0], w[0], *extents)),)


@op_definition
class Col2ImOp(Operator):
    """The columns of windows added up where they come from: the transpose of taking windows of an image apart.

    ```mlir
    %0 = relax.nn.col2im %x, %size window = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1]
    ```

    The data has the dimensions batch, channel times position in the window, and window; windows slide over an image of
    the size given. Mirrors ONNX `Col2Im`.

    C1: the data has rank 3 and a numeric dtype.
    C2: there is one window size, stride and dilation of at least 1 per dimension of the size, and two paddings.
    C3: channels are whole, and there are as many columns as windows.
    C4: no size is negative.
    """

    name = "relax.nn.col2im"

    window = prop_def(DenseArrayBase.constr(i64))
    strides = opt_prop_def(DenseArrayBase.constr(i64))
    padding = opt_prop_def(DenseArrayBase.constr(i64))
    dilation = opt_prop_def(DenseArrayBase.constr(i64))
    x = operand_def(TensorType)
    size = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        size: SSAValue | Operation,
        window: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
    ):
        """One stride, padding or dilation counts for all dimensions."""
        properties = window_properties(len(window), strides, padding, dilation)
        super().__init__([x, size], properties | {"window": integers(window)})

    @property
    def windows(self) -> Windows:
        """The strides, paddings and dilations, also when they are the defaults."""
        given = (self.strides, self.padding, self.dilation)
        return make_windows(len(self.window), *(None if each is None else each.get_values() for each in given))

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        batch, channels, columns = require_rank(inference, 0, 3)  # C1
        inference.require_domain(0, Domain.NUMERIC)  # C1
        window, size = inference.integers("window"), inference.sizes(1)  # C4
        windows = require_windows(inference, len(window))  # C2
        if not window or min(window) < 1 or size.rank not in (len(window), None):
            inference.fail(f"expected a window size of at least 1 per dimension, got {list(window)} and {size}")  # C2
        positions = product([constant(extent) for extent in window])
        inference.require_divisible(channels, positions.constant_term, f"channels in multiples of {positions}")  # C3
        dims = (None,) * len(window) if size.dims is None else size.dims
        counts = [windows.count(axis, dim, constant(window[axis])) for axis, dim in enumerate(dims)]
        known = [dim for dim in counts if dim is not None]
        inference.require_equal(
            columns, product(known) if len(known) == len(counts) else None, "a column for each window"
        )  # C3
        left = None if channels is None else floordiv(channels, positions.constant_term)
        return (inference.tensor(0).with_shape((batch, left, *dims)),)
