"""Operators of signal processing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, f32, f64
from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, numbers
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import DimLike
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class CosineWindowOp(Operator):
    """A window that is a sum of cosines with alternating signs: `a[0] - a[1] cos(t) + a[2] cos(2 t) - ...`.

    ```mlir
    %0 = relax.cosine_window length = n coefficients = [0.5, 0.5] periodic
    ```

    `t` goes from 0 to 2 pi: with `periodic` the end is one position after the last one, else at it; a symmetric window
    of one position is at 0. `[0.5, 0.5]` is the Hann window, `[0.54, 0.46]` about the Hamming window, `[0.42, 0.5,
    0.08]` the Blackman window.

    C1: the dtype is a floating-point one.
    C2: there is at least one coefficient.
    C3: the length is not negative.
    """

    name = "relax.cosine_window"

    length = prop_def(DimAttr)
    coefficients = prop_def(DenseArrayBase.constr(f64))
    periodic = opt_prop_def(UnitAttr)
    dtype = prop_def(Attribute, default_value=f32)
    result = result_def(TensorType)

    def __init__(
        self, length: DimLike, coefficients: Sequence[float], *, periodic: bool = False, dtype: Attribute = f32
    ):
        properties = {
            "length": DimAttr(length),
            "coefficients": numbers(coefficients),
            "periodic": flag(periodic),
            "dtype": dtype,
        }
        super().__init__([], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = inference.dtype("dtype")
        if not Domain.FLOAT.admits(dtype):
            inference.fail(f"dtype expected a floating-point dtype, got {dtype}")  # C1
        if len(inference.require("coefficients", DenseArrayBase)) == 0:
            inference.fail("expected at least one coefficient")  # C2
        return (TensorType((inference.size("length"),), dtype),)  # C3
