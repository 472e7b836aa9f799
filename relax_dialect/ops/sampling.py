"""Sampling of images at positions that are data, and the grids of such positions."""

from __future__ import annotations

from xdsl.dialects.builtin import Float64Type, FloatAttr, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.fields import flag, number
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.ops.windows import require_rank
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import constant
from tir_dialect.ops.assembly_format import op_definition

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
