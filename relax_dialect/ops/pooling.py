"""Pooling: windows of one, two or three spatial dimensions reduced to one element each; and its gradients."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.fields import dims, flag
from relax_dialect.ops.layouts import (
    Layout,
    Windows,
    layout,
    make_windows,
    require_layout,
    require_windows,
    spatial_letters,
    spread,
    window_properties,
)
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, DimLike
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr


class PoolBase(Operator, ABC):
    """What all pooling has in common: the layout of data and result, which is channels first if nothing is said, and
    may have channels in blocks (`NCHW16c`).

    C1: the data has the rank of the pooling and a numeric dtype.
    C2: layouts are permutations of the dimensions' letters, with blocks of channels at most.
    C3: blocks have the size that the layout says, and the channels are multiples of those of the result.
    """

    RANK: ClassVar[int]
    """The number of spatial dimensions."""

    layout = opt_prop_def(StringAttr)
    out_layout = opt_prop_def(StringAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        """The layouts of data and result, also when they are the defaults."""
        return self._layouts(Inference(type(self), self.operand_types, self.properties))

    @classmethod
    def _layouts(cls, inference: Inference) -> tuple[Layout, Layout]:
        data = layout(inference, "layout", "NC" + spatial_letters(cls.RANK), "C")
        return data, layout(inference, "out_layout", data.text, "C")

    @classmethod
    def _pooled(cls, inference: Inference, extents: Sequence[Dim | None]) -> tuple[TensorType]:
        """The result whose spatial dimensions are `extents`."""
        inference.require_domain(0, Domain.NUMERIC)  # C1
        data, out = cls._layouts(inference)  # C2
        batch, channels = data.pick(require_layout(inference, 0, data), "NC")  # C1, C3
        block = out.blocks.get("C", 1)
        inference.require_divisible(channels, block, f"channels in blocks of {block}")  # C3
        spatial = dict(zip(spatial_letters(cls.RANK), extents, strict=True))
        return (inference.tensor(0).with_shape(out.arrange({"N": batch, "C": channels, **spatial})),)

    @classmethod
    def _sizes(cls, inference: Inference, name: str, what: str) -> tuple[Dim, ...]:
        """The property `name`, sizes of `what` along each spatial dimension."""
        sizes = inference.dims(name)
        if len(sizes) != cls.RANK:
            inference.fail(f"{name} expected {cls.RANK} dimensions, got {len(sizes)}")
        for size in sizes:
            inference.require_at_most(ONE, size, f"{what} size of at least 1")
        return sizes


class WindowPoolOp(PoolBase, ABC):
    """Windows that slide over the data: `%0 = relax.nn.max_pool2d %x pool_size = [3, n] strides = [2, 2]`.

    With `ceil_mode` the last window may reach over the end of the padded data, but not start after the data. What is
    absent is: strides and dilations of 1, no padding.

    C1: there is one window size, stride and dilation of at least 1 per spatial dimension, and two paddings.
    C2: the window fits into the padded data.
    """

    pool_size = prop_def(ArrayAttr[DimAttr])
    strides = opt_prop_def(DenseArrayBase.constr(i64))
    padding = opt_prop_def(DenseArrayBase.constr(i64))
    dilation = opt_prop_def(DenseArrayBase.constr(i64))
    ceil_mode = opt_prop_def(UnitAttr)
    count_include_pad = opt_prop_def(UnitAttr)

    def __init__(
        self,
        x: SSAValue | Operation,
        pool_size: Sequence[DimLike],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str | None = None,
        out_layout: str | None = None,
    ):
        """One size, stride, padding or dilation counts for all dimensions."""
        properties = self.window_fields(
            pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout
        )
        super().__init__([x], properties)

    @classmethod
    def window_fields(
        cls,
        pool_size: Sequence[DimLike],
        strides: Sequence[int] | None,
        padding: Sequence[int] | None,
        dilation: Sequence[int] | None,
        ceil_mode: bool,
        count_include_pad: bool,
        layout: str | None,
        out_layout: str | None,
    ) -> dict[str, Attribute | None]:
        """The properties for the arguments of a constructor."""
        return window_properties(cls.RANK, strides, padding, dilation) | {
            "pool_size": dims(spread(pool_size, cls.RANK)),
            "ceil_mode": flag(ceil_mode),
            "count_include_pad": flag(count_include_pad),
            "layout": None if layout is None else StringAttr(layout),
            "out_layout": None if out_layout is None else StringAttr(out_layout),
        }

    @property
    def windows(self) -> Windows:
        """The strides, paddings and dilations, also when they are the defaults."""
        given = (self.strides, self.padding, self.dilation)
        return make_windows(self.RANK, *(None if each is None else each.get_values() for each in given))

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        sizes, windows = cls._sizes(inference, "pool_size", "a window"), require_windows(inference, cls.RANK)  # C1
        extents: list[Dim | None] = []
        # The spatial dimensions of the data.
        data, _ = cls._layouts(inference)
        for axis, (size, length) in enumerate(
            zip(sizes, data.pick(require_layout(inference, 0, data), spatial_letters(cls.RANK)), strict=True)
        ):
            if length is not None:
                reach = windows.dilation[axis] * (size - 1) + 1
                inference.require_at_most(reach, length + windows.padded(axis), "a window within the padded data")  # C2
            extents.append(windows.count(axis, length, size, inference.flag("ceil_mode")))
        return cls._pooled(inference, extents)


class MaxPoolOp(WindowPoolOp, ABC):
    """The greatest element of each window; padding does not count."""


class AvgPoolOp(WindowPoolOp, ABC):
    """The mean of each window: of the elements in the data, or with `count_include_pad` of the padding too, as
    zeros.
    """


@op_definition
class MaxPool1dOp(MaxPoolOp):
    """The greatest element of windows over one dimension."""

    name = "relax.nn.max_pool1d"
    RANK: ClassVar[int] = 1


@op_definition
class MaxPool2dOp(MaxPoolOp):
    """The greatest element of windows over two dimensions."""

    name = "relax.nn.max_pool2d"
    RANK: ClassVar[int] = 2


@op_definition
class MaxPool3dOp(MaxPoolOp):
    """The greatest element of windows over three dimensions."""

    name = "relax.nn.max_pool3d"
    RANK: ClassVar[int] = 3


@op_definition
class AvgPool1dOp(AvgPoolOp):
    """The mean of windows over one dimension."""

    name = "relax.nn.avg_pool1d"
    RANK: ClassVar[int] = 1


@op_definition
class AvgPool2dOp(AvgPoolOp):
    """The mean of windows over two dimensions."""

    name = "relax.nn.avg_pool2d"
    RANK: ClassVar[int] = 2


@op_definition
class AvgPool3dOp(AvgPoolOp):
    """The mean of windows over three dimensions."""

    name = "relax.nn.avg_pool3d"
    RANK: ClassVar[int] = 3


class AdaptiveAvgPoolOp(PoolBase, ABC):
    """Means over windows that cut the data into a number of positions: `%0 = relax.nn.adaptive_avg_pool2d %x
    output_size = [1, n]`.

    Window `i` of `m` over `n` elements is `[floordiv(i * n, m), ceildiv((i + 1) * n, m))`.

    C1: there is one output size of at least 1 per spatial dimension.
    """

    output_size = prop_def(ArrayAttr[DimAttr])

    def __init__(
        self,
        x: SSAValue | Operation,
        output_size: Sequence[DimLike],
        *,
        layout: str | None = None,
        out_layout: str | None = None,
    ):
        """One output size counts for all dimensions."""
        properties = {
            "output_size": dims(spread(output_size, self.RANK)),
            "layout": None if layout is None else StringAttr(layout),
            "out_layout": None if out_layout is None else StringAttr(out_layout),
        }
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        return cls._pooled(inference, cls._sizes(inference, "output_size", "an output"))  # C1


@op_definition
class AdaptiveAvgPool1dOp(AdaptiveAvgPoolOp):
    """Means over a number of windows of one dimension."""

    name = "relax.nn.adaptive_avg_pool1d"
    RANK: ClassVar[int] = 1


@op_definition
class AdaptiveAvgPool2dOp(AdaptiveAvgPoolOp):
    """Means over a number of windows of two dimensions."""

    name = "relax.nn.adaptive_avg_pool2d"
    RANK: ClassVar[int] = 2


@op_definition
class AdaptiveAvgPool3dOp(AdaptiveAvgPoolOp):
    """Means over a number of windows of three dimensions."""

    name = "relax.nn.adaptive_avg_pool3d"
    RANK: ClassVar[int] = 3


class PoolGradientOp(WindowPoolOp, ABC):
    """The gradient of the data of a pooling, from that of its result: `%0 = relax.grad.max_pool2d_backward %x,
    %gradient pool_size = [2, 2] strides = [2, 2]`.

    Data and properties are those of the pooling. The result has the shape and layout of the data, the gradient those of
    the pooling's result.

    C1: data and gradient have one dtype, a floating-point one.
    C2: the gradient has the shape of the pooling's result.
    """

    # said again, as the fields of a class stand before those that it inherits
    x = operand_def(TensorType)
    gradient = operand_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        gradient: SSAValue | Operation,
        pool_size: Sequence[DimLike],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str | None = None,
        out_layout: str | None = None,
    ):
        """One size, stride, padding or dilation counts for all dimensions."""
        properties = self.window_fields(
            pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout
        )
        Operator.__init__(self, [x, gradient], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        for index in (0, 1):
            inference.require_domain(index, Domain.FLOAT)  # C1
        dtype = inference.common_dtype((0, 1))  # C1
        (pooled,) = super().infer(inference)
        x, gradient = inference.tensor(0), inference.tensor(1)
        if gradient.rank not in (None, pooled.rank):
            inference.fail(f"operand #1 expected rank {pooled.rank}, got {gradient}")
        for left, right in zip(gradient.dims or (), pooled.dims or (), strict=gradient.dims is not None):
            inference.require_equal(left, right, "a gradient with the shape of the pooling's result")  # C2
        data, _ = cls._layouts(inference)
        return (TensorType(x.dims or (None,) * len(data.letters), dtype, inference.common_device()),)


@op_definition
class MaxPool2dBackwardOp(PoolGradientOp):
    """Each window's gradient goes to its greatest element, the first one of equals; to none if the window has only
    padding.
    """

    name = "relax.grad.max_pool2d_backward"
    RANK: ClassVar[int] = 2


@op_definition
class AvgPool2dBackwardOp(PoolGradientOp):
    """Each window's gradient is shared by its elements, as many as its mean was divided by."""

    name = "relax.grad.avg_pool2d_backward"
    RANK: ClassVar[int] = 2
