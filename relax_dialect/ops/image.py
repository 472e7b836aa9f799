"""Operators on images."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, Float64Type, FloatAttr, StringAttr, UnitAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.fields import flag, number, numbers
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.layouts import layout as layout_of
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.windows import require_rank
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.ops.assembly_format import op_definition

METHODS = ("nearest_neighbor", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
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
