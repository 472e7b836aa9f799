"""Operators on images: resizing, and sampling at positions that are data."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, DenseArrayBase, Float64Type, FloatAttr, IntegerAttr, StringAttr, UnitAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.fields import flag, integer, number, numbers
from relax_dialect.ops.layouts import Layout, require_rank
from relax_dialect.ops.layouts import layout as layout_of
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import DimLike, constant
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr

METHODS = ("nearest_neighbor", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@op_definition
class Resize2dOp(Operator):
    """Images of another height and width, with elements interpolated between those of the given ones.

    ```mlir
    %0 = relax.image.resize2d %x, %size method = "linear" coordinates = "half_pixel"
    ```

    `coordinates` says which position of the image an index of the result comes from, as in ONNX `Resize`; `rounding`
    how `nearest_neighbor` goes to a whole position; `roi` is the part of the image that `tf_crop_and_resize` takes, as
    fractions `[top, left, bottom, right]`, with `extrapolation_value` outside of it. `cubic_exclude` lets positions
    outside of the image have no weight.

    C1: the data has rank 4, and the size 2 dimensions.
    C2: the layout is a permutation of `NCHW`.
    C3: method, coordinates and rounding are known ones.
    C4: a region of interest has four numbers.
    C5: the images have at least one row and one column.
    C6: no size is negative.
    """

    name = "relax.image.resize2d"

    method = prop_def(StringAttr, default_value=StringAttr("linear"))
    coordinates = prop_def(StringAttr, default_value=StringAttr("half_pixel"))
    rounding = prop_def(StringAttr, default_value=StringAttr("round"))
    cubic_alpha = prop_def(FloatAttr[Float64Type], default_value=number(-0.5))
    cubic_exclude = opt_prop_def(UnitAttr)
    extrapolation_value = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    roi = opt_prop_def(DenseArrayBase.constr(f64))
    layout = opt_prop_def(StringAttr)
    out_dtype = opt_prop_def(Attribute)
    x = operand_def(TensorType)
    size = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        size: SSAValue | Operation,
        *,
        method: str = "linear",
        coordinates: str = "half_pixel",
        rounding: str = "round",
        cubic_alpha: float = -0.5,
        cubic_exclude: bool = False,
        extrapolation_value: float = 0.0,
        roi: Sequence[float] | None = None,
        layout: str | None = None,
        out_dtype: Attribute | None = None,
    ):
        properties = {
            "method": StringAttr(method),
            "coordinates": StringAttr(coordinates),
            "rounding": StringAttr(rounding),
            "cubic_alpha": number(cubic_alpha),
            "cubic_exclude": flag(cubic_exclude),
            "extrapolation_value": number(extrapolation_value),
            "roi": None if roi is None else numbers(roi),
            "layout": None if layout is None else StringAttr(layout),
            "out_dtype": out_dtype,
        }
        super().__init__([x, size], properties)

    @property
    def data_layout(self) -> Layout:
        """The layout, also when it is the default."""
        return layout_of(Inference(type(self), self.operand_types, self.properties), "layout", "NCHW")

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, size = require_rank(inference, 0, 4), inference.sizes(1)  # C1, C6
        if size.rank not in (2, None):
            inference.fail(f"operand #1 expected 2 dimensions, got {size}")  # C1
        layout = layout_of(inference, "layout", "NCHW")  # C2
        for name, known in (("method", METHODS), ("coordinates", COORDINATES), ("rounding", ROUNDINGS)):
            if inference.string(name) not in known:
                inference.fail(f"{name} expected one of {', '.join(known)}, got {inference.string(name)}")  # C3
        roi = inference.get("roi", DenseArrayBase)
        if roi is not None and len(roi) != 4:
            inference.fail(f"roi expected 4 numbers, got {len(roi)}")  # C4
        for length in layout.pick(x, "HW"):
            inference.require_at_most(ONE, length, "images with at least one row and column")  # C5
        batch, channels = layout.pick(x, "NC")
        height, width = (None, None) if size.dims is None else size.dims
        result = inference.tensor(0).with_shape(layout.arrange({"N": batch, "C": channels, "H": height, "W": width}))
        given = inference.get("out_dtype", Attribute)
        return (result if given is None else result.with_dtype(inference.dtype("out_dtype")),)


@op_definition
class Resize1dOp(Operator):
    """A tensor with another number of positions along an axis, interpolated between those that there are.

    ```mlir
    %0 = relax.image.resize1d %x axis = -1 length = 2 * n method = "cubic" antialias
    ```

    Several axes are resized one after the other. What the properties mean is what they mean in `relax.image.resize2d`,
    and in ONNX `Resize`, which this mirrors: `scale` is the factor from which the length was computed, where that was
    not a whole number; `exclude_outside` lets positions outside of the tensor have no weight; with `antialias` each
    position of a smaller result is made of as many elements as it stands for; `roi` is the part `[start, end]` of the
    axis that `tf_crop_and_resize` takes.

    C1: the axis is within the rank.
    C2: method, coordinates and rounding are known ones.
    C3: there is at least one position.
    C4: a scale is positive.
    C5: a region of interest has two numbers.
    C6: the length is not negative.
    """

    name = "relax.image.resize1d"

    axis = prop_def(IntegerAttr[I64], default_value=integer(-1))
    length = prop_def(DimAttr)
    scale = opt_prop_def(FloatAttr[Float64Type])
    method = prop_def(StringAttr, default_value=StringAttr("linear"))
    coordinates = prop_def(StringAttr, default_value=StringAttr("half_pixel"))
    rounding = prop_def(StringAttr, default_value=StringAttr("round_prefer_floor"))
    cubic_alpha = prop_def(FloatAttr[Float64Type], default_value=number(-0.75))
    exclude_outside = opt_prop_def(UnitAttr)
    antialias = opt_prop_def(UnitAttr)
    extrapolation_value = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    roi = opt_prop_def(DenseArrayBase.constr(f64))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        length: DimLike,
        axis: int = -1,
        *,
        scale: float | None = None,
        method: str = "linear",
        coordinates: str = "half_pixel",
        rounding: str = "round_prefer_floor",
        cubic_alpha: float = -0.75,
        exclude_outside: bool = False,
        antialias: bool = False,
        extrapolation_value: float = 0.0,
        roi: Sequence[float] | None = None,
    ):
        properties = {
            "axis": integer(axis),
            "length": DimAttr(length),
            "scale": None if scale is None else number(scale),
            "method": StringAttr(method),
            "coordinates": StringAttr(coordinates),
            "rounding": StringAttr(rounding),
            "cubic_alpha": number(cubic_alpha),
            "exclude_outside": flag(exclude_outside),
            "antialias": flag(antialias),
            "extrapolation_value": number(extrapolation_value),
            "roi": None if roi is None else numbers(roi),
        }
        super().__init__([x], properties)

    @property
    def part(self) -> tuple[float, float]:
        """The part of the axis that is taken, also when it is all."""
        start, end = (0.0, 1.0) if self.roi is None else self.roi.get_values()
        return start, end

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        for name, known in (("method", METHODS), ("coordinates", COORDINATES), ("rounding", ROUNDINGS)):
            if inference.string(name) not in known:
                inference.fail(f"{name} expected one of {', '.join(known)}, got {inference.string(name)}")  # C2
        scale, roi = inference.get("scale", FloatAttr), inference.get("roi", DenseArrayBase)
        if scale is not None and not scale.value.data > 0:
            inference.fail(f"expected a scale greater than 0, got {scale.value.data}")  # C4
        if roi is not None and len(roi) != 2:
            inference.fail(f"roi expected 2 numbers, got {len(roi)}")  # C5
        if x.dims is None:
            return (x,)
        axis = inference.axis(inference.integer("axis"), len(x.dims))  # C1
        inference.require_at_most(ONE, x.dims[axis], "an axis with at least one place")  # C3
        return (x.with_shape((*x.dims[:axis], inference.size("length"), *x.dims[axis + 1 :])),)  # C6


SAMPLING = ("nearest", "linear", "cubic")
PADDING = ("zeros", "border", "reflection")


@op_definition
class GridSampleOp(Operator):
    """The elements of images at positions that a grid gives.

    ```mlir
    %0 = relax.image.grid_sample %x, %grid method = "cubic" padding_mode = "reflection" align_corners
    ```

    The data has the dimensions batch, channel and one to three spatial ones; the grid batch, the spatial dimensions of
    the result, and a position, the coordinate of the last spatial dimension first. -1 and 1 are the ends of a
    dimension: the outer edges of its elements, or with `align_corners` the middles of the first and last ones. Outside
    of the image are zeros, the nearest elements, or the image mirrored at its ends. Mirrors ONNX `GridSample`, as ONNX
    Runtime and PyTorch compute it: beyond a border the neighbours of a cubic are the nearest elements, each for itself.

    C1: data and grid have one rank of 3 to 5 and equal batches.
    C2: a position has a coordinate for each spatial dimension.
    C3: the grid is floating-point.
    C4: method and padding mode are known ones.
    C5: images have at least one element.
    """

    name = "relax.image.grid_sample"

    method = prop_def(StringAttr, default_value=StringAttr("linear"))
    padding_mode = prop_def(StringAttr, default_value=StringAttr("zeros"))
    cubic_alpha = prop_def(FloatAttr[Float64Type], default_value=number(-0.75))
    align_corners = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    grid = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        grid: SSAValue | Operation,
        *,
        method: str = "linear",
        padding_mode: str = "zeros",
        cubic_alpha: float = -0.75,
        align_corners: bool = False,
    ):
        properties = {
            "method": StringAttr(method),
            "padding_mode": StringAttr(padding_mode),
            "cubic_alpha": number(cubic_alpha),
            "align_corners": flag(align_corners),
        }
        super().__init__([x, grid], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        rank = inference.require_same_rank((0, 1))  # C1
        inference.require_domain(1, Domain.FLOAT)  # C3
        for name, known in (("method", SAMPLING), ("padding_mode", PADDING)):
            if inference.string(name) not in known:
                inference.fail(f"{name} expected one of {', '.join(known)}, got {inference.string(name)}")  # C4
        x = inference.tensor(0)
        if rank is None:
            return (x.with_shape(None),)
        if not 3 <= rank <= 5:
            inference.fail(f"operand #0 expected rank 3 to 5, got {x}")  # C1
        data, positions = (require_rank(inference, index, rank) for index in (0, 1))
        batch = inference.require_equal(data[0], positions[0], "equal batches")  # C1
        inference.require_equal(positions[-1], constant(rank - 2), "a coordinate for each spatial dimension")  # C2
        for length in data[2:]:
            inference.require_at_most(ONE, length, "images with at least one element")  # C5
        return (x.with_shape((batch, data[1], *positions[1:-1])),)


@op_definition
class AffineGridOp(Operator):
    """The positions to which affine maps take those of an image, as `relax.image.grid_sample` reads them.

    ```mlir
    %0 = relax.image.affine_grid %theta, %size align_corners
    ```

    `theta` has for each batch a matrix of two rows and three columns, or three rows and four; `size` are the spatial
    dimensions of the grid. Mirrors ONNX `AffineGrid`.

    C1: `theta` has rank 3, two rows and three columns or three and four, and a floating-point dtype.
    C2: the size has a dimension for each row.
    C3: no size is negative.
    """

    name = "relax.image.affine_grid"

    align_corners = opt_prop_def(UnitAttr)
    theta = operand_def(TensorType)
    size = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(self, theta: SSAValue | Operation, size: SSAValue | Operation, *, align_corners: bool = False):
        super().__init__([theta, size], {"align_corners": flag(align_corners)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        batch, rows, columns = require_rank(inference, 0, 3)  # C1
        inference.require_domain(0, Domain.FLOAT)  # C1
        size, theta = inference.sizes(1), inference.tensor(0)  # C3
        count = size.rank if rows is None or rows.constant_value is None else rows.constant_value
        if count is None:
            return (theta.with_shape(None),)
        if count not in (2, 3):
            inference.fail(f"operand #0 expected two or three rows, got {theta}")  # C1
        inference.require_equal(rows, constant(count), "a row for each dimension of the size")  # C1, C2
        inference.require_equal(columns, constant(count + 1), "a column more than rows")  # C1
        if size.rank not in (count, None):
            inference.fail(f"operand #1 expected {count} dimensions, got {size}")  # C2
        dims = (None,) * count if size.dims is None else size.dims
        return (theta.with_shape((batch, *dims, constant(count))),)
