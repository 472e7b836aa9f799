"""Convolution over windows whose positions are data, and its inverse step: columns folded into an image."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import integer, integers
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.ops.windows import Windows, make_windows, require_rank, require_windows, window_properties
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, constant, floordiv, product
from tir_dialect.ops.assembly_format import op_definition


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
        super().__init__([x, w, offsets, mask], window_properties(2, strides, padding, dilation) | shared)

    @property
    def windows(self) -> Windows:
        """The strides, paddings and dilations, also when they are the defaults."""
        given = (self.strides, self.padding, self.dilation)
        return make_windows(2, *(None if each is None else each.get_values() for each in given))

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
        inference.require_equal(columns, _product(counts), "a column for each window")  # C3
        left = None if channels is None else floordiv(channels, positions.constant_term)
        return (inference.tensor(0).with_shape((batch, left, *dims)),)


def _product(dims: Sequence[Dim | None]) -> Dim | None:
    known = [dim for dim in dims if dim is not None]
    return product(known) if len(known) == len(dims) else None
