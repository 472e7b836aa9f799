"""Operators of object detection: rows of detected boxes, choice among boxes, and regions of images brought to one
size.
"""

from __future__ import annotations

from xdsl.dialects.builtin import I64, Float64Type, FloatAttr, IntegerAttr, StringAttr, UnitAttr, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, integer, number
from relax_dialect.ops.layouts import require_rank
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import is_unsigned
from tir_dialect.ops.assembly_format import op_definition

ROI_MODES = ("avg", "max", "max_point")

FARTHEST = 2.0**31
"""The limit of the corners of regions that are rounded to elements."""


@op_definition
class NonMaxSuppressionOp(Operator):
    """The boxes with the best scores that do not overlap: for each batch and class, in descending order of scores.

    ```mlir
    %0 = relax.vision.non_max_suppression %boxes, %scores, %max, %iou, %least center_point_box
    ```

    Boxes have the dimensions batch, box, 4, scores batch, class, box. A box is given by two opposite corners `y, x, y,
    x`, or with `center_point_box` by centre and size `x, y, width, height`. Taken are at most `max` boxes of a class,
    of scores greater than `least`, each of which shares with none taken before more than the part `iou` of their
    union. A row of the result has batch, class and box. How many there are depends on the data. Mirrors ONNX
    `NonMaxSuppression`.

    C1: boxes and scores have rank 3, one floating-point dtype, equal batches, and a score for each box.
    C2: a box has four numbers.
    C3: the limits are scalars, `max` an integer, the others of the dtype of the boxes.
    """

    name = "relax.vision.non_max_suppression"

    center_point_box = opt_prop_def(UnitAttr)
    boxes = operand_def(TensorType)
    scores = operand_def(TensorType)
    max = operand_def(TensorType)
    iou = operand_def(TensorType)
    least = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        boxes: SSAValue | Operation,
        scores: SSAValue | Operation,
        max: SSAValue | Operation,
        iou: SSAValue | Operation,
        least: SSAValue | Operation,
        *,
        center_point_box: bool = False,
    ):
        super().__init__([boxes, scores, max, iou, least], {"center_point_box": flag(center_point_box)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        boxes, scores = require_rank(inference, 0, 3), require_rank(inference, 1, 3)  # C1
        inference.require_domain(0, Domain.FLOAT)  # C1
        inference.require_equal(boxes[0], scores[0], "equal batches")  # C1
        inference.require_equal(boxes[1], scores[2], "a score for each box")  # C1
        inference.require_equal(boxes[2], constant(4), "boxes of four numbers")  # C2
        for index in (2, 3, 4):
            require_rank(inference, index, 0)  # C3
        inference.require_domain(2, Domain.INTEGER)  # C3
        inference.common_dtype((0, 1, 3, 4))  # C1, C3
        return (TensorType((None, constant(3)), i64, inference.common_device()),)


def _require_regions(inference: Inference) -> tuple[tuple[Dim | None, ...], Dim | None]:
    """The dimensions of the images and the number of regions; fails if they do not fit."""
    x, rois, batches = (require_rank(inference, index, rank) for index, rank in enumerate((4, 2, 1)))
    inference.require_equal(rois[1], constant(4), "regions of four numbers")
    inference.require_domain(0, Domain.FLOAT)
    inference.common_dtype((0, 1))
    inference.require_domain(2, Domain.INTEGER)
    count = inference.require_equal(rois[0], batches[0], "one batch index for each region")
    for length in (x[0], x[2], x[3]):
        if length is not None and count is not None:
            inference.require_at_most(count, count * length, "images with elements for the regions")
    return x, count


@op_definition
class ROIAlignOp(Operator):
    """Regions of images brought to one size by bilinear interpolation (He et al., 2017).

    ```mlir
    %0 = relax.vision.roi_align %x, %rois, %batches height = 7 width = 7 sampling_ratio = 2 spatial_scale = 0.0625
    ```

    The data has the dimensions batch, channel, row, column; a region is `x, y, x, y` of two corners, which are
    multiplied by `spatial_scale` and moved back by `offset`, and `batches` says which image it is of. Regions are at
    least 1 wide if they are not `aligned`. At each position of the result `sampling_ratio` by `sampling_ratio` points
    are interpolated, as many as there are elements if that is 0. The result is their mean, with mode `max_point` the
    greatest, with `max` the greatest of all their weighted elements. Points that are not finite are far outside, as
    all are of a part whose length is not. Of an image that does not exist, the nearest one is meant. Mirrors ONNX
    `RoiAlign`, where `half_pixel` is `aligned offset = 0.5`, and TVM `relax.vision.roi_align`, whose `max` is
    `max_point`.

    C1: the data has rank 4, regions rank 2 and four numbers each, one batch index for each; where there is a region,
    the images have elements.
    C2: data and regions are of one floating-point dtype, batch indices integers.
    C3: height and width are at least 1, the sampling ratio at least 0.
    C4: the mode is `avg`, `max` or `max_point`.
    """

    name = "relax.vision.roi_align"

    height = prop_def(IntegerAttr[I64])
    width = prop_def(IntegerAttr[I64])
    sampling_ratio = prop_def(IntegerAttr[I64], default_value=integer(0))
    spatial_scale = prop_def(FloatAttr[Float64Type], default_value=number(1.0))
    mode = prop_def(StringAttr, default_value=StringAttr("avg"))
    aligned = opt_prop_def(UnitAttr)
    offset = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    x = operand_def(TensorType)
    rois = operand_def(TensorType)
    batches = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        rois: SSAValue | Operation,
        batches: SSAValue | Operation,
        height: int,
        width: int,
        *,
        sampling_ratio: int = 0,
        spatial_scale: float = 1.0,
        mode: str = "avg",
        aligned: bool = False,
        offset: float = 0.0,
    ):
        properties = {
            "height": integer(height),
            "width": integer(width),
            "sampling_ratio": integer(sampling_ratio),
            "spatial_scale": number(spatial_scale),
            "mode": StringAttr(mode),
            "aligned": flag(aligned),
            "offset": number(offset),
        }
        super().__init__([x, rois, batches], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, count = _require_regions(inference)  # C1, C2
        height, width, ratio = (inference.integer(name) for name in ("height", "width", "sampling_ratio"))
        if min(height, width) < 1 or ratio < 0:
            inference.fail(
                f"expected a size of at least 1 and a ratio of at least 0, got {height}, {width}, {ratio}"
            )  # C3
        if inference.string("mode") not in ROI_MODES:
            inference.fail(f"mode expected {', '.join(ROI_MODES)}, got {inference.string('mode')}")  # C4
        return (inference.tensor(0).with_shape((count, x[1], constant(height), constant(width))),)


@op_definition
class ROIPoolOp(Operator):
    """The greatest elements of the parts of regions of images (Girshick, 2015).

    ```mlir
    %0 = relax.vision.roi_pool %x, %rois, %batches height = 7 width = 7 spatial_scale = 0.0625
    ```

    As `relax.vision.roi_align`, but corners are rounded to elements, which belong to the region, and each part has
    whole elements; one without elements gives 0. Corners are limited to 31 bits, NaN is 0. Mirrors TVM
    `relax.vision.roi_pool` and ONNX `MaxRoiPool`, whose regions begin with their batch.

    C1: the data has rank 4, regions rank 2 and four numbers each, one batch index for each; where there is a region,
    the images have elements.
    C2: data and regions are of one floating-point dtype, batch indices integers.
    C3: height and width are at least 1.
    """

    name = "relax.vision.roi_pool"

    height = prop_def(IntegerAttr[I64])
    width = prop_def(IntegerAttr[I64])
    spatial_scale = prop_def(FloatAttr[Float64Type], default_value=number(1.0))
    x = operand_def(TensorType)
    rois = operand_def(TensorType)
    batches = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        rois: SSAValue | Operation,
        batches: SSAValue | Operation,
        height: int,
        width: int,
        *,
        spatial_scale: float = 1.0,
    ):
        properties = {"height": integer(height), "width": integer(width), "spatial_scale": number(spatial_scale)}
        super().__init__([x, rois, batches], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, count = _require_regions(inference)  # C1, C2
        height, width = inference.integer("height"), inference.integer("width")
        if min(height, width) < 1:
            inference.fail(f"expected a size of at least 1, got {height} and {width}")  # C3
        return (inference.tensor(0).with_shape((count, x[1], constant(height), constant(width))),)


COORDINATES = 4


def _require_rows(inference: Inference) -> tuple[Dim | None, ...]:
    """The dimensions of the data; fails if they are not batch, row, column, or the elements are not floats."""
    rows = require_rank(inference, 0, 3)
    inference.require_domain(0, Domain.FLOAT)
    return rows


def _require_column(inference: Inference, name: str, length: Dim | None, count: int = 1, least: int = 0) -> None:
    """Fails if the columns from `name` on are not in a row; leaves a check for run time where it has a symbol."""
    column = inference.integer(name)
    if column < least:
        inference.fail(f"{name} expected at least {least}, got {column}")
    inference.require_at_most(constant(column + count), length, f"rows with all columns from {name} on")


@op_definition
class GetValidCountsOp(Operator):
    """The rows whose score is above a threshold, and whose class is not negative, brought to the top.

    ```mlir
    %count, %rows, %positions = relax.vision.get_valid_counts %x score_threshold = 0.5 id_index = 0 score_index = 1
    ```

    The data has the dimensions batch, row, column. `%count` says how many rows of each batch are valid, `%rows` has
    them in their order and -1 below, `%positions` where each of them was, and -1. With an `id_index` of -1 rows have no
    class. Mirrors TVM `relax.vision.get_valid_counts`.

    C1: the data has rank 3 and a floating-point dtype.
    C2: a row has the columns of score and class; only `id_index` may be -1.
    """

    name = "relax.vision.get_valid_counts"

    score_threshold = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    id_index = prop_def(IntegerAttr[I64], default_value=integer(0))
    score_index = prop_def(IntegerAttr[I64], default_value=integer(1))
    x = operand_def(TensorType)
    count = result_def(TensorType)
    rows = result_def(TensorType)
    indices = result_def(TensorType)

    def __init__(
        self, x: SSAValue | Operation, *, score_threshold: float = 0.0, id_index: int = 0, score_index: int = 1
    ):
        properties = {
            "score_threshold": number(score_threshold),
            "id_index": integer(id_index),
            "score_index": integer(score_index),
        }
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        rows = _require_rows(inference)  # C1
        _require_column(inference, "score_index", rows[2])  # C2
        _require_column(inference, "id_index", rows[2], least=-1)  # C2
        x = inference.tensor(0).with_shape(rows)
        return TensorType(rows[:1], i32, x.device), x, TensorType(rows[:2], i32, x.device)


@op_definition
class BoxNMSOp(Operator):
    """The rows with the best scores whose boxes do not overlap with one that has been taken before.

    ```mlir
    %rows, %kept, %taken = relax.vision.box_nms %x, %count, %indices iou_threshold = 0.5 top_k = 100 id_index = -1
    ```

    The data has the dimensions batch, row, column; two opposite corners of a box begin at column `coord_start`. Looked
    at are the first `%count` rows of a batch, of these the `top_k` best if that is above 0. The best one left is
    taken, as long as its score is above 0 and fewer than `max_output_size` have been, if that is above 0; of equal
    scores the first. Then all those go that share with it at least the part `iou_threshold` of their union and have
    its class, or any with `force_suppress` or an `id_index` of -1.

    With a `soft_nms_sigma` above 0 the scores of the others of that class decay by `exp(-iou * iou / (2 * sigma))`,
    and a score has to be above `score_threshold` instead of 0.

    `%rows` has the rows taken, at the top with `invalid_to_bottom` or where scores decay, otherwise at the position
    that sorting by score gives them, and -1 elsewhere; `%kept` the elements of `%indices` that belong to them, from the
    top on, and -1; `%taken` how many they are. Mirrors TVM `relax.vision.non_max_suppression`, which returns some of
    the results; TVM orders equal scores that have decayed otherwise.

    C1: the data has rank 3 and a floating-point dtype.
    C2: there is one count per batch and one index per row, both integers, indices signed ones.
    C3: a row has the columns of score, class and coordinates; only `id_index` may be -1.
    C4: sigma is not negative.
    """

    name = "relax.vision.box_nms"

    max_output_size = prop_def(IntegerAttr[I64], default_value=integer(-1))
    iou_threshold = prop_def(FloatAttr[Float64Type], default_value=number(0.5))
    force_suppress = opt_prop_def(UnitAttr)
    top_k = prop_def(IntegerAttr[I64], default_value=integer(-1))
    coord_start = prop_def(IntegerAttr[I64], default_value=integer(2))
    score_index = prop_def(IntegerAttr[I64], default_value=integer(1))
    id_index = prop_def(IntegerAttr[I64], default_value=integer(0))
    invalid_to_bottom = opt_prop_def(UnitAttr)
    soft_nms_sigma = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    score_threshold = prop_def(FloatAttr[Float64Type], default_value=number(0.0))
    x = operand_def(TensorType)
    count = operand_def(TensorType)
    indices = operand_def(TensorType)
    rows = result_def(TensorType)
    kept = result_def(TensorType)
    taken = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        count: SSAValue | Operation,
        indices: SSAValue | Operation,
        *,
        max_output_size: int = -1,
        iou_threshold: float = 0.5,
        force_suppress: bool = False,
        top_k: int = -1,
        coord_start: int = 2,
        score_index: int = 1,
        id_index: int = 0,
        invalid_to_bottom: bool = False,
        soft_nms_sigma: float = 0.0,
        score_threshold: float = 0.0,
    ):
        properties = {
            "max_output_size": integer(max_output_size),
            "iou_threshold": number(iou_threshold),
            "force_suppress": flag(force_suppress),
            "top_k": integer(top_k),
            "coord_start": integer(coord_start),
            "score_index": integer(score_index),
            "id_index": integer(id_index),
            "invalid_to_bottom": flag(invalid_to_bottom),
            "soft_nms_sigma": number(soft_nms_sigma),
            "score_threshold": number(score_threshold),
        }
        super().__init__([x, count, indices], properties)

    @property
    def is_soft(self) -> bool:
        """Whether scores decay."""
        return self.soft_nms_sigma.value.data > 0

    @property
    def is_compact(self) -> bool:
        """Whether the rows taken are at the top of the result."""
        return self.is_soft or self.invalid_to_bottom is not None

    @property
    def column_of_class(self) -> int | None:
        """The column that has to be equal for a box to suppress another; `None` if any suppresses any."""
        column = self.id_index.value.data
        return None if self.force_suppress is not None or column < 0 else column

    @property
    def least(self) -> float:
        """What a score has to be greater than."""
        return self.score_threshold.value.data if self.is_soft else 0.0

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        rows = _require_rows(inference)  # C1
        count, indices = require_rank(inference, 1, 1), require_rank(inference, 2, 2)  # C2
        for index in (1, 2):
            inference.require_domain(index, Domain.INTEGER)  # C2
        dtype = inference.tensor(2).dtype
        if dtype is not None and is_unsigned(dtype):
            inference.fail(f"operand #2 expected a signed integer dtype, got {dtype}")  # C2
        batch = inference.common_dim((rows[0], count[0], indices[0]), "equal batches")  # C2
        length = inference.require_equal(rows[1], indices[1], "an index for each row")  # C2
        _require_column(inference, "score_index", rows[2])  # C3
        _require_column(inference, "id_index", rows[2], least=-1)  # C3
        _require_column(inference, "coord_start", rows[2], COORDINATES)  # C3
        if not inference.number("soft_nms_sigma") >= 0:
            inference.fail(f"soft_nms_sigma expected at least 0, got {inference.number('soft_nms_sigma')}")  # C4
        made = inference.tensor(0).with_shape((batch, length, rows[2]))
        return made, inference.tensor(2).with_shape((batch, length)), inference.tensor(1).with_shape((batch,))
