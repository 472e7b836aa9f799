"""Rows of detected boxes: each has a score, maybe a class, and four coordinates, in columns that attributes name."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, Float64Type, FloatAttr, IntegerAttr, UnitAttr, i32
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, integer, number
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.ops.windows import require_rank
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import is_unsigned
from tir_dialect.ops.assembly_format import op_definition

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
