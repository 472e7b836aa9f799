"""Dot products of packed words, as the VNNI, BF16 and similar instructions compute them."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import BFloat16Type, IntegerType, Signedness, VectorType, bf16, f32, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.directives import SameType, TypeOf, TypeProperty
from tir_dialect.ops.memory import lanes_of

ui8 = IntegerType(8, Signedness.UNSIGNED)

PARTS: Mapping[Attribute, int] = {i8: 4, ui8: 4, bf16: 2}
"""How many numbers of a dtype a word of 32 bits has, the first in its lowest bits."""


@op_definition
class DotOp(IRDLOperation):
    """Multiplies the numbers packed into the 32-bit words of two vectors and adds the products, lane by lane, to a sum.

    ```mlir
    %s = tir.dot ui8 %a, i8 %b, %sum : vector<16xi32>
    %t = tir.dot bf16 %a, bf16 %b, %sum : vector<16xf32>
    ```

    A word holds four `i8`/`ui8` or two `bf16` numbers. Integer sums wrap around; they never saturate. `bf16` products
    are accumulated in `f32` in unspecified order, and subnormal numbers may be flushed to 0.

    C1: the dtypes are each one of `i8` and `ui8`, or both `bf16`.
    C2: the sum is a vector with one fixed dimension, of `i32` for bytes and of `f32` for `bf16`.
    C3: the words are vectors of `i32` with as many lanes.
    """

    name = "tir.dot"

    lhs_dtype = prop_def(Attribute)
    rhs_dtype = prop_def(Attribute)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    sum = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = (
        "custom<TypeProperty>($lhs_dtype) $lhs `,` custom<TypeProperty>($rhs_dtype) $rhs `,` $sum attr-dict "
        "`:` custom<TypeOf>(ref($sum)) custom<SameType>(type($result), ref($sum))"
    )
    custom_directives = (TypeProperty, TypeOf, SameType)

    def __init__(
        self,
        dtypes: tuple[Attribute, Attribute],
        lhs: SSAValue | Operation,
        rhs: SSAValue | Operation,
        sum: SSAValue | Operation,
    ):
        super().__init__(
            operands=[lhs, rhs, sum],
            properties={"lhs_dtype": dtypes[0], "rhs_dtype": dtypes[1]},
            result_types=[SSAValue.get(sum).type],
        )

    @property
    def is_float(self) -> bool:
        """Whether the numbers are floats."""
        return isinstance(self.lhs_dtype, BFloat16Type)

    def verify_(self) -> None:
        dtypes = (self.lhs_dtype, self.rhs_dtype)
        if any(dtype not in PARTS for dtype in dtypes) or PARTS[dtypes[0]] != PARTS[dtypes[1]]:
            raise VerifyException(
                f"'tir.dot' op expected two of i8 and ui8, or bf16 twice, got {dtypes[0]} and {dtypes[1]}"
            )  # C1
        lanes, element = lanes_of(self.sum.type), f32 if self.is_float else i32
        if lanes is None or self.sum.type != VectorType(element, [lanes]) or self.result.type != self.sum.type:
            raise VerifyException(f"'tir.dot' op expected a vector of {element} as sum, got {self.sum.type}")  # C2
        words = VectorType(i32, [lanes])
        if self.lhs.type != words or self.rhs.type != words:
            raise VerifyException(
                f"'tir.dot' op expected words of type {words}, got {self.lhs.type} and {self.rhs.type}"
            )  # C3
