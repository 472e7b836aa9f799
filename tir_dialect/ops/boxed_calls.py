"""Calls of packed functions with boxed arguments."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tir_dialect.ops.effects import UnknownEffects
from tir_dialect.ops.syntax import parse_defined_operand


@irdl_op_definition
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

    def __init__(self, function: str, values: SSAValue | Operation, count: int):
        properties = {"function": StringAttr(function), "count": IntegerAttr(count, i64)}
        super().__init__(operands=[values], properties=properties)

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.count_attr.value.data

    @classmethod
    def parse(cls, parser: Parser) -> CallBoxedOp:
        function = parser.parse_str_literal()
        with parser.in_parens():
            values = parse_defined_operand(parser)
            parser.parse_punctuation(",")
            op = cls(function, values, parser.parse_integer())
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.function.data)
        with printer.in_parens():
            printer.print_ssa_value(self.values)
            printer.print_string(f", {self.count}")
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if self.count < 0:
            raise VerifyException(f"'tir.call_boxed' op expected a number of values, got {self.count}")  # C1
