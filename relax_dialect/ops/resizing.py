"""Resizing along one axis; the interpolations that there are work on each axis by itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, DenseArrayBase, Float64Type, FloatAttr, IntegerAttr, StringAttr, UnitAttr, f64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.fields import flag, integer, number, numbers
from relax_dialect.ops.image import COORDINATES, METHODS, ROUNDINGS
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import DimLike
from tir_dialect.ops.assembly_format import op_definition


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
