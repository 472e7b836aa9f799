"""The remainder of a division of floats."""

from __future__ import annotations

from xdsl.dialects.builtin import Float32Type, Float64Type

from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.binary import BinaryOp


@op_definition
class FmodOp(BinaryOp):
    """The remainder of the division rounded towards zero, exact, with the sign of the dividend: C's `fmod`.

    ```mlir
    %r = tir.fmod %x, %y : f32
    ```

    It is NaN if the dividend is infinite or the divisor is zero, and the dividend if only the divisor is infinite.

    C1: operands and result are `f32` or `f64`, or vectors of these with one fixed dimension, of one type.
    """

    name = "tir.fmod"

    def verify_(self) -> None:
        self.verify_types(Float32Type | Float64Type, "f32 or f64")  # C1
