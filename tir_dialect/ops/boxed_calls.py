"""Calls of packed functions with boxed arguments."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, traits_def
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.directives import Number, Text
from tir_dialect.ops.effects import UnknownEffects


@op_definition
class CallBoxedOp(IRDLOperation):
    """Calls a function of the tvm-ffi registry with an array of boxed values.

    ```mlir
    tir.call_boxed "my_sort"(%values, 2)
    ```

    `%values` is the address of an array of that many `TVMFFIAny` (16 bytes each), followed by space for one more: the
    result. If the result is an object, the program owns it. For the address of a `DLTensor` the function receives a
    tensor object, which it must not retain. An error of the function is propagated.

    C1: the number of values is not negative.
    """

    name = "tir.call_boxed"

    function = prop_def(StringAttr)
    values = operand_def(i64)
    count_attr = prop_def(IntegerAttr, prop_name="count")

    traits = traits_def(UnknownEffects())

    assembly_format = "custom<Text>($function) `(` $values `,` custom<Number>($count) `)` attr-dict"
    custom_directives = (Text, Number)

    def __init__(self, function: str, values: SSAValue | Operation, count: int):
        properties = {"function": StringAttr(function), "count": IntegerAttr(count, i64)}
        super().__init__(operands=[values], properties=properties)

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.count_attr.value.data

    def verify_(self) -> None:
        if self.count < 0:
            raise VerifyException(f"'tir.call_boxed' op expected a number of values, got {self.count}")  # C1
